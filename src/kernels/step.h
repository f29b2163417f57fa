/* Declarations that host and kernels share. C includes this file, and it is part of the kernel text
 * in every language. It uses only names that all three languages have or that the preludes
 * define. */
#ifndef QN_KERNELS_STEP_H
#define QN_KERNELS_STEP_H

#ifndef QN_KERNEL_TEXT
#include <stdint.h>
typedef uint64_t qn_u64;
typedef int64_t qn_i64;
typedef uint32_t qn_u32;
typedef int32_t qn_i32;
#endif

/* A pass over consecutive positions. Members of 8 bytes come first, so that there is no padding. */
typedef struct qn_step {
    qn_u64 first;       /* position of the first item */
    qn_u64 domain;      /* n of the permutation (4.3); 0: the item is the position */
    qn_u32 keys[8];     /* of the permutation */
    qn_u32 left, right; /* l and r of 4.3 */
    qn_u32 items;       /* of this pass; used rows of the batch arrays */
    qn_u32 grain;       /* G */
    qn_u32 epoch;
    float rate; /* this and the next three: arguments of qn__update */
    float gradient;
    float adam_a, adam_r;
    float running; /* of qn__update too */
    float average;
    /* Not 0: the number of sequences that grow. A row is a further position of one of them, and
     * `numbers` has where each is. The size is a multiple of 8. */
    qn_u32 sequences;
} qn_step;

/* What `numbers` has of a row that is a further position of a sequence: the sequence, the rows of
 * this pass that come before in it, and the position. */
#define QN_PLACE_POSITIONS 24u
#define QN_PLACE_ROWS 20u

/* Kernels add to these, the host reads and clears them. A sum of losses may exceed 64 bits, so it
 * has two halves: loss = high * 2^32 + low. */
typedef struct qn_status_words {
    qn_i64 loss_high; /* sum of floor(loss / 2^32) */
    qn_u64 loss_low;  /* sum of loss mod 2^32 */
    qn_u64 correct;
    qn_u64 items;
    qn_u32
        bad_item; /* 2^32-1 - the first place in the batch whose outputs are not finite; 0: none */
    qn_u32 bad_loss;  /* 1: the loss of a grain is a NaN, 2: too large, 3: both were seen */
    qn_u32 bad_layer; /* layer + 1 of a partial gradient that left its range; 0: none */
    qn_u32 bad_input; /* 2^32-1 - the first layer with a block of inputs (docs/exactness.md 15) that
                         is not finite; 0: none */
} qn_status_words;

/* What a row of a layer with pixels reads, in the order of its chain: tap (i, j) of pixel (y, x) is
 * the pixel at (y * stride + first + i * dilation) / divisor, and columns likewise, where this is a
 * whole number inside the array that is read. [0] is vertical, [1] horizontal. */
typedef struct qn_taps {
    qn_u32 height, width;           /* pixels of the rows */
    qn_u32 from_height, from_width; /* pixels of the array that is read */
    qn_u32 window[2];
    qn_u32 stride[2];
    qn_i32 first[2];
    qn_u32 dilation[2], divisor[2];
    qn_u32 channels; /* of the array that is read */
    qn_u32 planar;   /* 1: that array is [items][ld(channels * pixels)], channel after channel */
    float epsilon;   /* of a normalisation (24.11) */
    qn_u32 fitted;   /* 1: windows are fitted to the sizes (24.40); QN_BLENDS: bilinear (24.43) */
} qn_taps;

/* The products of a program, one bit for each arithmetic (num/program.h). Others are left out:
 * compiling one kernel takes 0.1 s or more. */
