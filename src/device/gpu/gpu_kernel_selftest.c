/* The self-test for user kernels: the operations of kernels/runtime/operations.inc on chosen and
 * random numbers, by the device and by this processor. */
#include "base/binary/float_bits.h"
#include "base/system/float_state.h"
#include "base/memory.h"
#include "device/gpu/gpu.h"
#include "device/gpu/gpu_call.h"

#include <stdio.h>
#include <string.h>

/* The same text as C. */
#include "kernels/runtime/operations_c.inc"
#define QN_BITS32(x) qn__float_bits(x)
#define QN_BITS64(x) qn__double_bits(x)
#define QN_FLOAT_OF(bits) qn__float_of_bits((uint32_t)(bits))
#define QN_DOUBLE_OF(bits) qn__double_of_bits(bits)
#include "kernels/runtime/operations.inc"
#include "kernels/runtime/operation_trials.inc"

/* The trials' texts, for messages. */
#define NAME(...) #__VA_ARGS__,
static const char *const names[] = {
    QN_TRIALS_OF_REAL(NAME, f32, fa, fb, fc) QN_TRIALS_TO_INTEGER(NAME, f32, fa, fb)
        QN_TRIALS_TO_REAL(NAME, float) QN_TRIALS_OF_INTEGERS(NAME) "faults of integers",
    QN_TRIALS_OF_REAL(NAME, f64, da, db, dc) QN_TRIALS_TO_INTEGER(NAME, f64, da, db)
        QN_TRIALS_TO_REAL(NAME, double) "(float)da",
    "(double)fa"};
#undef NAME

enum {
    TRIALS = sizeof names / sizeof *names,
    OF_REAL = 14 + 10 + 4, /* trials of a real type */
    DOUBLES = OF_REAL + 2, /* those at the end */
    CASES = 512,
    LANES = 64
};

typedef struct trials {
    uint64_t in[6 * CASES], want[TRIALS * CASES], got[TRIALS * CASES];
} trials;

/* ---------------------------------------------------------------- numbers */

static const uint32_t singles[] = {0x00000000, 0x80000000, 0x00000001, 0x007fffff, 0x00800000,
                                   0x80800001, 0x3f000000, 0x3f7fffff, 0x3f800000, 0xbf800001,
                                   0x40490fdb, 0x4effffff, 0x4f000000, 0xcf000000, 0x5f000000,
                                   0xdf000001, 0x7f7fffff, 0x7f800000, 0xff800000, 0x7fc00000};
static const uint64_t doubles[] = {
    0x0000000000000000, 0x8000000000000000, 0x0000000000000001, 0x000fffffffffffff,
    0x0010000000000000, 0x8010000000000001, 0x3fe0000000000000, 0x3fefffffffffffff,
    0x3ff0000000000000, 0xbff0000000000001, 0x41dfffffffc00000, 0xc1e0000000000000,
    0x43dfffffffffffff, 0x43e0000000000000, 0xc3e0000000000000, 0x43f0000000000000,
    0x7fefffffffffffff, 0x7ff0000000000000, 0xfff0000000000000, 0x7ff8000000000000};
enum { SINGLES = sizeof singles / sizeof *singles, MANY = sizeof doubles / sizeof *doubles };

static uint64_t draw(uint64_t *state) {
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return *state ^ *state >> 29;
}

/* Chosen numbers, bits of any number, and numbers near 1, whose operations round most. */
static uint64_t draw_single(uint64_t *state) {
    const uint64_t bits = draw(state) >> 20, kind = draw(state) >> 40 & 3;
    if (kind == 0)
        return singles[bits % SINGLES];
    return kind == 1 ? (uint32_t)bits
                     : (bits & 0x80ffffff) | (uint32_t)(126 + (bits >> 36 & 3)) << 23;
}

static uint64_t draw_double(uint64_t *state) {
    const uint64_t high = draw(state), bits = high ^ draw(state) >> 31,
                   kind = draw(state) >> 40 & 3;
    if (kind == 0)
        return doubles[(bits >> 13) % MANY];
    return kind == 1 ? bits
                     : (bits & 0x800fffffffffffff) | (uint64_t)(1022 + (bits >> 60 & 3)) << 52;
}

