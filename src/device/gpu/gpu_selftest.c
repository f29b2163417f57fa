/* The self-test of GPU devices: checks their arithmetic against the contract by running it.
 *
 * Some drivers report capabilities that their device does not have, and some compilers ignore
 * options. So before a device is used, it computes a list of chosen and random cases with each
 * operation of the contract. The results are compared with the CPU's. */
#include "base/binary/float_bits.h"
#include "base/memory.h"
#include "base/system/float_state.h"
#include "device/gpu/gpu.h"
#include "num/elementary.h"
#include "num/intgemm_reference.h"
#include "num/sums.h"

#include <math.h>

/* Floats by their bits at critical points: zeros, the ends of the subnormal range, neighbours of
 * one, halves of units (ties), ends of the integers' range, the largest number, infinities and
 * NaNs. */
static const uint32_t special[] = {
    0x00000000, 0x80000000, 0x00000001, 0x80000001, 0x00400000, 0x007fffff, 0x807fffff, 0x00800000,
    0x80800001, 0x01000001, 0x0d800000, 0x17800000, 0x97800000, 0x33000000, 0x33800000, 0x3f000000,
    0x3f7fffff, 0x3f800000, 0xbf800000, 0x3f800001, 0x3f800800, 0x3fc00000, 0x40200000, 0x40400000,
    0xc0400000, 0x41200000, 0x4a800001, 0x4b000001, 0x4b800001, 0x5dffffff, 0xde7fffff, 0x71800000,
    0x7f7fffff, 0xff7fffff, 0x7f800000, 0xff800000, 0x7fc00000};

enum {
    SPECIALS = sizeof special / sizeof *special,
    TRIPLES = SPECIALS * SPECIALS * SPECIALS,
    SECTION = 4096, /* random cases of each kind */
    TRIALS = TRIPLES + 5 * SECTION,
    MAPS = SPECIALS + 3 * SECTION,
    THIN = 61 /* of so many cases a simulator computes one */
};

/* The cases: a, b, c as the kernel TRIAL takes them. */
typedef struct trials {
    uint32_t a[TRIALS], b[TRIALS], c[TRIALS];
    uint64_t got[TRIALS];
    float x[MAPS], y[MAPS];
    int trials, maps; /* how many of them are used */
    uint64_t random;
} trials;

/* Knuth's MMIX generator, its high bits; the same cases in every run. */
static uint32_t draw(trials *t) {
    t->random = t->random * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(t->random >> 32);
}

/* A float of either sign with an exponent from `low` to `high`. */
static uint32_t draw_float(trials *t, int low, int high) {
    const uint32_t exponent = (uint32_t)(low + 127) + draw(t) % (uint32_t)(high - low + 1);
    return (draw(t) & 0x807fffffu) | exponent << 23;
}

/* An int64 of any length; half of them are ties between two floats, or next to one. */
static uint64_t draw_integer(trials *t) {
    uint64_t value = ((uint64_t)draw(t) << 32 | draw(t)) >> (draw(t) & 63u);
    if (draw(t) & 1u) {
        const uint32_t shift = draw(t) % 39u; /* 25 bits, then zeros, then -1, 0 or 1 more */
        value = ((uint64_t)(1u << 24 | draw(t) >> 8 | 1u) << shift) + (draw(t) % 3u) - 1u;
    }
    return draw(t) & 1u ? 0u - value : value;
}

static void fill_trials(trials *t) {
    uint32_t n = 0;
    for (int i = 0; i < SPECIALS; ++i)
        for (int j = 0; j < SPECIALS; ++j)
            for (int k = 0; k < SPECIALS; ++k, ++n) {
                t->a[n] = special[i];
                t->b[n] = special[j];
                t->c[n] = special[k];
            }
    for (int i = 0; i < SECTION; ++i, ++n) { /* any bits */
        t->a[n] = draw(t);
        t->b[n] = draw(t);
        t->c[n] = draw(t);
    }
    for (int i = 0; i < SECTION; ++i, ++n) { /* around one; products that nearly cancel */
        t->a[n] = draw_float(t, -2, 2);
        t->b[n] = draw_float(t, -2, 2);
        t->c[n] = i & 1
                      ? draw_float(t, -27, 27)
                      : qn__float_bits(-(qn__float_of_bits(t->a[n]) * qn__float_of_bits(t->b[n]))) +
                            (draw(t) % 3u) - 1u;
    }
    for (int i = 0; i < SECTION;
         ++i, ++n) { /* results on both sides of the smallest normal number */
        t->a[n] = draw_float(t, -126, -90);
        t->b[n] = draw_float(t, -60, 40);
        t->c[n] = draw_float(t, -126, -100) & ((draw(t) & 1u) ? 0x807fffffu : 0xffffffffu);
    }
    for (int i = 0; i < SECTION; ++i, ++n) { /* floats that become integers */
        t->a[n] = draw_float(t, -2, 61);
        t->b[n] = draw_float(t, -2, 24);
        t->c[n] = draw(t);
    }
    for (int i = 0; i < SECTION; ++i, ++n) { /* integers that become floats */
        const uint64_t value = draw_integer(t);
        t->a[n] = (uint32_t)value;
        t->b[n] = (uint32_t)(value >> 32);
        t->c[n] = draw(t);
    }
}

