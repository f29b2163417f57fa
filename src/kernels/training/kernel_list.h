/* The kernels, one row each. The enum of kernels and the table of their shapes are made from this
 * list. A new kernel is a row here, its text in a .cl file, and its arguments in kernels.h.
 *
 * Variants of a product are consecutive, from large tiles to small ones, with the vector variant
 * for CPU devices last: the host tries them in this order. For other kernels the vector variant
 * follows the kernel. Lanes and tiles are those of the text: tile_large.cl, intgemm_small.cl and
 * the others. Gradients by matrix instructions have small tiles only, since larger ones do not fit
 * the registers. */
#ifndef QN_KERNELS_TRAINING_KERNEL_LIST_H
#define QN_KERNELS_TRAINING_KERNEL_LIST_H

#include "kernels/step.h"

/* The arguments of kernels that have variants, one letter each (kernels.h). */
#define QN__FETCH_TAKES "MMMMMMMMMMMMuuuu"
#define QN__LOSS_TAKES "MMMMMMMMMuuuffu"
#define QN__FORWARD_TAKES "MMMUUMMMuuuuuufU"
#define QN__ERRORS_TAKES "MMMUMMMuuuuufU"
#define QN__GRADIENT_TAKES "MMMMMUuuuufuu"
#define QN__INTGEMM_FORWARD_TAKES "MMMMMMUMMMuuuuuuufU"
#define QN__INTGEMM_ERRORS_TAKES "MMMMMMMuuuuufU"
#define QN__INTGEMM_GRADIENT_TAKES "MMMMMMUuuuuuufuu"

#define QN__UNFOLD_TAKES "MMMMMuuuuuu"
#define QN__PIXELS_FORWARD_TAKES "MMMMMMMMUUuuuuuuuufU"
#define QN__PIXELS_ERRORS_TAKES "MMMMMMMMuuuuuuuufU"

