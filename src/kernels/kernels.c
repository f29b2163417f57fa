#include "kernels/kernels.h"

#include "base/sha256.h"
#include "kernel_text.h"
#include "kernels/step.h"
#include <pthread.h>
#include <string.h>

/* Lanes and tiles here are those of the text: tile_large.cl, tile_small.cl and the others. */
static const qn__kernel_shape shapes[QN__KERNELS] = {
    [QN__K_FETCH] = {"qn_fetch", "MMMMMMMMMMuuuu", {128, 1}, 0, 0, 1, 0, QN_WITH_ALL},
    [QN__K_FETCH_VECTOR] = {"qn_fetch_vector", "MMMMMMMMMMuuuu", {1, 1}, 0, 0, 4, 1, QN_WITH_ALL},
    [QN__K_FORWARD_LARGE] =
        {"qn_forward_large", "MMMUUMMMuuuuufU", {256, 1}, 128, 128, 0, 0, QN_WITH_F32},
    [QN__K_FORWARD_MEDIUM] =
        {"qn_forward_medium", "MMMUUMMMuuuuufU", {128, 1}, 64, 64, 0, 0, QN_WITH_F32},
    [QN__K_FORWARD_SMALL] =
        {"qn_forward_small", "MMMUUMMMuuuuufU", {128, 1}, 16, 32, 0, 0, QN_WITH_F32},
    [QN__K_FORWARD_VECTOR] =
        {"qn_forward_vector", "MMMUUMMMuuuuufU", {1, 1}, 96, 32, 0, 1, QN_WITH_ALL},
    [QN__K_LOSS] = {"qn_loss", "MMMMMMMMuuufu", {64, 1}, 0, 0, 1, 0, QN_WITH_ALL},
    [QN__K_LOSS_VECTOR] = {"qn_loss_vector", "MMMMMMMMuuufu", {1, 1}, 0, 0, 16, 1, QN_WITH_ALL},
    [QN__K_ERRORS_LARGE] =
        {"qn_errors_large", "MMMUMMMuuuuufU", {256, 1}, 128, 128, 0, 0, QN_WITH_F32},
    [QN__K_ERRORS_MEDIUM] =
        {"qn_errors_medium", "MMMUMMMuuuuufU", {128, 1}, 64, 64, 0, 0, QN_WITH_F32},
    [QN__K_ERRORS_SMALL] =
        {"qn_errors_small", "MMMUMMMuuuuufU", {128, 1}, 16, 32, 0, 0, QN_WITH_F32},
    [QN__K_ERRORS_VECTOR] =
        {"qn_errors_vector", "MMMUMMMuuuuufU", {1, 1}, 96, 32, 0, 1, QN_WITH_ALL},
    [QN__K_GRADIENT_LARGE] =
        {"qn_gradient_large", "MMMMMUuuufuu", {128, 1}, 64, 64, 0, 0, QN_WITH_F32},
    [QN__K_GRADIENT_SMALL] =
        {"qn_gradient_small", "MMMMMUuuufuu", {64, 1}, 32, 32, 0, 0, QN_WITH_F32},
    [QN__K_GRADIENT_VECTOR] =
        {"qn_gradient_vector", "MMMMMUuuufuu", {1, 1}, 48, 64, 0, 1, QN_WITH_ALL},
    [QN__K_LEARN_VECTOR] =
        {"qn_learn_vector", "MMMMMMMUuuufufffffff", {1, 1}, 48, 64, 0, 1, QN_WITH_ALL},
    [QN__K_BIAS] = {"qn_bias", "MMMMUuufu", {256, 1}, 0, 0, 16, 0, QN_WITH_ALL},
    [QN__K_BIAS_VECTOR] = {"qn_bias_vector", "MMMMUuufu", {1, 1}, 0, 0, 64, 1, QN_WITH_ALL},
    [QN__K_UPDATE] = {"qn_update", "MMMMMUUufffffff", {256, 1}, 0, 0, 256, 0, QN_WITH_ALL},
    [QN__K_UPDATE_VECTOR] =
        {"qn_update_vector", "MMMMMUUufffffff", {1, 1}, 0, 0, 4096, 1, QN_WITH_ALL},
    [QN__K_QUANTIZE_ITEMS] =
        {"qn_quantize_items", "MMMMMMMuuuuuu", {128, 1}, 0, 0, 1, 0, QN_WITH_INTGEMM},
    [QN__K_QUANTIZE_GRAINS] =
        {"qn_quantize_grains", "MMMMuuu", {256, 1}, 0, 0, 1, 0, QN_WITH_INTGEMM},
    [QN__K_ABSMAX] = {"qn_absmax", "MMUuuu", {256, 1}, 0, 0, 1, 0, QN_WITH_INTGEMM},
    [QN__K_QUANTIZE_WEIGHTS] =
        {"qn_quantize_weights", "MMMMUuuuuu", {256, 1}, 0, 0, 1, 0, QN_WITH_INTGEMM},
    [QN__K_INTGEMM_FORWARD_I7_LARGE] = {"qn_intgemm_forward_i7_large",
                                        "MMMMMMUMMMuuuuuufU",
                                        {256, 1},
                                        64,
                                        64,
                                        0,
                                        0,
                                        QN_WITH_I7 | QN_WITH_LARGE},
    [QN__K_INTGEMM_FORWARD_I7_SMALL] =
        {"qn_intgemm_forward_i7_small", "MMMMMMUMMMuuuuuufU", {128, 1}, 16, 32, 0, 0, QN_WITH_I7},
    [QN__K_INTGEMM_FORWARD_I14_LARGE] = {"qn_intgemm_forward_i14_large",
                                         "MMMMMMUMMMuuuuuufU",
                                         {256, 1},
                                         64,
                                         64,
                                         0,
                                         0,
                                         QN_WITH_I14 | QN_WITH_LARGE},
    [QN__K_INTGEMM_FORWARD_I14_SMALL] =
        {"qn_intgemm_forward_i14_small", "MMMMMMUMMMuuuuuufU", {128, 1}, 16, 32, 0, 0, QN_WITH_I14},
    [QN__K_INTGEMM_FORWARD_I21_LARGE] = {"qn_intgemm_forward_i21_large",
                                         "MMMMMMUMMMuuuuuufU",
                                         {256, 1},
                                         64,
                                         64,
                                         0,
                                         0,
                                         QN_WITH_I21 | QN_WITH_LARGE},
    [QN__K_INTGEMM_FORWARD_I21_SMALL] =
        {"qn_intgemm_forward_i21_small", "MMMMMMUMMMuuuuuufU", {128, 1}, 16, 32, 0, 0, QN_WITH_I21},
    [QN__K_INTGEMM_ERRORS_I7_LARGE] = {"qn_intgemm_errors_i7_large",
                                       "MMMMMMMuuuuufU",
                                       {256, 1},
                                       64,
                                       64,
                                       0,
                                       0,
                                       QN_WITH_I7 | QN_WITH_LARGE},
    [QN__K_INTGEMM_ERRORS_I7_SMALL] =
        {"qn_intgemm_errors_i7_small", "MMMMMMMuuuuufU", {128, 1}, 16, 32, 0, 0, QN_WITH_I7},
    [QN__K_INTGEMM_ERRORS_I14_LARGE] = {"qn_intgemm_errors_i14_large",
                                        "MMMMMMMuuuuufU",
                                        {256, 1},
                                        64,
                                        64,
                                        0,
                                        0,
                                        QN_WITH_I14 | QN_WITH_LARGE},
    [QN__K_INTGEMM_ERRORS_I14_SMALL] =
        {"qn_intgemm_errors_i14_small", "MMMMMMMuuuuufU", {128, 1}, 16, 32, 0, 0, QN_WITH_I14},
    [QN__K_INTGEMM_ERRORS_I21_LARGE] = {"qn_intgemm_errors_i21_large",
                                        "MMMMMMMuuuuufU",
                                        {256, 1},
                                        64,
                                        64,
                                        0,
                                        0,
                                        QN_WITH_I21 | QN_WITH_LARGE},
    [QN__K_INTGEMM_ERRORS_I21_SMALL] =
        {"qn_intgemm_errors_i21_small", "MMMMMMMuuuuufU", {128, 1}, 16, 32, 0, 0, QN_WITH_I21},
    [QN__K_INTGEMM_GRADIENT_I7_LARGE] = {"qn_intgemm_gradient_i7_large",
                                         "MMMMMMUuuuuufuu",
                                         {256, 1},
                                         64,
                                         64,
                                         0,
                                         0,
                                         QN_WITH_I7 | QN_WITH_LARGE},
    [QN__K_INTGEMM_GRADIENT_I7_SMALL] =
        {"qn_intgemm_gradient_i7_small", "MMMMMMUuuuuufuu", {128, 1}, 16, 32, 0, 0, QN_WITH_I7},
    [QN__K_INTGEMM_GRADIENT_I14_LARGE] = {"qn_intgemm_gradient_i14_large",
                                          "MMMMMMUuuuuufuu",
                                          {256, 1},
                                          64,
                                          64,
                                          0,
                                          0,
                                          QN_WITH_I14 | QN_WITH_LARGE},
    [QN__K_INTGEMM_GRADIENT_I14_SMALL] =
        {"qn_intgemm_gradient_i14_small", "MMMMMMUuuuuufuu", {128, 1}, 16, 32, 0, 0, QN_WITH_I14},
    [QN__K_INTGEMM_GRADIENT_I21_LARGE] = {"qn_intgemm_gradient_i21_large",
                                          "MMMMMMUuuuuufuu",
                                          {256, 1},
                                          64,
                                          64,
                                          0,
                                          0,
                                          QN_WITH_I21 | QN_WITH_LARGE},
    [QN__K_INTGEMM_GRADIENT_I21_SMALL] =
        {"qn_intgemm_gradient_i21_small", "MMMMMMUuuuuufuu", {128, 1}, 16, 32, 0, 0, QN_WITH_I21},
    [QN__K_INTGEMM_FORWARD_I7_MATRIX_LARGE] = {"qn_intgemm_forward_i7_matrix_large",
                                               "MMMMMMUMMMuuuuuufU",
                                               {256, 1},
                                               128,
                                               128,
                                               0,
                                               0,
                                               QN_WITH_I7 | QN_WITH_MATRIX},
    [QN__K_INTGEMM_FORWARD_I7_MATRIX_SMALL] = {"qn_intgemm_forward_i7_matrix_small",
                                               "MMMMMMUMMMuuuuuufU",
                                               {128, 1},
                                               64,
                                               64,
                                               0,
                                               0,
                                               QN_WITH_I7 | QN_WITH_MATRIX},
    [QN__K_INTGEMM_FORWARD_I14_MATRIX_LARGE] = {"qn_intgemm_forward_i14_matrix_large",
                                                "MMMMMMUMMMuuuuuufU",
                                                {256, 1},
                                                128,
                                                128,
                                                0,
                                                0,
                                                QN_WITH_I14 | QN_WITH_MATRIX},
    [QN__K_INTGEMM_FORWARD_I14_MATRIX_SMALL] = {"qn_intgemm_forward_i14_matrix_small",
                                                "MMMMMMUMMMuuuuuufU",
                                                {128, 1},
                                                64,
                                                64,
                                                0,
                                                0,
                                                QN_WITH_I14 | QN_WITH_MATRIX},
    [QN__K_INTGEMM_FORWARD_I21_MATRIX_LARGE] = {"qn_intgemm_forward_i21_matrix_large",
                                                "MMMMMMUMMMuuuuuufU",
                                                {256, 1},
                                                64,
                                                128,
                                                0,
                                                0,
                                                QN_WITH_I21 | QN_WITH_MATRIX},
    [QN__K_INTGEMM_FORWARD_I21_MATRIX_SMALL] = {"qn_intgemm_forward_i21_matrix_small",
                                                "MMMMMMUMMMuuuuuufU",
                                                {256, 1},
                                                64,
                                                64,
                                                0,
                                                0,
                                                QN_WITH_I21 | QN_WITH_MATRIX},
    [QN__K_INTGEMM_ERRORS_I7_MATRIX_LARGE] = {"qn_intgemm_errors_i7_matrix_large",
                                              "MMMMMMMuuuuufU",
                                              {256, 1},
                                              128,
                                              128,
                                              0,
                                              0,
                                              QN_WITH_I7 | QN_WITH_MATRIX},
    [QN__K_INTGEMM_ERRORS_I7_MATRIX_SMALL] = {"qn_intgemm_errors_i7_matrix_small",
                                              "MMMMMMMuuuuufU",
                                              {128, 1},
                                              64,
                                              64,
                                              0,
                                              0,
                                              QN_WITH_I7 | QN_WITH_MATRIX},
    [QN__K_INTGEMM_ERRORS_I14_MATRIX_LARGE] = {"qn_intgemm_errors_i14_matrix_large",
                                               "MMMMMMMuuuuufU",
                                               {256, 1},
                                               128,
                                               128,
                                               0,
                                               0,
                                               QN_WITH_I14 | QN_WITH_MATRIX},
    [QN__K_INTGEMM_ERRORS_I14_MATRIX_SMALL] = {"qn_intgemm_errors_i14_matrix_small",
                                               "MMMMMMMuuuuufU",
                                               {128, 1},
                                               64,
                                               64,
                                               0,
                                               0,
                                               QN_WITH_I14 | QN_WITH_MATRIX},
    [QN__K_INTGEMM_ERRORS_I21_MATRIX_LARGE] = {"qn_intgemm_errors_i21_matrix_large",
                                               "MMMMMMMuuuuufU",
                                               {256, 1},
                                               64,
                                               128,
                                               0,
                                               0,
                                               QN_WITH_I21 | QN_WITH_MATRIX},
    [QN__K_INTGEMM_ERRORS_I21_MATRIX_SMALL] = {"qn_intgemm_errors_i21_matrix_small",
                                               "MMMMMMMuuuuufU",
                                               {256, 1},
                                               64,
                                               64,
                                               0,
                                               0,
                                               QN_WITH_I21 | QN_WITH_MATRIX},
    [QN__K_INTGEMM_GRADIENT_I7_MATRIX_SMALL] = {"qn_intgemm_gradient_i7_matrix_small",
                                                "MMMMMMUuuuuufuu",
                                                {128, 1},
                                                64,
                                                64,
                                                0,
                                                0,
                                                QN_WITH_I7 | QN_WITH_MATRIX},
    [QN__K_INTGEMM_GRADIENT_I14_MATRIX_SMALL] = {"qn_intgemm_gradient_i14_matrix_small",
                                                 "MMMMMMUuuuuufuu",
                                                 {128, 1},
                                                 64,
                                                 64,
                                                 0,
                                                 0,
                                                 QN_WITH_I14 | QN_WITH_MATRIX},
    [QN__K_INTGEMM_GRADIENT_I21_MATRIX_SMALL] = {"qn_intgemm_gradient_i21_matrix_small",
                                                 "MMMMMMUuuuuufuu",
                                                 {256, 1},
                                                 64,
                                                 64,
                                                 0,
                                                 0,
                                                 QN_WITH_I21 | QN_WITH_MATRIX},
    [QN__K_TALLY] = {"qn_tally", "MMMMMMu", {256, 1}, 0, 0, 0, 0, QN_WITH_ALL},
    [QN__K_SUMS_OUT] = {"qn_sums_out", "MMUuuU", {256, 1}, 0, 0, 256, 0, QN_WITH_ALL},
    [QN__K_SUMS_OUT_VECTOR] = {"qn_sums_out_vector", "MMUuuU", {1, 1}, 0, 0, 4096, 1, QN_WITH_ALL},
    [QN__K_SUMS_IN] = {"qn_sums_in", "MMUuuU", {256, 1}, 0, 0, 256, 0, QN_WITH_ALL},
    [QN__K_SUMS_IN_VECTOR] = {"qn_sums_in_vector", "MMUuuU", {1, 1}, 0, 0, 4096, 1, QN_WITH_ALL},
    [QN__K_MAP] = {"qn_map", "MMUu", {256, 1}, 0, 0, 256, 0, QN_WITH_ALL},
    [QN__K_MAP_VECTOR] = {"qn_map_vector", "MMUu", {1, 1}, 0, 0, 4096, 1, QN_WITH_ALL},
    [QN__K_TRIAL] = {"qn_trial", "MMMMUu", {256, 1}, 0, 0, 256, 0, QN_WITH_ALL},
};

