/* The self-test of integer products: each kernel of a CUDA program on generated operands, compared
 * with 64-bit sums. */
#include "base/memory.h"
#include "device/gpu/gpu_call.h"
#include "num/intgemm_reference.h"

#include <string.h>

/* Rows and columns exceed a small tile and do not fill a large one. A sum is four slabs of words,
 * the last padded with zeros as by QUANTIZE_ITEMS. Gradients take the same words as grains: eight
 * of half a slab each, or two of two slabs. */
enum {
    ROWS = 67,
    COLUMNS = 131,
    LONG = 100,
    WORDS = 32, /* of a row's digit */
    NUMBERS = 4 * WORDS,
    LD_COLUMNS = 144,
    MOST_DIGITS = 3,
    GRAINS = 8
};

typedef struct operands {
    int8_t left[ROWS][MOST_DIGITS][NUMBERS], right[COLUMNS][MOST_DIGITS][NUMBERS];
    /* The same in the device's format: a row has as many digits as the arithmetic. */
    int8_t left_words[ROWS * MOST_DIGITS * NUMBERS], right_words[COLUMNS * MOST_DIGITS * NUMBERS];
    uint32_t of_rows[ROWS], of_columns[COLUMNS], of_grains[2 * GRAINS]; /* absmax of the blocks */
    float bias[LD_COLUMNS];
    float got[ROWS * LD_COLUMNS];
    int64_t units[ROWS * LD_COLUMNS];
    uint64_t random;
} operands;

enum { STEP, LEFT, RIGHT, OF_ROWS, OF_COLUMNS, OF_GRAINS, BIAS, FLOATS, UNITS, STATUS, MEMORIES };

typedef struct bench {
    const qn__gpu_driver *driver;
    qn__gpu *gpu;
    qn__gpu_memory memory[MEMORIES];
    operands *o;
    int digits;
    uint32_t products; /* of the program */
} bench;

/* Knuth's MMIX generator, its high bits. */
static uint32_t draw(operands *o) {
    o->random = o->random * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(o->random >> 32);
}

/* Digits of -64 to 63, the last one to 64. Every fifth row has only the ends of that range. */
static void fill_row(operands *o, int digits, int row, int8_t to[MOST_DIGITS][NUMBERS]) {
    for (int d = 0; d < digits; ++d)
        for (int k = 0; k < LONG; ++k) {
            const int most = d + 1 < digits ? 63 : 64;
            const int any = (int)(draw(o) % (uint32_t)(65 + most)) - 64;
            to[d][k] = (int8_t)(row % 5 != 0 ? any : row % 2 ? most : -64);
        }
}

static uint32_t draw_magnitude(operands *o, uint32_t low, uint32_t high) {
    return (low + draw(o) % (high - low)) << 23 | draw(o) >> 9;
}

static void fill(operands *o, int digits) {
    memset(o, 0, sizeof *o);
    o->random = 1;
    for (int r = 0; r < ROWS; ++r) {
        fill_row(o, digits, r, o->left[r]);
        for (int d = 0; d < digits; ++d)
            memcpy(o->left_words + (r * digits + d) * NUMBERS, o->left[r][d], NUMBERS);
        o->of_rows[r] = draw_magnitude(o, 100, 150);
    }
    for (int c = 0; c < COLUMNS; ++c) {
        fill_row(o, digits, c, o->right[c]);
        for (int d = 0; d < digits; ++d)
            memcpy(o->right_words + (c * digits + d) * NUMBERS, o->right[c][d], NUMBERS);
        o->of_columns[c] = draw_magnitude(o, 100, 150);
        o->bias[c] = (float)(int32_t)draw(o) * 0x1p-31f;
    }
    /* Grains whose partials are integers, the first two with the same exponents, and grains whose
     * partials are rounded. */
    for (int g = 0; g < GRAINS; ++g) {
        const uint32_t of_one = 125 + 7 * (uint32_t)digits; /* t is 0 */
        o->of_grains[g] = (g < 4 ? of_one + 3 : of_one - 5) << 23;
        o->of_grains[GRAINS + g] = (g < 4 ? of_one + (uint32_t)g / 2 : of_one - 2) << 23;
    }
}

