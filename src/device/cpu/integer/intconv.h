/* Convolutions of integers by tiles (docs/exactness.md 17.12): operands that are made once for each
 * pixel, and that all taps of a window read where they are.
 *
 * A *plane* is a digit of the integers in bytes. 7 bits have one plane. 14 bits have three: the
 * high digit h, the low digit l and their sum h + l, where the integer is h * 128 + l. Products of
 * two integers then take three products of bytes instead of four:
 *
 *     (128 h + l) (128 g + m) = 16384 h g + 128 ((h + l) (g + m) - h g - l m) + l m
 *
 * A *step* is 64 depths of a product, a *tile* 16 rows of a step. Offsets are in bytes. */
#ifndef QN_DEVICE_CPU_INTEGER_INTCONV_H
#define QN_DEVICE_CPU_INTEGER_INTCONV_H

#include "device/cpu/float/cpu_kernels.h"
#include <stddef.h>
#include <stdint.h>

enum {
    QN__STEP_DEPTHS = 64,
    QN__TILE_BYTES = 1024,
    QN__MOST_PLANES = 3,
    QN__PICKED_TAPS = 16,  /* of a window of a pool, at most */
    QN__LONGEST_SUM = 1024 /* steps that 32 bits hold: 128 * 128 * 64 * 1024 < 2^31 */
};

/* Pixels of one panel as an operand of a sum over pixels and items. Depths are the items of a
 * pixel, `span` to a pixel: 16, 32 or a multiple of 64, at least `items`; those without an item are
 * 0. Pixel p begins at pixel[p], 16 floats an item; the pixels fill whole steps. Where `mask` is
 * given, a float c of item i whose bit c of mask[p][i] is 0 counts as 0. */
typedef struct qn__conv_depths {
    int bits;
    uint32_t items, span, pixels;
    const float *const *pixel;
    const uint16_t *const *mask; /* of a right operand only; or NULL */
    float inverse;               /* of all values */
    char *to;                    /* planes are `plane` bytes apart */
    size_t plane;
    size_t row; /* bytes from one channel to the next: of a left operand only */
} qn__conv_depths;

/* Some pixels as a part of such an operand of any channel, from woven pictures (qn__cpu_weave): the
 * values of 16 items of a pixel are one vector, `pixel` floats after that of the pixel before;
 * `block` floats after it come those of the next 16 items. Items after the last one are zeros
 * there. Pixel i becomes `span` bytes at to + i * span. Where pixels share a step, `to` has space
 * for whole steps. */
typedef struct qn__conv_woven {
    int bits;
    uint32_t items, span, pixels;
    const float *from;
    size_t pixel, block;
    float inverse; /* of all values */
    char *to;      /* planes are `plane` bytes apart */
    size_t plane;
} qn__conv_woven;

/* Products of `rows` left operands, each of 16 channels, with `panels` right ones, added to sums:
 * those of row r, panel p and plane c are 16 x 16 integers from ((r * panels + p) * planes + c) *
 * 256 on. Step s of a left operand begins at offset[s]. */
typedef struct qn__conv_sum {
    uint32_t planes, steps, rows, panels;
    const size_t *offset;
    const char *const *left;
    size_t left_plane, left_row;
    const char *right;
    size_t right_plane, right_panel;
    int32_t *sums;
} qn__conv_sum;

/* Lines of some items: 64 depths of each as bytes. Depth 16 g + c is the integer of from[g][16 i +
 * c] * times[g][c] (times[0] NULL: of the value itself), or 0 where mask[0] is given and bit c of
 * mask[g][i] is 0. Items are `row` bytes apart, planes
 * `plane` bytes. The order of the bytes is that of weights. */
typedef struct qn__conv_rows {
    int bits;
    uint32_t items;
    const float *from[4], *times[4];
    const uint16_t *mask[4];
    const float *inverse; /* of each item */
    char *to;
    size_t row, plane;
} qn__conv_rows;

/* A tile of rows of a product, at most 16, with their factors and results. */
typedef struct qn__conv_tile {
    const char *left; /* to which the offset of a step is added: 64 bytes of each row */
    const float *factor;
    float *c;
    uint32_t rows;
} qn__conv_tile;

/* Products of tiles with panels of weights, as qn__intgemm.product. Rows of a left tile are
 * `left_row` bytes apart, its planes `left_plane`. Panels of weights begin with step 0 at `right`.
 */
typedef struct qn__conv_product {
    int bits;
    uint32_t steps, tiles, panels;
    const size_t *offset;
    const qn__conv_tile *tile;
    size_t left_row, left_plane;
    const char *right;
    size_t plane, panel;         /* bytes of a plane and of a panel of weights */
    const float *column, *start; /* column NULL: there are none */
    size_t c_stride;
} qn__conv_product;

/* A max pool of a panel, `rows` rows of one window: value c of y[i] is what qn__cpu_kernels.pool
 * gives of x[t][i] + 0, the taps t in their order, after relu if `relu`. Bit c of mask[t][i] is 1
 * where tap t passes the error of y[i][c] on: it is the first that is not below y (`pick`), and the
 * derivative of relu is 1. */
typedef struct qn__conv_pool {
    uint32_t rows, taps;
    int relu;
    const float *x[QN__PICKED_TAPS];
    float *y;
    uint16_t *mask[QN__PICKED_TAPS];
} qn__conv_pool;

/* Errors of such windows, one panel: value c of an output pixel's error of item i is that of its
 * window where bit c of the pixel's mask is 1, else 0. A window has `across` x `down` of the
 * `width` x `height` pixels; a pixel has `items` rows of errors and masks. */
typedef struct qn__conv_picked {
    uint32_t width, height, across, down, items;
    const float *error;
    const uint16_t *mask;
} qn__conv_picked;

typedef struct qn__intconv {
    void (*rows)(const qn__conv_rows *rows);
    /* A step of weights of 16 outputs: depth 16 g + r is row r of 16 floats at group[g], with
     * inverse[c] of output c. `weights_back`: depth 16 g + c of column r is the float c of row r at
     * group[g], with inverse[g][c]. */
    void (*weights)(int bits, const float *const group[4], const float *inverse, char *to,
                    size_t plane);
    void (*weights_back)(int bits, const float *const group[4], const float *const inverse[4],
                         char *to, size_t plane);
    void (*product)(const qn__conv_product *product);

    /* A row of a left operand is one channel, its depths one after the other. A right operand has
     * one tile a step. */
    void (*left_depths)(const qn__conv_depths *depths);
    void (*right_depths)(const qn__conv_depths *depths);
    void (*woven_depths)(const qn__conv_woven *woven);
    void (*add_depths)(const qn__conv_sum *sum);
    void (*pool)(const qn__conv_pool *pool);
    /* qn__cpu_kernels.bias_partials of `count` of the items. */
    void (*picked_partials)(const qn__conv_picked *picked, uint32_t count, uint32_t grain,
                            float *partial);
    /* Adds the integers of `tiles` tiles of sums to `exact`, 256 each, and sets the sums to 0. */
    void (*flush)(uint32_t planes, uint32_t tiles, int32_t *sums, int64_t *exact);
} qn__intconv;

/* Planes of integers of `bits` bits; 0: convolutions by tiles do not have such integers. */
static inline uint32_t qn__planes(int bits) { return bits == 7 ? 1 : bits == 14 ? 3 : 0; }

#if defined(QN_HAVE_AMX)
extern const qn__intconv qn__intconv_amx;
#endif

#endif