#define QN_WITH_F32 1u
#define QN_WITH_I7 2u
#define QN_WITH_I14 4u
#define QN_WITH_I21 8u
#define QN_WITH_INTGEMM (QN_WITH_I7 | QN_WITH_I14 | QN_WITH_I21)
#define QN_WITH_ALL 15u
/* Programs of integer products have small tiles, and either large tiles or matrix instructions. */
#define QN_WITH_LARGE 16u
#define QN_WITH_MATRIX 32u
/* Byte products use plain integer arithmetic, even if the device has an instruction for them. */
#define QN_WITH_PLAIN 64u
/* The kernels of layers with pixels, residual blocks, normalisations and several answers. */
#define QN_WITH_PIXELS 128u
#ifndef QN_PRODUCTS
#define QN_PRODUCTS (QN_WITH_ALL | QN_WITH_LARGE | QN_WITH_PIXELS)
#endif
#if (QN_PRODUCTS & QN_WITH_ALL) == 0 || QN_PRODUCTS > 255
#error "QN_PRODUCTS names no arithmetic of this text, or one that it lacks"
#endif
/* The largest number of terms of a sum by matrix instructions
 * (kernels/training/products/matrix.cl). */
#define QN_MATRIX_DEPTH 131072u

/* What values are, in the order of qn__fetch. */
#define QN_VALUES_BYTES 0u
#define QN_VALUES_FLOATS 1u
#define QN_VALUES_TOKENS16 2u
#define QN_VALUES_TOKENS32 3u
#define QN_FETCH_ROWS 1u
#define QN_FETCH_GATHERED 2u
#define QN_FETCH_LABELS 4u
#define QN_FETCH_WEIGHTS 8u
#define QN_LOSS_LABELS 1u
#define QN_LOSS_TRAIN 2u
#define QN_LOSS_REAL 4u /* targets are the bits of floats */
/* Items are mixed: after the labels of all items of the step follow their partners' labels, then
 * the bits of the shares of the own labels. */
#define QN_LOSS_MIXED 8u
#define QN_LOSS_ANSWERS 16u /* `classes` are numbers of right answers (24.74) */
#define QN_LOSS_MARKS 32u   /* the maximum and the sum of a softmax are kept */
#define QN_GRADIENT_ADD 1u
#define QN_PIXELS_FLAT 1u   /* sums are [items][ld(pixels * channels)] */
#define QN_PIXELS_CHAINS 2u /* a NaN may come from a tap outside: its chain is computed again */
#define QN_PIXELS_ADD 4u    /* to the errors that another reader of the layer gave (17.7) */
/* With the number of a layer: one random word decides for all outputs of an item (24.33). */
#define QN_DROP_PATH 0x10000u
#define QN_POOL_MAX 1u
#define QN_POOL_ADD 2u
#define QN_POOL_PARTIAL 4u
#define QN_BLENDS 2u
#define QN_NORM_ERRORS 1u
#define QN_NORM_ADD 2u
#define QN_NORM_SHIFT 4u
/* Arrays of the moments of a batchnorm; the first is the mean. Of the errors (17.8): B, p, h, k. */
#define QN_NORM_INVERSE 1u
#define QN_NORM_SQUARES 2u
#define QN_NORM_BIAS 3u
#define QN_NORM_WEIGHT 4u
#define QN_NORM_H 5u
#define QN_NORM_K 6u
#define QN_NORM_ARRAYS 7u
/* Arrays of the moments of a groupnorm; the first is s and then the mean (17.9). */
#define QN_ITEM_INVERSE 1u
#define QN_ITEM_H 2u
#define QN_ITEM_K 3u
#define QN_ITEM_ARRAYS 4u
/* Arrays of the moments of attention: m, r and D of 25.22 and 25.23. */
#define QN_ATTEND_ARRAYS 3u
/* After them, with integers: the absmax of queries, keys, values and errors (25.25). */
#define QN_ATTEND_BLOCKS 4u
/* The positions of a pool (25.38); others: their mean. */
#define QN_POOLED_MAX 1u
#define QN_POOLED_FIRST 2u
#define QN_POOLED_LAST 3u
#define QN_QUANTIZE_WEIGHED 1u
#define QN_QUANTIZE_GRAINS 2u
#define QN_QUANTIZE_WORDS 4u
#define QN_QUANTIZE_INPUTS 8u
#define QN_QUANTIZE_OWN 16u
#define QN_QUANTIZE_BY_INPUT 1u

/* The choices of num/program.h: a row KIND(NAME, name) each, for optimisers with the number of
 * slots. Losses are in losses.inc. A value of the host's enum without a row does not compile in
 * kernels.c. A row without its functions does not compile in any language: activations.inc,
 * optimizers.inc and fetch.cl call them by name. */