/* The sum over numbers begin .. end-1. */
static int64_t sum_of(const bench *s, int r, int c, int begin, int end) {
    int64_t n = 0;
    for (int k = begin; k < end; ++k) {
        int32_t a = 0, b = 0;
        for (int d = s->digits; d-- > 0;) {
            a = a * 128 + s->o->left[r][d][k];
            b = b * 128 + s->o->right[c][d][k];
        }
        n += (int64_t)a * b;
    }
    return n;
}

static float factor_of(const bench *s, uint32_t absmax) {
    return qn__block_factor(qn__block_exponent(7 * s->digits, absmax));
}

static qn_status refuse(const bench *s, qn__kernel kernel, int r, int c, qn_error *err) {
    const qn__kernel_shape *shape = qn__kernel_shape_of(kernel);
    qn__fail(err, QN_UNSUPPORTED, "%s cannot be used: %s integers wrongly",
             s->driver->facts(s->gpu)->name,
             shape->products & QN_WITH_MATRIX ? "its matrix instructions multiply"
                                              : "it multiplies");
    qn__at(err, "self-test, %s, row %d, column %d", shape->name, r, c);
    return qn__remedy(err, QN_UNSUPPORTED,
                      "leave it out of `compute.devices`; a newer driver may fix it");
}

/* ---------------------------------------------------------------- running the kernels */

static qn_status launch(const bench *s, qn__kernel kernel, const qn__gpu_call *call,
                        uint32_t k_blocks, qn_error *err) {
    const qn__kernel_shape *k = qn__kernel_shape_of(kernel);
    const uint32_t groups[3] = {
        (uint32_t)(qn__gpu_pieces(ROWS, k->tile_rows) * qn__gpu_pieces(COLUMNS, k->tile_columns)),
        1, k_blocks};
    return s->driver->launch(s->gpu, kernel, groups, call->argument, call->count, err);
}

static qn_status set_step(const bench *s, uint32_t items, uint32_t grain, qn_error *err) {
    const qn_step step = {.items = items, .grain = grain};
    return s->driver->write(s->gpu, &s->memory[STEP], 0, &step, sizeof step, err);
}

/* Layer, activation, threshold, keep and seed: of a layer that has none of them. */
static void push_outputs(qn__gpu_call *c) {
    QN__PUSH_NUMBERS(c, 0, QN_ACT_NONE, 0);
    QN__PUSH_FLOATS(c, 1.0f);
    QN__PUSH_WIDE(c, 0);
}

/* Runs a kernel that writes floats, and reads what came out: not what another kernel left there. */
static qn_status floats_of(const bench *s, qn__kernel kernel, const qn__gpu_call *call,
                           qn_error *err) {
    memset(s->o->got, 0xff, sizeof s->o->got);
    qn_status status = set_step(s, ROWS, 1, err);
    if (status == QN_OK)
        status = s->driver->write(s->gpu, &s->memory[FLOATS], 0, s->o->got, sizeof s->o->got, err);
    if (status == QN_OK)
        status = launch(s, kernel, call, 1, err);
    if (status == QN_OK)
        status = qn__gpu_read(s->driver, s->gpu, &s->memory[FLOATS], 0, s->o->got, sizeof s->o->got,
                              err);
    return status;
}

static qn_status try_forward(const bench *s, qn__kernel kernel, qn_error *err) {
    const qn__gpu_memory *m = s->memory;
    qn__gpu_call c = {0};
    QN__PUSH_MEMORY(&c, &m[STEP], &m[LEFT], &m[OF_ROWS], &m[RIGHT], &m[OF_COLUMNS], &m[BIAS]);
    QN__PUSH_WIDE(&c, 0);
    QN__PUSH_MEMORY(&c, &m[FLOATS], &m[STEP], &m[STEP]);
    QN__PUSH_NUMBERS(&c, LONG, COLUMNS, 0, 0);
    push_outputs(&c);
    const qn_status status = floats_of(s, kernel, &c, err);
    for (int r = 0; status == QN_OK && r < ROWS; ++r)
        for (int o = 0; o < LD_COLUMNS; ++o) {
            float want = 0.0f;
            if (o < COLUMNS)
                want = fmaf((float)sum_of(s, r, o, 0, LONG),
                            factor_of(s, s->o->of_rows[r]) * factor_of(s, s->o->of_columns[o]),
                            s->o->bias[o]);
            if (memcmp(&s->o->got[r * LD_COLUMNS + o], &want, sizeof want) != 0)
                return refuse(s, kernel, r, o, err);
        }
    return status;
}