static void fill_maps(trials *t) {
    uint32_t n = 0;
    for (int i = 0; i < SPECIALS; ++i)
        t->x[n++] = qn__float_of_bits(special[i]);
    for (int i = 0; i < SECTION; ++i)
        t->x[n++] = qn__float_of_bits(draw(t));
    for (int i = 0; i < SECTION; ++i)
        t->x[n++] = qn__float_of_bits(draw_float(t, -12, 6));
    for (int i = 0; i < SECTION; ++i)
        t->x[n++] = (float)(draw(t) >> 8) * 0x1p-24f;
}

/* A sample of every kind of cases. */
static void thin(trials *t) {
    for (t->trials = 0; t->trials * THIN < TRIALS; ++t->trials) {
        t->a[t->trials] = t->a[t->trials * THIN];
        t->b[t->trials] = t->b[t->trials * THIN];
        t->c[t->trials] = t->c[t->trials * THIN];
    }
    for (t->maps = 0; t->maps * THIN < MAPS; ++t->maps)
        t->x[t->maps] = t->x[t->maps * THIN];
}

/* ---------------------------------------------------------------- expected results */

/* Whether the contract defines the result: the conversion of a number that is too large is
 * undefined. */
static int is_defined(uint32_t op, uint32_t a) {
    if (op == QN_TRIAL_INT32)
        return fabsf(qn__float_of_bits(a)) < 0x1p30f;
    return op != QN_TRIAL_TO_UNITS || fabsf(qn__float_of_bits(a)) < 0x1p62f;
}

/* Shifts by arithmetic operations: in C a right shift of a negative number is
 * implementation-defined. */
static int64_t shifted(uint64_t pair, uint32_t by) {
    return (int64_t)(pair >> 63 ? ~(~pair >> by) : pair >> by);
}

/* c / 256 plus the products of the signed bytes. */
static uint32_t dot(uint32_t a, uint32_t b, uint32_t c) {
    int64_t sum = shifted((uint64_t)(int64_t)(int32_t)c, 8);
    for (uint32_t i = 0; i < 32; i += 8)
        sum += (int8_t)(uint8_t)(a >> i) * (int8_t)(uint8_t)(b >> i);
    return (uint32_t)sum;
}

static uint64_t right(uint32_t op, uint32_t a, uint32_t b, uint32_t c) {
    const float x = qn__float_of_bits(a), y = qn__float_of_bits(b), z = qn__float_of_bits(c);
    const uint64_t pair = (uint64_t)b << 32 | a;
    const uint32_t shift = c & 63u;
    int64_t units = 0;
    switch (op) {
    case QN_TRIAL_ADD:
        return qn__float_bits(x + y);
    case QN_TRIAL_MUL:
        return qn__float_bits(x * y);
    case QN_TRIAL_FMA:
        return qn__float_bits(fmaf(x, y, z));
    case QN_TRIAL_MUL_ADD:
        return qn__float_bits(x * y + z);
    case QN_TRIAL_DIV:
        return qn__float_bits(x / y);
    case QN_TRIAL_SQRT:
        return qn__float_bits(sqrtf(x));
    case QN_TRIAL_TO_UNITS:
        return (uint64_t)qn__to_units(x);
    case QN_TRIAL_FROM_SUM:
        return qn__float_bits(qn__from_units((int64_t)pair));
    case QN_TRIAL_LESS:
        return x < y;
    case QN_TRIAL_PRODUCT:
        return (uint64_t)a * b;
    case QN_TRIAL_ADD64:
        return pair + ((uint64_t)a << 32 | c);
    case QN_TRIAL_SHIFT64:
        return (uint64_t)shifted(pair, shift);
    case QN_TRIAL_DOT:
        return dot(a, b, c);
    case QN_TRIAL_INT32:
        return (uint32_t)qn__quantize(x, 1.0f);
    case QN_TRIAL_UNITS:
        qn__intgemm_units(shifted(pair, 2), -1 - (int64_t)shift, 0x1p61f, &units);
        return (uint64_t)units;
    default:
        return 0;
    }
}