#define QN_ACTIVATIONS(KIND)                                                                       \
    KIND(NONE, none)                                                                               \
    KIND(RELU, relu)                                                                               \
    KIND(TANH, tanh)                                                                               \
    KIND(SIGMOID, sigmoid)                                                                         \
    KIND(SOFTMAX, softmax)                                                                         \
    KIND(LEAKY_RELU, leaky_relu)                                                                   \
    KIND(GELU, gelu)                                                                               \
    KIND(SILU, silu)                                                                               \
    KIND(RELU6, relu6)                                                                             \
    KIND(HARDSWISH, hardswish)                                                                     \
    KIND(HARDSIGMOID, hardsigmoid)                                                                 \
    KIND(GELU_TANH, gelu_tanh)
#define QN_OPTIMIZERS(KIND)                                                                        \
    KIND(SGD, sgd, 0u)                                                                             \
    KIND(MOMENTUM, momentum, 1u)                                                                   \
    KIND(ADAM, adam, 2u)                                                                           \
    KIND(ADAMW, adamw, 2u)                                                                         \
    KIND(NESTEROV, nesterov, 1u)
#define QN_SCALES(KIND)                                                                            \
    KIND(NONE, none)                                                                               \
    KIND(UNIT, unit)                                                                               \
    KIND(STANDARD, standard)                                                                       \
    KIND(FRACTION, fraction)
#define QN_KIND(NAME, name) QN_ACT_##NAME,
enum { QN_ACTIVATIONS(QN_KIND) QN_ACT_KINDS };
#undef QN_KIND
#define QN_KIND(NAME, name, slots) QN_OPT_##NAME,
enum { QN_OPTIMIZERS(QN_KIND) QN_OPT_KINDS };
#undef QN_KIND
#define QN_KIND(NAME, name) QN_SCALE_##NAME,
enum { QN_SCALES(QN_KIND) QN_SCALE_KINDS };
#undef QN_KIND

/* Operations of the kernel MAP. */
#define QN_MAP_COPY 0u
#define QN_MAP_EXP 1u
#define QN_MAP_LOG 2u
#define QN_MAP_TANH 3u
#define QN_MAP_SIGMOID 4u
#define QN_MAP_COSPI 5u
#define QN_MAP_SQRT 6u
#define QN_MAP_GELU 7u /* from here on no vector variants */
#define QN_MAP_GELU_SLOPE 8u
#define QN_MAP_SILU 9u
#define QN_MAP_SILU_SLOPE 10u
#define QN_MAP_GELU_TANH 11u
#define QN_MAP_GELU_TANH_SLOPE 12u

/* Operations of the kernel TRIAL. Floats are passed and returned as their 32 bits. */
#define QN_TRIAL_ADD 0u
#define QN_TRIAL_MUL 1u
#define QN_TRIAL_FMA 2u
#define QN_TRIAL_MUL_ADD 3u /* a * b + c in two roundings: must not be contracted */
#define QN_TRIAL_DIV 4u
#define QN_TRIAL_SQRT 5u
#define QN_TRIAL_TO_UNITS 6u /* the int64 nearest to a, ties to even */
#define QN_TRIAL_FROM_SUM 7u /* RN of the int64 with low word a, high word b */
#define QN_TRIAL_LESS 8u     /* a < b, as 0 or 1 */
#define QN_TRIAL_PRODUCT 9u  /* uint64 product of two uint32 */
#define QN_TRIAL_ADD64 10u   /* (a, b) + (c, a) as int64 with low word first */
#define QN_TRIAL_SHIFT64 11u /* arithmetic shift right of (a, b) by c mod 64 */
#define QN_TRIAL_DOT 12u     /* c / 256 plus the products of the signed bytes of a and b */
#define QN_TRIAL_INT32 13u   /* the int32 nearest to a, ties to even */
#define QN_TRIAL_UNITS 14u   /* the int64 nearest to n * 2^(-1 - c mod 64), n = (a, b) >> 2 */

#endif
