#include "kernels/kernels.h"

#include "base/digest/sha256.h"
#include "kernel_text.h"
#include "kernels/step.h"
#include "num/elementary.h"
#include "num/elementary_scalar.h"
#include <pthread.h>
#include <string.h>

#define V_FN static inline
#define V_NAME(f) qn__##f
#include "kernels/training/losses.inc"

#define SHAPE(KERNEL, NAME, ARGUMENTS, LANES, ROWS, COLUMNS, SHARE, PRODUCTS)                      \
    {"qn_" #NAME, ARGUMENTS, {LANES, 1}, ROWS, COLUMNS, SHARE, (LANES) == 1, PRODUCTS},
static const qn__kernel_shape shapes[QN__KERNELS] = {QN__KERNEL_LIST(SHAPE)};
#undef SHAPE

const qn__kernel_shape *qn__kernel_shape_of(qn__kernel kernel) { return &shapes[kernel]; }

int qn__kernel_belongs(qn__kernel kernel, qn__language language, uint32_t products) {
    const qn__kernel_shape *s = &shapes[kernel];
    return (s->products & QN_WITH_ALL & products) != 0 &&
           (s->products & ~QN_WITH_ALL & ~products) == 0 &&
           !(s->opencl_only && language == QN__CUDA_C);
}

/* The compiler demands a case for each value of an enum (-Wswitch). */
uint32_t qn__kernel_products(qn__arith arith) {
    switch (arith) {
    case QN__ARITH_F32:
        return QN_WITH_F32;
    case QN__ARITH_I7:
        return QN_WITH_I7;
    case QN__ARITH_I14:
        return QN_WITH_I14;
    case QN__ARITH_I21:
        return QN_WITH_I21;
    }
    return 0;
}

uint32_t qn__kernel_activation(qn__activation activation) {
    switch (activation) {
#define CASE(NAME, name)                                                                           \
    case QN__ACT_##NAME:                                                                           \
        return QN_ACT_##NAME;
        QN_ACTIVATIONS(CASE)
#undef CASE
    }
    return QN_ACT_KINDS;
}

uint32_t qn__kernel_optimizer(qn__optimizer optimizer) {
    switch (optimizer) {
#define CASE(NAME, name, slots)                                                                    \
    case QN__OPT_##NAME:                                                                           \
        return QN_OPT_##NAME;
        QN_OPTIMIZERS(CASE)
    case QN__OPT_LBFGS: /* never a worker's */
        break;
#undef CASE
    }
    return QN_OPT_KINDS;
}

uint32_t qn__kernel_scale(qn__scale scale) {
    switch (scale) {
#define CASE(NAME, name)                                                                           \
    case QN__SCALE_##NAME:                                                                         \
        return QN_SCALE_##NAME;
        QN_SCALES(CASE)
#undef CASE
    case QN__SCALE_CHANNEL: /* programs have none of these */
    case QN__SCALE_MINMAX:
    case QN__SCALE_ROBUST:
        break;
    }
    return QN_SCALE_KINDS;
}

uint32_t qn__kernel_loss(qn__loss loss) {
    switch (loss) {
#define CASE(NAME, name)                                                                           \
    case QN__LOSS_##NAME:                                                                          \
        return QN_LOSS_##NAME;
        QN_LOSSES(CASE, CASE)
#undef CASE
    }
    return QN_LOSS_KINDS;
}

qn__kernel qn__kernel_vector(qn__kernel kernel) {
    const int has_one = shapes[kernel].tile_rows == 0 && kernel + 1 < QN__KERNELS &&
                        shapes[kernel + 1].opencl_only && !shapes[kernel].opencl_only;
    return has_one ? (qn__kernel)(kernel + 1) : kernel;
}

const char *qn__kernel_text(qn__language language) {
    return language == QN__CUDA_C ? qn__text_cuda : qn__text_opencl;
}

const char *qn__math_text(qn__language language) {
    return language == QN__CUDA_C ? qn__text_math_cuda : qn__text_math_opencl;
}

const char *qn__exact_text(qn__language language) {
    return language == QN__CUDA_C ? qn__text_exact_cuda : qn__text_exact_opencl;
}

const char *qn__operations_text(void) { return qn__text_operations; }
const char *qn__operation_trials_text(void) { return qn__text_operation_trials; }
const char *qn__totals_text(void) { return qn__text_totals; }
const char *qn__pairs_text(void) { return qn__text_pairs; }
const char *qn__columns_text(void) { return qn__text_columns; }

static pthread_once_t digests_once = PTHREAD_ONCE_INIT;
static char digests[2][65];

static void make_digests(void) {
    for (int language = 0; language < 2; ++language) {
        const char *text = qn__kernel_text((qn__language)language);
        uint8_t raw[32];
        qn__sha256_of(text, strlen(text), raw);
        qn__hex(raw, digests[language]);
    }
}

const char *qn__kernel_digest(qn__language language) {
    pthread_once(&digests_once, make_digests);
    return digests[language];
}

const char *qn__kernel_options(qn__language language) {
    return language == QN__CUDA_C
               ? "--std=c++17 --fmad=false --ftz=false --prec-div=true --prec-sqrt=true"
               : "-cl-std=CL1.2 -w"; /* PoCL prints how many warnings there were to stderr */
}