/* The operations, in an order that finds the plain faults first. */
static const struct operation {
    uint32_t op;
    int operands;    /* floats that it takes; 0: integers */
    int gives_float; /* so that NaN is compared as such */
    const char *text, *fault;
} operations[] = {
    {QN_TRIAL_ADD, 2, 1, "a + b", "adds wrongly"},
    {QN_TRIAL_MUL, 2, 1, "a * b", "multiplies wrongly"},
    {QN_TRIAL_LESS, 2, 0, "a < b", "compares wrongly"},
    {QN_TRIAL_FMA, 3, 1, "fma(a, b, c)", "has no fma of its own or a wrong one"},
    {QN_TRIAL_MUL_ADD, 3, 1, "a * b + c", "computes a * b + c wrongly"},
    {QN_TRIAL_DIV, 2, 1, "a / b", "divides with a wrong rounding"},
    {QN_TRIAL_SQRT, 1, 1, "sqrt(a)", "takes square roots with a wrong rounding"},
    {QN_TRIAL_TO_UNITS, 1, 0, "int64(a)", "rounds numbers to 64-bit integers wrongly"},
    {QN_TRIAL_FROM_SUM, 0, 1, "float(ba)", "rounds 64-bit integers to numbers wrongly"},
    {QN_TRIAL_PRODUCT, 0, 0, "a * b", "multiplies 32-bit integers to 64 bits wrongly"},
    {QN_TRIAL_ADD64, 0, 0, "ba + ac", "adds 64-bit integers wrongly"},
    {QN_TRIAL_SHIFT64, 0, 0, "ba >> c", "shifts 64-bit integers wrongly"},
    {QN_TRIAL_INT32, 1, 0, "int32(a)", "rounds numbers to 32-bit integers wrongly"},
    {QN_TRIAL_DOT, 0, 0, "bytes of a by those of b, + c / 256", "multiplies packed bytes wrongly"},
    {QN_TRIAL_UNITS, 0, 0, "ba / 4 * 2^(-1 - c)", "rounds scaled 64-bit integers wrongly"},
};

enum { OPERATIONS = sizeof operations / sizeof *operations };

static int same(int is_float, uint64_t got, uint64_t want) {
    return got == want || (is_float && isnan(qn__float_of_bits((uint32_t)got)) &&
                           isnan(qn__float_of_bits((uint32_t)want)));
}

/* ---------------------------------------------------------------- failures */

static const char flushes[] = "flushes subnormal numbers to zero";

static uint32_t flushed(uint32_t bits) {
    return (bits & 0x7f800000u) == 0 ? bits & 0x80000000u : bits;
}

static int is_zero(uint64_t bits) { return (bits & 0x7fffffffu) == 0; }

/* Whether the answer is what flushing operands, the result, or both would give. Some devices keep
 * the sign of what they flush, others do not. */
static int looks_flushed(const struct operation *o, uint32_t a, uint32_t b, uint32_t c,
                         uint64_t got) {
    if (o->operands == 0)
        return 0;
    const uint64_t plain = right(o->op, a, b, c),
                   cut = right(o->op, flushed(a), flushed(b), flushed(c));
    if (!o->gives_float)
        return got == cut;
    const int lost = is_zero(flushed((uint32_t)cut)) || is_zero(flushed((uint32_t)plain));
    return same(1, got, cut) || (is_zero(got) && lost && !is_zero(plain));
}

/* Two usual replacements for an fma. The first cases where they differ identify them. */
static const char *fma_fault(uint32_t a, uint32_t b, uint32_t c, uint64_t got) {
    const float x = qn__float_of_bits(a), y = qn__float_of_bits(b), z = qn__float_of_bits(c);
    if (got == qn__float_bits((float)((double)x * (double)y + (double)z)))
        return "has no fma of its own or a wrong one: it rounds to double precision first";
    if (got == qn__float_bits(x * y + z))
        return "has no fma of its own or a wrong one: it rounds twice";
    return NULL;
}