static qn_status try_errors(const bench *s, qn__kernel kernel, qn_error *err) {
    const qn__gpu_memory *m = s->memory;
    qn__gpu_call c = {0};
    QN__PUSH_MEMORY(&c, &m[STEP], &m[LEFT], &m[OF_ROWS], &m[RIGHT], &m[FLOATS], &m[FLOATS],
                    &m[STEP]);
    QN__PUSH_NUMBERS(&c, COLUMNS, LONG);
    push_outputs(&c);
    const qn_status status = floats_of(s, kernel, &c, err);
    for (int r = 0; status == QN_OK && r < ROWS; ++r)
        for (int k = 0; k < LD_COLUMNS; ++k) {
            const float tc = factor_of(s, s->o->of_rows[r]);
            const float want = k < COLUMNS ? (float)sum_of(s, r, k, 0, LONG) * tc : 0.0f;
            if (memcmp(&s->o->got[r * LD_COLUMNS + k], &want, sizeof want) != 0)
                return refuse(s, kernel, r, k, err);
        }
    return status;
}

/* The sum over grains of so many numbers, in units. */
static int64_t units_of(const bench *s, int r, int c, int grain, float limit) {
    int64_t sum = 0;
    for (int g = 0; g * grain < NUMBERS; ++g) {
        int64_t units = 0;
        qn__intgemm_units(sum_of(s, r, c, g * grain, (g + 1) * grain),
                          (int64_t)qn__block_exponent(7 * s->digits, s->o->of_grains[g]) +
                              qn__block_exponent(7 * s->digits, s->o->of_grains[GRAINS + g]),
                          limit, &units);
        sum += units;
    }
    return sum;
}

static qn_status try_gradient(const bench *s, qn__kernel kernel, uint32_t grain, uint32_t k_blocks,
                              qn_error *err) {
    const qn__gpu_memory *m = s->memory;
    const float limit = 0x1p61f;
    qn_status_words words = {0};
    qn__gpu_call c = {0};
    QN__PUSH_MEMORY(&c, &m[STEP], &m[LEFT], &m[RIGHT], &m[OF_GRAINS], &m[UNITS], &m[STATUS]);
    QN__PUSH_WIDE(&c, 0);
    QN__PUSH_NUMBERS(&c, ROWS, COLUMNS, (uint32_t)qn__gpu_ld(COLUMNS), 0, 0, GRAINS);
    QN__PUSH_FLOATS(&c, limit);
    QN__PUSH_NUMBERS(&c, k_blocks, QN_GRADIENT_ADD);
    qn_status status = set_step(s, NUMBERS - 3, grain, err);
    if (status == QN_OK)
        status = s->driver->clear(s->gpu, &m[UNITS], 0, sizeof s->o->units, err);
    if (status == QN_OK)
        status = s->driver->write(s->gpu, &m[STATUS], 0, &words, sizeof words, err);
    if (status == QN_OK)
        status = launch(s, kernel, &c, k_blocks, err);
    if (status == QN_OK)
        status =
            qn__gpu_read(s->driver, s->gpu, &m[UNITS], 0, s->o->units, sizeof s->o->units, err);
    if (status == QN_OK)
        status = qn__gpu_read(s->driver, s->gpu, &m[STATUS], 0, &words, sizeof words, err);
    for (int r = 0; status == QN_OK && r < ROWS; ++r)
        for (int o = 0; o < LD_COLUMNS; ++o) {
            const int64_t want = o < COLUMNS ? units_of(s, r, o, (int)grain, limit) : 0;
            if (words.bad_layer != 0 || s->o->units[r * LD_COLUMNS + o] != want)
                return refuse(s, kernel, r, o, err);
        }
    return status;
}