const qn__kernel_shape *qn__kernel_shape_of(qn__kernel kernel) { return &shapes[kernel]; }

int qn__kernel_belongs(qn__kernel kernel, qn__language language, uint32_t products) {
    const qn__kernel_shape *s = &shapes[kernel];
    return (s->products & QN_WITH_ALL & products) != 0 &&
           (s->products & ~QN_WITH_ALL & ~products) == 0 &&
           !(s->opencl_only && language == QN__CUDA_C);
}

uint32_t qn__kernel_products(qn__arith arith) { return UINT32_C(1) << arith; }

qn__kernel qn__kernel_vector(qn__kernel kernel) {
    switch (kernel) {
    case QN__K_FETCH:
        return QN__K_FETCH_VECTOR;
    case QN__K_LOSS:
        return QN__K_LOSS_VECTOR;
    case QN__K_BIAS:
        return QN__K_BIAS_VECTOR;
    case QN__K_UPDATE:
        return QN__K_UPDATE_VECTOR;
    case QN__K_SUMS_OUT:
        return QN__K_SUMS_OUT_VECTOR;
    case QN__K_SUMS_IN:
        return QN__K_SUMS_IN_VECTOR;
    case QN__K_MAP:
        return QN__K_MAP_VECTOR;
    default:
        return kernel;
    }
}

const char *qn__kernel_text(qn__language language) {
    return language == QN__CUDA_C ? qn__text_cuda : qn__text_opencl;
}

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
               : "-cl-std=CL1.2";
}