static const char *fault_of(const struct operation *o, uint32_t a, uint32_t b, uint32_t c,
                            uint64_t got) {
    const char *fault = o->op == QN_TRIAL_FMA ? fma_fault(a, b, c, got) : NULL;
    if (o->op == QN_TRIAL_MUL_ADD && same(1, got, right(QN_TRIAL_FMA, a, b, c)))
        fault = "contracts a * b + c to one fma";
    if (o->op == QN_TRIAL_DIV &&
        same(1, got, qn__float_bits(qn__float_of_bits(a) * (1.0f / qn__float_of_bits(b)))))
        fault = "divides with a wrong rounding: it multiplies by the reciprocal";
    if (!fault && looks_flushed(o, a, b, c, got))
        fault = flushes;
    return fault ? fault : o->fault;
}

static qn_status refuse(qn_error *err, const char *name, const char *fault) {
    return qn__fail(err, QN_UNSUPPORTED, "%s cannot be used: it %s", name, fault);
}

static qn_status advise(qn_error *err) {
    return qn__remedy(
        err, QN_UNSUPPORTED,
        "leave it out of `compute.devices`; a newer driver may fix it (and options in the "
        "environment that make a driver faster and less exact must go)");
}

/* The case to report: the first wrong one that flushing does not explain. If flushing explains all,
 * the first wrong one. -1: none is wrong. */
static int worst_case(const trials *t, const struct operation *o, const char **fault) {
    int first = -1;
    for (int i = 0; i < t->trials; ++i) {
        const uint32_t a = t->a[i], b = t->b[i], c = t->c[i];
        if (!is_defined(o->op, a) || same(o->gives_float, t->got[i], right(o->op, a, b, c)))
            continue;
        *fault = fault_of(o, a, b, c, t->got[i]);
        if (*fault != flushes)
            return i;
        first = first < 0 ? i : first;
    }
    return first;
}

static qn_status check_trial(const trials *t, const struct operation *o, const char *name,
                             qn_error *err) {
    const char *fault = NULL;
    const int i = worst_case(t, o, &fault);
    if (i < 0)
        return QN_OK;
    const uint32_t a = t->a[i], b = t->b[i], c = t->c[i];
    const uint64_t want = right(o->op, a, b, c), got = t->got[i];
    refuse(err, name, fault);
    if (o->gives_float && o->operands > 0)
        qn__at(err, "self-test, %s of %a, %a, %a: %a, where %a is right", o->text,
               (double)qn__float_of_bits(a), (double)qn__float_of_bits(b),
               (double)qn__float_of_bits(c), (double)qn__float_of_bits((uint32_t)got),
               (double)qn__float_of_bits((uint32_t)want));
    else
        qn__at(err, "self-test, %s of 0x%08x, 0x%08x, 0x%08x: 0x%llx, where 0x%llx is right",
               o->text, a, b, c, (unsigned long long)got, (unsigned long long)want);
    return advise(err);
}

/* ---------------------------------------------------------------- functions */

static float copy(float x) { return x; }
static float root(float x) { return sqrtf(x); }

static const struct function {
    uint32_t op;
    const char *name;
    float (*of)(float x);
} functions[] = {{QN_MAP_COPY, "copy", copy},
                 {QN_MAP_EXP, "exp", qn__exp},
                 {QN_MAP_LOG, "log", qn__log},
                 {QN_MAP_TANH, "tanh", qn__tanh},
                 {QN_MAP_SIGMOID, "sigmoid", qn__sigmoid},
                 {QN_MAP_COSPI, "cospi", qn__cospi},
                 {QN_MAP_SQRT, "sqrt", root},
                 {QN_MAP_GELU, "gelu", qn__gelu},
                 {QN_MAP_GELU_SLOPE, "gelu_slope", qn__gelu_slope},
                 {QN_MAP_SILU, "silu", qn__silu},
                 {QN_MAP_SILU_SLOPE, "silu_slope", qn__silu_slope},
                 {QN_MAP_GELU_TANH, "gelu_tanh", qn__gelu_tanh},
                 {QN_MAP_GELU_TANH_SLOPE, "gelu_tanh_slope", qn__gelu_tanh_slope}};

enum { FUNCTIONS = sizeof functions / sizeof *functions };

static qn_status check_map(const trials *t, const struct function *f, const char *name,
                           qn_error *err) {
    for (int i = 0; i < t->maps; ++i) {
        const float x = t->x[i];
        if (f->op == QN_MAP_COSPI && !(x >= 0.0f && x <= 1.0f))
            continue;
        const float want = f->of(x);
        if (same(1, qn__float_bits(t->y[i]), qn__float_bits(want)))
            continue;
        qn__fail(err, QN_UNSUPPORTED, "%s cannot be used: its %s is not the contract's", name,
                 f->name);
        qn__at(err, "self-test, %s of %a: %a, where %a is right", f->name, (double)x,
               (double)t->y[i], (double)want);
        return advise(err);
    }
    return QN_OK;
}