static qn_status upload(bench *s, qn_error *err) {
    operands *o = s->o;
    const struct {
        const void *from;
        size_t bytes;
    } pieces[MEMORIES] = {{NULL, sizeof(qn_step)},
                          {o->left_words, sizeof o->left_words},
                          {o->right_words, sizeof o->right_words},
                          {o->of_rows, sizeof o->of_rows},
                          {o->of_columns, sizeof o->of_columns},
                          {o->of_grains, sizeof o->of_grains},
                          {o->bias, sizeof o->bias},
                          {o->got, sizeof o->got},
                          {o->units, sizeof o->units},
                          {NULL, sizeof(qn_status_words)}};
    qn_status status = QN_OK;
    for (int i = 0; status == QN_OK && i < MEMORIES; ++i) {
        if (!s->memory[i].bytes)
            status = s->driver->allocate(s->gpu, pieces[i].bytes, &s->memory[i], err);
        if (status == QN_OK && pieces[i].from)
            status =
                s->driver->write(s->gpu, &s->memory[i], 0, pieces[i].from, pieces[i].bytes, err);
    }
    return status;
}

/* Grains of a few words and of many. */
static qn_status try_gradients(const bench *s, qn__kernel kernel, qn_error *err) {
    const qn_status status = try_gradient(s, kernel, NUMBERS / GRAINS, 3, err);
    return status == QN_OK ? try_gradient(s, kernel, NUMBERS / 2, 1, err) : status;
}

/* The kernels of one product for one digit; those for more follow them, as many each. */
static const struct family {
    qn__kernel first;
    uint32_t kernels;
    qn_status (*try)(const bench *s, qn__kernel kernel, qn_error *err);
} families[] = {{QN__K_INTGEMM_FORWARD_I7_LARGE, 2, try_forward},
                {QN__K_INTGEMM_ERRORS_I7_LARGE, 2, try_errors},
                {QN__K_INTGEMM_GRADIENT_I7_LARGE, 2, try_gradients},
                {QN__K_INTGEMM_FORWARD_I7_MATRIX_LARGE, 2, try_forward},
                {QN__K_INTGEMM_ERRORS_I7_MATRIX_LARGE, 2, try_errors},
                {QN__K_INTGEMM_GRADIENT_I7_MATRIX_SMALL, 1, try_gradients}};

enum { FAMILIES = sizeof families / sizeof *families };

static qn_status try_family(const bench *s, const struct family *f, qn_error *err) {
    const uint32_t before = f->kernels * ((uint32_t)s->digits - 1);
    for (uint32_t i = before; i < before + f->kernels; ++i) {
        const qn__kernel kernel = (qn__kernel)(f->first + i);
        if (!qn__kernel_belongs(kernel, QN__CUDA_C, s->products))
            continue;
        const qn_status status = f->try(s, kernel, err);
        if (status == QN_DEVICE)
            qn__at(err, "self-test of %s", qn__kernel_shape_of(kernel)->name);
        if (status != QN_OK)
            return status;
    }
    return QN_OK;
}

static qn_status try_width(bench *s, qn_error *err) {
    fill(s->o, s->digits);
    qn_status status = upload(s, err);
    for (int i = 0; status == QN_OK && i < FAMILIES; ++i)
        status = try_family(s, &families[i], err);
    return status;
}

qn_status qn__gpu_selftest_products(const qn__gpu_driver *driver, qn__gpu *gpu, uint32_t products,
                                    qn_error *err) {
    bench s = {.driver = driver,
               .gpu = gpu,
               .o = qn__alloc(1, sizeof(operands), err),
               .products = products};
    qn_status status = s.o ? QN_OK : QN_MEMORY;
    for (s.digits = 1; status == QN_OK && s.digits <= MOST_DIGITS; ++s.digits)
        if (products & (uint32_t)QN_WITH_I7 << (s.digits - 1))
            status = try_width(&s, err);
    for (int i = 0; i < MEMORIES; ++i)
        driver->release(gpu, &s.memory[i]);
    qn__free(s.o);
    return status;
}