/* Rows of an integer product of B bits: one for tiles of a size, one for matrix instructions. */
#define QN__INTGEMM_ROW(ROW, P, p, B, b, T, t, LANES, ROWS, COLUMNS, TILES)                        \
    ROW(INTGEMM_##P##_##B##_##T, intgemm_##p##_##b##_##t, QN__INTGEMM_##P##_TAKES, LANES, ROWS,    \
        COLUMNS, 0, QN_WITH_##B | TILES)
#define QN__MATRIX_ROW(ROW, P, p, B, b, T, t, LANES, ROWS, COLUMNS)                                \
    QN__INTGEMM_ROW(ROW, P, p, B, b, MATRIX_##T, matrix_##t, LANES, ROWS, COLUMNS, QN_WITH_MATRIX)

/* Layers with pixels have the same kernels in all arithmetics. */
#define QN__WITH_PIXELS (QN_WITH_ALL | QN_WITH_PIXELS)
#define QN__WITH_PIXELS_INTGEMM (QN_WITH_INTGEMM | QN_WITH_PIXELS)

/* ROW(number, name, arguments, lanes, rows and columns of a tile, share, products): the members of
 * qn__kernel_shape. A kernel of one lane is a vector kernel, for CPU devices. */
#define QN__KERNEL_LIST(ROW)                                                                       \
    ROW(FETCH, fetch, QN__FETCH_TAKES, 128, 0, 0, 1, QN_WITH_ALL)                                  \
    ROW(FETCH_VECTOR, fetch_vector, QN__FETCH_TAKES, 1, 0, 0, 4, QN_WITH_ALL)                      \
    ROW(FORWARD_LARGE, forward_large, QN__FORWARD_TAKES, 256, 128, 128, 0, QN_WITH_F32)            \
    ROW(FORWARD_MEDIUM, forward_medium, QN__FORWARD_TAKES, 128, 64, 64, 0, QN_WITH_F32)            \
    ROW(FORWARD_SMALL, forward_small, QN__FORWARD_TAKES, 128, 16, 32, 0, QN_WITH_F32)              \
    ROW(FORWARD_VECTOR, forward_vector, QN__FORWARD_TAKES, 1, 96, 32, 0, QN_WITH_ALL)              \
    ROW(GATE, gate, "MMMMMuuuuuufU", 256, 0, 0, 256, QN_WITH_ALL)                                  \
    ROW(LOSS, loss, QN__LOSS_TAKES, 64, 0, 0, 1, QN_WITH_ALL)                                      \
    ROW(LOSS_VECTOR, loss_vector, QN__LOSS_TAKES, 1, 0, 0, 16, QN_WITH_ALL)                        \
    ROW(ANSWERS, answers, "MMMMMMMMuuuuuuuffu", 64, 0, 0, 64, QN__WITH_PIXELS)                     \
    ROW(ANSWERS_AGAIN, answers_again, "MMMMMMuuuuuuuuuff", 128, 0, 0, 128, QN__WITH_PIXELS)        \
    ROW(ANSWER_LINES, answer_lines, "MMMMMuu", 64, 0, 0, 64, QN__WITH_PIXELS)                      \
    ROW(ANSWER_ITEMS, answer_items, "MMMMMMMMu", 64, 0, 0, 64, QN__WITH_PIXELS)                    \
    ROW(ERRORS_LARGE, errors_large, QN__ERRORS_TAKES, 256, 128, 128, 0, QN_WITH_F32)               \
    ROW(ERRORS_MEDIUM, errors_medium, QN__ERRORS_TAKES, 128, 64, 64, 0, QN_WITH_F32)               \
    ROW(ERRORS_SMALL, errors_small, QN__ERRORS_TAKES, 128, 16, 32, 0, QN_WITH_F32)                 \
    ROW(ERRORS_VECTOR, errors_vector, QN__ERRORS_TAKES, 1, 96, 32, 0, QN_WITH_ALL)                 \
    ROW(GRADIENT_LARGE, gradient_large, QN__GRADIENT_TAKES, 128, 64, 64, 0, QN_WITH_F32)           \
    ROW(GRADIENT_SMALL, gradient_small, QN__GRADIENT_TAKES, 64, 32, 32, 0, QN_WITH_F32)            \
    ROW(GRADIENT_VECTOR, gradient_vector, QN__GRADIENT_TAKES, 1, 48, 64, 0, QN_WITH_ALL)           \
    ROW(LEARN_VECTOR, learn_vector, "MMMMMMMUuuufuffffffff", 1, 48, 64, 0, QN_WITH_ALL)            \
    ROW(BIAS, bias, "MMMMUuufu", 256, 0, 0, 16, QN_WITH_ALL)                                       \
    ROW(BIAS_VECTOR, bias_vector, "MMMMUuufu", 1, 0, 0, 64, QN_WITH_ALL)                           \
    ROW(LISTS_FORWARD, lists_forward, "MMMMMMMMMUUuuuuuufU", 128, 0, 0, 8, QN_WITH_F32)            \
    ROW(LISTS_GRADIENT, lists_gradient, "MMMMMMMMUuuuuf", 128, 0, 0, 8, QN_WITH_F32)               \
    ROW(UPDATE, update, "MMMMMUUuffffffff", 256, 0, 0, 256, QN_WITH_ALL)                           \
    ROW(UPDATE_VECTOR, update_vector, "MMMMMUUuffffffff", 1, 0, 0, 4096, QN_WITH_ALL)              \
    ROW(AVERAGE, average, "MMMUU", 256, 0, 0, 256, QN_WITH_ALL)                                    \
    ROW(UNFOLD, unfold, QN__UNFOLD_TAKES, 128, 0, 0, 128, QN__WITH_PIXELS)                         \
    ROW(TRANSPOSE_WEIGHTS, transpose_weights, "MMUuuu", 128, 0, 0, 8, QN__WITH_PIXELS)             \
    ROW(PIXELS_FORWARD, pixels_forward, QN__PIXELS_FORWARD_TAKES, 128, 0, 0, 8, QN__WITH_PIXELS)   \
    ROW(PIXELS_ERRORS, pixels_errors, QN__PIXELS_ERRORS_TAKES, 128, 0, 0, 8, QN__WITH_PIXELS)      \
    ROW(POOL_FORWARD, pool_forward, "MMMMuuf", 128, 0, 0, 8, QN__WITH_PIXELS)                      \
    ROW(POOL_ERRORS, pool_errors, "MMMMMuuf", 128, 0, 0, 8, QN__WITH_PIXELS)                       \
    ROW(ADD_FORWARD, add_forward, "MMMMMMMuuuufU", 128, 0, 0, 8, QN__WITH_PIXELS)                  \
    ROW(MULTIPLY_FORWARD, multiply_forward, "MMMMMMMuuuuuuufU", 128, 0, 0, 8, QN__WITH_PIXELS)     \
    ROW(MULTIPLY_ERRORS, multiply_errors, "MMMMMuuuuu", 128, 0, 0, 8, QN__WITH_PIXELS)             \
    ROW(CONCAT_FORWARD, concat_forward, "MMMMMMMuuuuuuufU", 128, 0, 0, 8, QN__WITH_PIXELS)         \
    ROW(CONCAT_ERRORS, concat_errors, "MMMMMuuuuu", 128, 0, 0, 8, QN__WITH_PIXELS)                 \
    ROW(NORM_SUMS, norm_sums, "MMMMMMuuu", 128, 0, 0, 8, QN__WITH_PIXELS)                          \
    ROW(NORM_MOMENTS, norm_moments, "MMMMMuuu", 128, 0, 0, 8, QN__WITH_PIXELS)                     \
    ROW(NORM_FORWARD, norm_forward, "MMMMMMMMUuuuuufU", 128, 0, 0, 8, QN__WITH_PIXELS)             \
    ROW(NORM_ERRORS, norm_errors, "MMMMMMMUuuu", 128, 0, 0, 8, QN__WITH_PIXELS)                    \
    ROW(NORM_GRADIENT, norm_gradient, "MMMMUuuuufu", 128, 0, 0, 128, QN__WITH_PIXELS)              \
    ROW(NORM_UPDATE, norm_update, "MMMUuf", 128, 0, 0, 128, QN__WITH_PIXELS)                       \
    ROW(ITEM_NORM_SUMS, item_norm_sums, "MMMMMMuuu", 128, 0, 0, 8, QN__WITH_PIXELS)                \
    ROW(ITEM_NORM_MOMENTS, item_norm_moments, "MMMMMMUuuu", 128, 0, 0, 8, QN__WITH_PIXELS)         \
    ROW(ITEM_NORM_FORWARD, item_norm_forward, "MMMMMMMMUuuuuufU", 128, 0, 0, 8, QN__WITH_PIXELS)   \
    ROW(ITEM_NORM_ERRORS, item_norm_errors, "MMMMMMMUuuu", 128, 0, 0, 8, QN__WITH_PIXELS)          \
    ROW(ITEM_NORM_GRADIENT, item_norm_gradient, "MMMMMUuuuufu", 128, 0, 0, 128, QN__WITH_PIXELS)   \
    ROW(LAYERSCALE_FORWARD, layerscale_forward, "MMMMMMMUuuuufU", 128, 0, 0, 8, QN__WITH_PIXELS)   \
    ROW(LAYERSCALE_ERRORS, layerscale_errors, "MMMMMUuu", 128, 0, 0, 8, QN__WITH_PIXELS)           \
    ROW(LAYERSCALE_GRADIENT, layerscale_gradient, "MMMMMMUuufuu", 128, 0, 0, 128, QN__WITH_PIXELS) \
    ROW(EMBEDDING_FORWARD, embedding_forward, "MMMMMMUuuuuuuuufU", 128, 0, 0, 8, QN__WITH_PIXELS)  \
    ROW(RMS_NORM_MOMENTS, rms_norm_moments, "MMMMMMUuu", 128, 0, 0, 8, QN__WITH_PIXELS)            \
    ROW(RMS_NORM_FORWARD, rms_norm_forward, "MMMMMMMMUuuuuufU", 128, 0, 0, 8, QN__WITH_PIXELS)     \
    ROW(RMS_NORM_ERRORS, rms_norm_errors, "MMMMMMMUuuu", 128, 0, 0, 8, QN__WITH_PIXELS)            \
    ROW(RMS_NORM_GRADIENT, rms_norm_gradient, "MMMMMMMUuufuu", 128, 0, 0, 128, QN__WITH_PIXELS)    \
    ROW(EMBEDDING_LINKS, embedding_links, "MMMuuu", 128, 0, 0, 128, QN__WITH_PIXELS)               \
    ROW(EMBEDDING_GRADIENT, embedding_gradient, "MMMMMMUuuuuuufu", 128, 0, 0, 128,                 \
        QN__WITH_PIXELS)                                                                           \
    ROW(ATTENTION_FORWARD, attention_forward, "MMMMMMuuuuuuu", 128, 0, 0, 1, QN__WITH_PIXELS)      \
    ROW(ATTENTION_MEANS, attention_means, "MMMMMuuu", 128, 0, 0, 128, QN__WITH_PIXELS)             \
    ROW(ATTENTION_QUERIES, attention_queries, "MMMMMMMuuuuuuuu", 128, 0, 0, 1, QN__WITH_PIXELS)    \
    ROW(ATTENTION_KEYS, attention_keys, "MMMMMMMuuuuuuuu", 128, 0, 0, 1, QN__WITH_PIXELS)          \
    ROW(ATTENTION_KEEP, attention_keep, "MMMMuuuu", 128, 0, 0, 128, QN__WITH_PIXELS)               \
    ROW(ATTENTION_CACHED, attention_cached, "MMMMMuuuuu", 128, 0, 0, 1, QN__WITH_PIXELS)           \
    ROW(RECURRENT_FORWARD, recurrent_forward, "MMMMMMMMMUUuuuuuuuuufU", 128, 0, 0, 8,              \
        QN__WITH_PIXELS)                                                                           \
    ROW(RECURRENT_BACK, recurrent_back, "MMMMMMUuuuuuu", 128, 0, 0, 8, QN__WITH_PIXELS)            \
    ROW(RECURRENT_ERRORS, recurrent_errors, "MMMMuuu", 128, 0, 0, 8, QN__WITH_PIXELS)              \
    ROW(RECURRENT_GRADIENT, recurrent_gradient, "MMMMMUuuuuufuu", 128, 0, 0, 8, QN__WITH_PIXELS)   \
    ROW(POOLED_FORWARD, pooled_forward, "MMMMMuuuu", 128, 0, 0, 8, QN__WITH_PIXELS)                \
    ROW(POOLED_ERRORS, pooled_errors, "MMMMMMuuuuu", 128, 0, 0, 8, QN__WITH_PIXELS)                \
    ROW(POSITION_FORWARD, position_forward, "MMMMMMMUuuuufU", 128, 0, 0, 8, QN__WITH_PIXELS)       \
    ROW(POSITION_ERRORS, position_errors, "MMMMuu", 128, 0, 0, 8, QN__WITH_PIXELS)                 \
    ROW(POSITION_GRADIENT, position_gradient, "MMMMUuuufu", 128, 0, 0, 8, QN__WITH_PIXELS)         \
    ROW(ROTARY_FORWARD, rotary_forward, "MMMMMMuuu", 128, 0, 0, 8, QN__WITH_PIXELS)                \
    ROW(ROTARY_ERRORS, rotary_errors, "MMMMMuuuu", 128, 0, 0, 8, QN__WITH_PIXELS)                  \
    ROW(GROUPED_FORWARD, grouped_forward, "MMMMMMMUUuuuuuufU", 128, 0, 0, 8, QN__WITH_PIXELS)      \
    ROW(GROUPED_ERRORS, grouped_errors, "MMMMMMMUuuuuuuufU", 128, 0, 0, 8, QN__WITH_PIXELS)        \
    ROW(GROUPED_GRADIENT, grouped_gradient, "MMMMMMUuuuuufuu", 128, 0, 0, 8, QN__WITH_PIXELS)      \
    ROW(QUANTIZE_ITEMS, quantize_items, "MMMMMMMuuuuuu", 128, 0, 0, 1, QN_WITH_INTGEMM)            \
    ROW(QUANTIZE_GRAINS, quantize_grains, "MMMMuuu", 256, 0, 0, 1, QN_WITH_INTGEMM)                \
    ROW(ABSMAX, absmax, "MMUuuu", 256, 0, 0, 1, QN_WITH_INTGEMM)                                   \
    ROW(QUANTIZE_WEIGHTS, quantize_weights, "MMMMUuuuuu", 256, 0, 0, 1, QN_WITH_INTGEMM)           \
    ROW(PIXELS_ABSMAX, pixels_absmax, "MMMMMMuuuuuuu", 128, 0, 0, 1, QN__WITH_PIXELS_INTGEMM)      \
    ROW(QUANTIZE_ROWS, quantize_rows, "MMMMMMMuuuuuuuu", 128, 0, 0, 128, QN__WITH_PIXELS_INTGEMM)  \
    ROW(ROWS_ABSMAX, rows_absmax, "MMMuuuuuu", 128, 0, 0, 128, QN__WITH_PIXELS_INTGEMM)            \
    ROW(GRAINS_ABSMAX, grains_absmax, "MMuuuuu", 128, 0, 0, 1, QN__WITH_PIXELS_INTGEMM)            \
    ROW(ATTENTION_BLOCKS, attention_blocks, "MMMMuuuu", 128, 0, 0, 128, QN__WITH_PIXELS_INTGEMM)   \
    ROW(ATTENTION_KEEP_BLOCKS, attention_keep_blocks, "MMMMuuuu", 128, 0, 0, 128,                  \
        QN__WITH_PIXELS_INTGEMM)                                                                   \
    ROW(ATTENTION_CACHED_INTEGER, attention_cached_integer, "MMMMMuuuuuu", 128, 0, 0, 1,           \
        QN__WITH_PIXELS_INTGEMM)                                                                   \
    ROW(ATTENTION_INTEGER_FORWARD, attention_integer_forward, "MMMMMMuuuuuuuu", 128, 0, 0, 1,      \
        QN__WITH_PIXELS_INTGEMM)                                                                   \
    ROW(ATTENTION_INTEGER_QUERIES, attention_integer_queries, "MMMMMMMuuuuuuuuu", 128, 0, 0, 1,    \
        QN__WITH_PIXELS_INTGEMM)                                                                   \
    ROW(ATTENTION_INTEGER_KEYS, attention_integer_keys, "MMMMMMMuuuuuuuuu", 128, 0, 0, 1,          \
        QN__WITH_PIXELS_INTGEMM)                                                                   \
    ROW(QUANTIZE_TRANSPOSED, quantize_transposed, "MMMUuuuuu", 128, 0, 0, 128,                     \
        QN__WITH_PIXELS_INTGEMM)                                                                   \
    QN__INTGEMM_ROW(ROW, FORWARD, forward, I7, i7, LARGE, large, 256, 64, 64, QN_WITH_LARGE)       \
    QN__INTGEMM_ROW(ROW, FORWARD, forward, I7, i7, SMALL, small, 128, 16, 32, 0u)                  \
    QN__INTGEMM_ROW(ROW, FORWARD, forward, I14, i14, LARGE, large, 256, 64, 64, QN_WITH_LARGE)     \
    QN__INTGEMM_ROW(ROW, FORWARD, forward, I14, i14, SMALL, small, 128, 16, 32, 0u)                \
    QN__INTGEMM_ROW(ROW, FORWARD, forward, I21, i21, LARGE, large, 256, 64, 64, QN_WITH_LARGE)     \
    QN__INTGEMM_ROW(ROW, FORWARD, forward, I21, i21, SMALL, small, 128, 16, 32, 0u)                \
    QN__INTGEMM_ROW(ROW, ERRORS, errors, I7, i7, LARGE, large, 256, 64, 64, QN_WITH_LARGE)         \
    QN__INTGEMM_ROW(ROW, ERRORS, errors, I7, i7, SMALL, small, 128, 16, 32, 0u)                    \
    QN__INTGEMM_ROW(ROW, ERRORS, errors, I14, i14, LARGE, large, 256, 64, 64, QN_WITH_LARGE)       \
    QN__INTGEMM_ROW(ROW, ERRORS, errors, I14, i14, SMALL, small, 128, 16, 32, 0u)                  \
    QN__INTGEMM_ROW(ROW, ERRORS, errors, I21, i21, LARGE, large, 256, 64, 64, QN_WITH_LARGE)       \
    QN__INTGEMM_ROW(ROW, ERRORS, errors, I21, i21, SMALL, small, 128, 16, 32, 0u)                  \
    QN__INTGEMM_ROW(ROW, GRADIENT, gradient, I7, i7, LARGE, large, 256, 64, 64, QN_WITH_LARGE)     \
    QN__INTGEMM_ROW(ROW, GRADIENT, gradient, I7, i7, SMALL, small, 128, 16, 32, 0u)                \
    QN__INTGEMM_ROW(ROW, GRADIENT, gradient, I14, i14, LARGE, large, 256, 64, 64, QN_WITH_LARGE)   \
    QN__INTGEMM_ROW(ROW, GRADIENT, gradient, I14, i14, SMALL, small, 128, 16, 32, 0u)              \
    QN__INTGEMM_ROW(ROW, GRADIENT, gradient, I21, i21, LARGE, large, 256, 64, 64, QN_WITH_LARGE)   \
    QN__INTGEMM_ROW(ROW, GRADIENT, gradient, I21, i21, SMALL, small, 128, 16, 32, 0u)              \
    QN__MATRIX_ROW(ROW, FORWARD, forward, I7, i7, LARGE, large, 256, 128, 128)                     \
    QN__MATRIX_ROW(ROW, FORWARD, forward, I7, i7, SMALL, small, 128, 64, 64)                       \
    QN__MATRIX_ROW(ROW, FORWARD, forward, I14, i14, LARGE, large, 256, 128, 128)                   \
    QN__MATRIX_ROW(ROW, FORWARD, forward, I14, i14, SMALL, small, 128, 64, 64)                     \
    QN__MATRIX_ROW(ROW, FORWARD, forward, I21, i21, LARGE, large, 256, 64, 128)                    \
    QN__MATRIX_ROW(ROW, FORWARD, forward, I21, i21, SMALL, small, 256, 64, 64)                     \
    QN__MATRIX_ROW(ROW, ERRORS, errors, I7, i7, LARGE, large, 256, 128, 128)                       \
    QN__MATRIX_ROW(ROW, ERRORS, errors, I7, i7, SMALL, small, 128, 64, 64)                         \
    QN__MATRIX_ROW(ROW, ERRORS, errors, I14, i14, LARGE, large, 256, 128, 128)                     \
    QN__MATRIX_ROW(ROW, ERRORS, errors, I14, i14, SMALL, small, 128, 64, 64)                       \
    QN__MATRIX_ROW(ROW, ERRORS, errors, I21, i21, LARGE, large, 256, 64, 128)                      \
    QN__MATRIX_ROW(ROW, ERRORS, errors, I21, i21, SMALL, small, 256, 64, 64)                       \
    QN__MATRIX_ROW(ROW, GRADIENT, gradient, I7, i7, SMALL, small, 128, 64, 64)                     \
    QN__MATRIX_ROW(ROW, GRADIENT, gradient, I14, i14, SMALL, small, 128, 64, 64)                   \
    QN__MATRIX_ROW(ROW, GRADIENT, gradient, I21, i21, SMALL, small, 256, 64, 64)                   \
    ROW(TALLY, tally, "MMMMMMu", 256, 0, 0, 0, QN_WITH_ALL)                                        \
    ROW(SUMS_OUT, sums_out, "MMUuuUu", 256, 0, 0, 256, QN_WITH_ALL)                                \
    ROW(SUMS_OUT_VECTOR, sums_out_vector, "MMUuuUu", 1, 0, 0, 4096, QN_WITH_ALL)                   \
    ROW(SUMS_IN, sums_in, "MMUuuUu", 256, 0, 0, 256, QN_WITH_ALL)                                  \
    ROW(SUMS_IN_VECTOR, sums_in_vector, "MMUuuUu", 1, 0, 0, 4096, QN_WITH_ALL)                     \
    ROW(MAP, map, "MMUu", 256, 0, 0, 256, QN_WITH_ALL)                                             \
    ROW(MAP_VECTOR, map_vector, "MMUu", 1, 0, 0, 4096, QN_WITH_ALL)                                \
    ROW(TRIAL, trial, "MMMMUu", 256, 0, 0, 256, QN_WITH_ALL)

#endif