/* ---------------------------------------------------------------- running the kernels */

/* Memory on the device: a, b, c, got, x, y. */
enum { A, B, C, GOT, X, Y, MEMORIES };

typedef struct bench {
    const qn__gpu_driver *driver;
    qn__gpu *gpu;
    qn__gpu_memory memory[MEMORIES];
    trials *t;
} bench;

static qn_status launch(bench *s, qn__kernel kernel, uint64_t work, qn__gpu_argument *arguments,
                        uint32_t count, qn_error *err) {
    const uint32_t share = qn__kernel_shape_of(kernel)->share;
    const uint32_t groups[3] = {share ? (uint32_t)((work + share - 1) / share) : 1, 1, 1};
    return s->driver->launch(s->gpu, kernel, groups, arguments, count, err);
}

static qn_status try_operation(bench *s, const struct operation *o, qn_error *err) {
    qn__gpu_argument arguments[] = {
        {'M', {.memory = &s->memory[A]}},     {'M', {.memory = &s->memory[B]}},
        {'M', {.memory = &s->memory[C]}},     {'M', {.memory = &s->memory[GOT]}},
        {'U', {.U = (uint64_t)s->t->trials}}, {'u', {.u = o->op}},
    };
    qn_status status = launch(s, QN__K_TRIAL, (uint64_t)s->t->trials, arguments, 6, err);
    if (status == QN_OK)
        status =
            qn__gpu_read(s->driver, s->gpu, &s->memory[GOT], 0, s->t->got, sizeof s->t->got, err);
    return status == QN_OK ? check_trial(s->t, o, s->driver->facts(s->gpu)->name, err) : status;
}

static qn_status try_function(bench *s, qn__kernel map, const struct function *f, qn_error *err) {
    qn__gpu_argument arguments[] = {{'M', {.memory = &s->memory[X]}},
                                    {'M', {.memory = &s->memory[Y]}},
                                    {'U', {.U = (uint64_t)s->t->maps}},
                                    {'u', {.u = f->op}}};
    qn_status status = launch(s, map, (uint64_t)s->t->maps, arguments, 4, err);
    if (status == QN_OK)
        status = qn__gpu_read(s->driver, s->gpu, &s->memory[Y], 0, s->t->y, sizeof s->t->y, err);
    return status == QN_OK ? check_map(s->t, f, s->driver->facts(s->gpu)->name, err) : status;
}

static qn_status upload(bench *s, qn_error *err) {
    const void *const from[MEMORIES] = {s->t->a, s->t->b, s->t->c, NULL, s->t->x, NULL};
    const size_t bytes[MEMORIES] = {sizeof s->t->a,   sizeof s->t->b, sizeof s->t->c,
                                    sizeof s->t->got, sizeof s->t->x, sizeof s->t->y};
    qn_status status = QN_OK;
    for (int i = 0; status == QN_OK && i < MEMORIES; ++i) {
        status = s->driver->allocate(s->gpu, bytes[i], &s->memory[i], err);
        if (status == QN_OK && from[i])
            status = s->driver->write(s->gpu, &s->memory[i], 0, from[i], bytes[i], err);
    }
    return status;
}

qn_status qn__gpu_selftest(const qn__gpu_driver *driver, qn__gpu *gpu, qn_error *err) {
    qn__float_state_set(); /* the driver's compiler was loaded on this thread */
    bench s = {.driver = driver, .gpu = gpu, .t = qn__alloc(1, sizeof(trials), err)};
    if (!s.t)
        return QN_MEMORY;
    s.t->random = 1;
    s.t->trials = TRIALS;
    s.t->maps = MAPS;
    fill_trials(s.t);
    fill_maps(s.t);
    if (driver->facts(gpu)->simulated)
        thin(s.t);
    qn_status status = upload(&s, err);
    for (int i = 0; status == QN_OK && i < OPERATIONS; ++i)
        status = try_operation(&s, &operations[i], err);
    for (int i = 0; status == QN_OK && i < FUNCTIONS; ++i)
        status = try_function(&s, QN__K_MAP, &functions[i], err);
    /* The vector kernels have functions of their own. */
    for (int i = 0; status == QN_OK && i < FUNCTIONS && driver->facts(gpu)->vectors; ++i)
        status = try_function(&s, qn__kernel_vector(QN__K_MAP), &functions[i], err);
    for (int i = 0; i < MEMORIES; ++i)
        driver->release(gpu, &s.memory[i]);
    qn__free(s.t);
    return status;
}