static void fill(trials *t) {
    uint64_t state = 1;
    for (uint32_t k = 0; k < CASES; ++k) {
        for (uint32_t i = 0; i < 3; ++i) {
            t->in[6 * k + i] = draw_single(&state);
            t->in[6 * k + 3 + i] = draw_double(&state);
        }
        qn_trials(t->in + 6 * (size_t)k, t->want + k, CASES);
    }
}

/* ---------------------------------------------------------------- on the device */

static qn_status check(const trials *t, uint32_t count, const char *name, qn_error *err) {
    for (uint32_t i = 0; i < count * CASES; ++i) {
        if (t->got[i] == t->want[i])
            continue;
        const uint64_t *in = t->in + 6 * (size_t)(i % CASES);
        qn__fail(err, QN_UNSUPPORTED, "%s cannot be used: it computes %s wrongly", name,
                 names[i / CASES]);
        qn__at(err,
               "self-test of 0x%08x, 0x%08x, 0x%08x, 0x%llx, 0x%llx, 0x%llx: 0x%llx, where "
               "0x%llx is right",
               (unsigned)in[0], (unsigned)in[1], (unsigned)in[2], (unsigned long long)in[3],
               (unsigned long long)in[4], (unsigned long long)in[5], (unsigned long long)t->got[i],
               (unsigned long long)t->want[i]);
        return qn__remedy(err, QN_UNSUPPORTED,
                          "leave it out of `compute.devices`; a newer driver may fix it (and "
                          "options in the environment that make a driver faster and less exact "
                          "must go)");
    }
    return QN_OK;
}

static qn_status compute(const qn__gpu_driver *driver, qn__gpu *gpu, qn__gpu_program *program,
                         trials *t, uint32_t count, qn_error *err) {
    const size_t bytes = (size_t)count * CASES * sizeof *t->got;
    qn__gpu_memory in = {0}, out = {0};
    qn_status status = driver->allocate(gpu, sizeof t->in, &in, err);
    if (status == QN_OK)
        status = driver->allocate(gpu, bytes, &out, err);
    if (status == QN_OK)
        status = driver->write(gpu, &in, 0, t->in, sizeof t->in, err);
    const qn__gpu_argument arguments[] = {
        {'M', {.memory = &in}}, {'M', {.memory = &out}}, {'u', {.u = CASES}}};
    if (status == QN_OK)
        status = driver->start(gpu, program, CASES / LANES, arguments, 3, err);
    if (status == QN_OK)
        status = qn__gpu_read(driver, gpu, &out, 0, t->got, bytes, err);
    driver->release(gpu, &in);
    driver->release(gpu, &out);
    return status == QN_OK ? check(t, count, driver->facts(gpu)->name, err) : status;
}

/* The text of the trials' program; NULL: out of memory. */
static char *text_of(qn__language language, qn_error *err) {
    const char *head = qn__exact_text(language), *rest = qn__operation_trials_text();
    const size_t size = strlen(head) + strlen(rest) + 1;
    char *text = qn__alloc(size, 1, err);
    if (text)
        snprintf(text, size, "%s%s", head, rest);
    return text;
}

qn_status qn__gpu_kernel_selftest(const qn__gpu_driver *driver, qn__gpu *gpu, int with_doubles,
                                  qn_error *err) {
    char *text = text_of(driver->language, err);
    trials *t = qn__alloc(1, sizeof *t, err);
    qn__gpu_program *program = NULL;
    qn_status status = text && t ? QN_OK : QN_MEMORY;
    const qn__gpu_text source = {
        .text = text, .kernel = "qn_user_trials", .lanes = LANES, .doubles = with_doubles};
    if (status == QN_OK)
        status = driver->build(gpu, &source, &program, err);
    qn__float_state_set(); /* the driver's compiler was loaded on this thread */
    if (status == QN_OK) {
        const int all = with_doubles || driver->language == QN__CUDA_C;
        fill(t);
        status = compute(driver, gpu, program, t, all ? TRIALS : TRIALS - DOUBLES, err);
    }
    driver->drop(gpu, program);
    qn__free(t);
    qn__free(text);
    return status;
}
