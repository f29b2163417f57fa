/* The CPU's kernels, one table for each instruction set.
 *
 * Layout. Matrices are stored in panels of P = 16 columns: element (row r, column c) of a matrix
 * with R rows is at panels[c / 16][r][c % 16], so a panel is R x 16 floats without gaps. Columns
 * beyond the last are zeros. A layer's weights are such a matrix with `in` rows (padded to a
 * multiple of 16) and `out` columns; a batch's activations and errors are one with an item in each
 * row. All pointers are to panels aligned to at least 64 bytes. Padding is computed too, but its
 * values are not used.
 *
 * The order of operations of an element is that of docs/exactness.md for every tile size. Tiles and
 * blocks divide the outputs. The index of a sum is divided only in order, and the accumulator is
 * kept. */
#ifndef QN_DEVICE_CPU_FLOAT_CPU_KERNELS_H
#define QN_DEVICE_CPU_FLOAT_CPU_KERNELS_H

#include "num/element.h"
#include "num/program.h"
#include <stddef.h>
#include <stdint.h>

enum { QN__PANEL = 16, QN__STATE_ROWS = 64 };

/* The types in which the sums of gradients are passed; each holds the same integers. */
typedef enum qn__sums {
    QN__SUMS_FLOAT,  /* of a single grain: a rounded partial is an integer in a float */
    QN__SUMS_DOUBLE, /* doubles that hold integers below 2^53 */
    QN__SUMS_INT64
} qn__sums;

/* What is done with a grain's partial. */
typedef enum qn__partial {
    QN__PARTIAL_RAW,   /* float: unchanged; the caller checks its range */
    QN__PARTIAL_ONLY,  /* float: rounded to an integer */
    QN__PARTIAL_FIRST, /* double: rounded to an integer and stored */
    QN__PARTIAL_ADD    /* double: rounded to an integer and added */
} qn__partial;

/* What is done with each result z of a product while it is in the L1 cache: fma(z, factor, rest) +
 * 0, then + other unless that is NULL, then relu, relu6 or neither. factor and rest have 16 numbers
 * for each panel; other has the rows and panels of the results, which are as far apart. factor
 * NULL: nothing.
 */
typedef struct qn__cpu_after {
    const float *factor, *rest, *other;
    qn__activation activation;
} qn__cpu_after;

/* The chains of a product: all its elements run over the same k, in blocks of 16 of which the last
 * may be shorter. a[t / 16] and b[t / 16] are where the block of t begins in the left operand and
 * in the weights, in floats. So a block is any panel of a layer's inputs at any offset of rows. */
typedef struct qn__cpu_chain {
    uint32_t k;
    const size_t *a, *b;
    int positive; /* +0 is added at the end: a zero has no sign then */
    /* Rows of the left operand, after which the next ones begin `gap` floats further on; 0: all of
     * them follow one another. */
    uint32_t segment;
    size_t gap;
    /* NULL, or the part of the chain that the rows of each such segment have: from first[s] to
     * end[s] - 1, at least one step, both multiples of 16. */
    const uint32_t *first, *end;
    qn__cpu_after after;
} qn__cpu_chain;

/* A convolution by windows of three columns, stride and dilation 1: `rows` (at least `slide_rows`)
 * times `columns` (at least 2) pixels of results, one panel, by the rows of windows and panels of
 * the left operand. The other members are distances in floats, from one row, column, panel or row
 * of a window to the next. */
typedef struct qn__cpu_slide {
    uint32_t rows, columns, windows, panels;
    size_t a_row, a_column, a_panel, a_window, c_row, c_column;
    int back; /* the weights are in the reverse order of windows and of taps */
} qn__cpu_slide;

/* The rows of a sum over items, for both operands: `items` consecutive rows of each of columns x
 * rows pixels. a_column to d_row are the distances of pixels in floats. Rows `a_ahead` and
 * `d_ahead` floats ahead are prefetched into the L2 cache. */
typedef struct qn__cpu_span {
    uint32_t items, columns, rows;
    size_t a_column, a_row, d_column, d_row, a_ahead, d_ahead;
} qn__cpu_span;

/* A sum over items for neighbouring taps of a row of windows: `items` rows of each of columns x to
 * x_end - 1 of `rows` rows of inputs. Panel p pairs column c of the inputs with column c + lead +
 * p * dilation of the errors, if that is one of `outputs`; so the last tap is the first panel.
 * column, a_row and d_row are distances in floats: of columns of both operands, and of rows. The
 * items `a_ahead` and `d_ahead` floats ahead of each column are prefetched into the L2 cache: a
 * part of them, that of turn a_turn of a_turns, and d_turn of d_turns. */
typedef struct qn__cpu_taps {
    uint32_t items, x, x_end, rows, panels, dilation, outputs, a_turn, a_turns, d_turn, d_turns;
    int64_t lead;
    size_t column, a_row, d_row;
    ptrdiff_t a_ahead, d_ahead;
} qn__cpu_taps;

/* A sum over items for the factors of a strip, which follow one another in a picture: `items` rows
 * of each of `columns` pixels. The other members but `panels` are distances in floats: of items,
 * pixels and panels of both operands and of the sums. Values `a_ahead` and `d_ahead` floats ahead
 * are prefetched into the L2 cache. */
typedef struct qn__cpu_strip {
    uint32_t items, columns, factors, panels;
    size_t a_item, a_column, a_ahead, d_column, d_panel, d_ahead, sums_panel;
} qn__cpu_strip;

/* Windows of pictures: `items` of each of `columns` pixels, by `panels` panels of weights. A window
 * has height x width strips of `factors` that follow one another in a picture. The other members
 * are distances in floats: of items, windows, rows and strips of the pictures, of panels of the
 * weights, and of pixels and panels of the results. */
typedef struct qn__cpu_windows {
    uint32_t items, columns, height, width, factors, panels;
    size_t a_item, a_column, a_row, a_tap, b_panel, c_column, c_panel;
} qn__cpu_windows;

/* Inputs of consecutive items: input c of item i is at[i * row + c / 16 * panel + c % 16]. Up to 15
 * floats after the last input can be read. */
typedef struct qn__cpu_items {
    const float *at;
    size_t row, panel;
    uint32_t inputs, panels;
} qn__cpu_items;

/* An error that is not zero: its value, and the offset in floats of the matching row of the other
 * operand (cpu_sparse.h). */
typedef struct qn__cpu_entry {
    int32_t at;
    float value;
} qn__cpu_entry;

/* A batchnorm whose errors are summed: its rows of inputs, the grain's mean, and where the sums of
 * one pixel go, b and g of 17.8, 16 floats each. */
typedef struct qn__cpu_slopes {
    const float *x, *mean;
    float *sums;
} qn__cpu_slopes;

typedef struct qn__cpu_kernels {
    const char *name; /* "scalar", "avx2", "avx512", "neon" */
    uint32_t rows;    /* of a tile of matmul and matmul_some, 12 at most */
    uint32_t panels;  /* the number of panels for which matmul and matmul_some are fastest */

    /* c[i][0..15] = chain over t = 0..k-1 of fma(a(i, t), b(t)[0..15]) from start[0..15] (from +0
     * when start is NULL), for `rows` rows and `panels` panels of c. a(i, t) = a[chain->a[t / 16] +
     * i * 16 + i / segment * gap + t % 16], b(t) = b + chain->b[t / 16] + t % 16 * 16. Panel p of
     * b, c and start is at the offsets p * b_stride, p * c_stride and p * 16. */
    void (*matmul)(uint32_t rows, const qn__cpu_chain *chain, const float *a, const float *b,
                   size_t b_stride, float *c, size_t c_stride, const float *start, uint32_t panels);

    /* The same for the chains of a convolution, with +0 at the end: over the rows of windows, the
     * three taps of each, the panels of a, and 16 factors. b has the weights in this order,
     * contiguously. NULL: this instruction set has too few registers. */
    void (*slide)(const qn__cpu_slide *slide, const float *a, const float *b, float *c,
                  const float *start);
    uint32_t slide_rows;

    /* The chains of matmul over only the `count` values of t in `list` (ascending). The result is
     * that of matmul if every a(i, t) that is left out is +0 and the weights are finite; but an
     * element may be -0 where matmul gives +0. At most `rows` rows (of a tile) and `panels` panels.
     */
    void (*matmul_some)(uint32_t rows, uint32_t count, const uint32_t *list,
                        const qn__cpu_chain *chain, const float *a, const float *b, size_t b_stride,
                        float *c, size_t c_stride, const float *start, uint32_t panels);

    /* Bit t: the bits of x[t] are not those of +0. */
    uint32_t (*nonzero)(const float x[QN__PANEL]);

    /* Partial gradients of one grain for `panels` blocks of 16 x 16: for each k, o: the chain over
     * the rows i of the span of fma(d[i][o], a[i][k]), rows of pixels outermost, items innermost;
     * from start[p][k][o], or from +0 when start is NULL. a and d are rows of 16. Block p of d is
     * at the offset p * d_stride. `how` says what is done with the partial in out[p][k][o], an
     * array of floats or of doubles; it may be `start`. `some` requires a span of one pixel.
     * `some`, when not NULL, holds for each item the result of `nonzero` for a[i]. Then items that
     * would add only zeros to a tile are skipped (not with QN__PARTIAL_RAW). This can change only
     * the sign of a zero, which integers do not have. */
    void (*outer)(const qn__cpu_span *span, const float *a, const uint16_t *some, const float *d,
                  size_t d_stride, const float *start, qn__partial how, void *out, uint32_t panels);
    uint32_t outer_panels; /* of its tile */

    /* The same for the taps of a row of windows, without rounding: sums[p][k][o] goes on with the
     * chain over the rows, in each over the columns of the inputs that panel p reads, and items. a
     * and d are the first rows, of which columns 0 are at the beginning. */
    void (*taps)(const qn__cpu_taps *taps, const float *a, const float *d, float *sums);

    /* The same for inputs that are not in panels, without rounding. sums[p * sums_panel + f * 16 +
     * o] goes on with the chain, over the columns x and within each over the items i, of fma(a[x *
     * a_column + i * a_item + f], d[p * d_panel + x * d_column + i * 16 + o]). */
    void (*strip)(const qn__cpu_strip *strip, const float *a, const float *d, float *sums);

    /* Products of windows of pictures: c[p * c_panel + x * c_column + i * 16 + o] = chain over the
     * factors of the window of pixel x of item i, in their order, from start[p * 16 + o], + 0. b
     * has 16 weights for each factor. */
    void (*windows)(const qn__cpu_windows *windows, const float *a, const float *b, float *c,
                    const float *start);

    /* Items in all pixels of a call for which `taps` is fastest. */
    uint32_t piece;

    /* The same for biases, of all grains of `items` items; the last grain may be shorter. partial[g
     * * 16 + o] = chain of additions of d[i][o] from +0, over `pixels` pixels that are `apart`
     * floats apart and, within each, the items i of grain g. */
    void (*bias_partials)(uint32_t items, uint32_t grain, uint32_t pixels, size_t apart,
                          const float *d, float *partial);

    /* Moves integers from doubles (below 2^51 in magnitude) to 64-bit integers: wide[i] +=
     * narrow[i], narrow[i] = 0. */
    void (*flush)(size_t count, double *narrow, int64_t *wide);

    /* sums[i] += x[i] rounded to an integer, ties to even; x is below 2^51 in magnitude. */
    void (*add_rounded)(size_t count, const float *x, int64_t *sums);

    /* to[i] = sums[i] as an integer; doubles are below 2^51 in magnitude. Sums that are integers
     * already are not copied. */
    void (*integers)(size_t count, qn__sums kind, const void *sums, int64_t *to);

    /* to[c * to_stride + r] = from[r * from_stride + c] for r < rows, c < columns: converts between
     * panels and the canonical order, in both directions. */
    void (*transpose)(uint32_t rows, uint32_t columns, const int64_t *from, size_t from_stride,
                      int64_t *to, size_t to_stride);

    /* The optimiser over `count` (a multiple of 16) parameters; is_weight as in qn__update_one.
     * `absmax`, unless it is NULL, is raised as in absmax_columns, by the new w. */
    void (*update)(const qn__program *program, const qn__update *u, int is_weight, size_t count,
                   qn__sums kind, const void *sums, float *w, float *s0, float *s1,
                   uint32_t *absmax);

    /* One row of inputs, scaled, into panels: x[c / 16 * stride + c % 16] for c < features, zeros
     * up to the panel's end. mean and inverse are padded with zeros to a multiple of 16 (used by
     * QN__SCALE_STANDARD only). */
    void (*input[QN__FETCHES])(qn__scale scale, const float *mean, const float *inverse,
                               uint32_t features, const void *v, float *x, size_t stride);

    /* y = activation(z) in place over count (a multiple of 16) numbers; not softmax. */
    void (*activate)(qn__activation activation, size_t count, float *z);
    /* The same, and slope = its derivative at z, of activations that keep it (qn__keeps_slope). */
    void (*activate_and_slope)(qn__activation activation, size_t count, float *z, float *slope);
    /* e = e times the derivative at output y (8.5), in place; not softmax. */
    void (*derive)(qn__activation activation, size_t count, const float *y, float *e);
    /* What follows errors, in rows of 16: e = e + side, unless `side` is NULL; then `derive`.
     * Returns what absmax gives for e. Of `norms` (at most two) batchnorms the sums are stored, for
     * which the rows are the items of a grain in one pixel. */
    uint32_t (*finish)(qn__activation activation, uint32_t rows, const float *side, const float *y,
                       uint32_t norms, const qn__cpu_slopes norm[2], float *e);
    /* Pooling. A pixel has `count` (a multiple of 16) numbers; those of y follow one another, those
     * of x are `step` floats apart. The others are over `count` numbers.
     *
     * pool: y[i] = the greatest of x[a[t] + i] over the taps t, in their order; where c is not 0,
     * their sum times c, rounded twice. In both cases + 0.
     *
     * add: y = y + x. sum: y = (x + 0) + other; y may be one of them.
     *
     * multiply: y = x * factor + 0, rounded twice; multiply_add: y = fma(x, factor, y).
     *
     * average: y = fma(share, x - y, y) (24.63).
     *
     * scale: y = y * c + 0, rounded twice.
     *
     * add_scaled: e = e + d * c, rounded twice.
     *
     * pick: of each of y, the first tap t at which x[a[t] + i] is not below y[i] gets d[i] if it is
     * one of `from` <= t < end: e[a[t] + i] = e[a[t] + i] + d[i]; others get e + 0. Pixels of d as
     * those of y, of e as those of x, in their order. */
    void (*pool)(uint32_t pixels, size_t count, uint32_t taps, const size_t *a, size_t step,
                 const float *x, float c, float *y);
    void (*add)(size_t count, const float *x, float *y);
    void (*sum)(size_t count, const float *x, const float *other, float *y);
    void (*multiply)(size_t count, const float *x, const float *factor, float *y);
    void (*multiply_add)(size_t count, const float *x, const float *factor, float *y);
    void (*average)(size_t count, float share, const float *x, float *y);
    void (*scale)(size_t count, float c, float *y);
    void (*add_scaled)(size_t count, float c, const float *d, float *e);
    void (*pick)(uint32_t pixels, size_t count, uint32_t from, uint32_t end, const size_t *a,
                 size_t step, const float *x, const float *y, const float *d, float *e);
    /* Convolutions with groups: chains of each of 16 lanes by itself. lanes: y[i][o] = chain over t
     * < count of fma(x[a[t] + i * 16 + o], w[b[t] + o]) from start[i * apart + o], + 0; start may
     * be y. lane_sums: sums[to[t] + o] goes on with the chain over the items i of fma(d[i * 16 +
     * o], x[a[t] + i * 16 + o]). */
    void (*lanes)(uint32_t rows, uint32_t count, const size_t *a, const float *x, const size_t *b,
                  const float *w, const float *start, size_t apart, float *y);
    void (*lane_sums)(uint32_t items, uint32_t count, const size_t *a, const float *x,
                      const float *d, const size_t *to, float *sums);
    /* batchnorm, a panel of a grain: `items` rows of 16 in each of `pixels` pixels, which are
     * `apart` floats apart. All other arrays are of 16 channels. The sums are those of 17.8: a
     * chain over the items of each pixel, then over the pixels. moments: of x - shift and its
     * square. slopes: of delta, and of delta by x - mean. */
    void (*moments)(uint32_t items, uint32_t pixels, size_t apart, const float *x,
                    const float *shift, float *sum, float *squares);
    void (*slopes)(uint32_t items, uint32_t pixels, size_t apart, const float *delta,
                   const float *x, const float *mean, float *sum, float *products);
    /* Rows of 16, in place when x == y: z = fma(x - mean, factor, bias) + 0, then z + other unless
     * that is NULL; y = z, or relu or relu6 of z. Returns what absmax gives for y.
     * normalise_errors: e = factor * fma(-(x - mean), k, delta - h) + 0. Both prefetch the rows
     * `next` floats after those of x, other, y, delta and e; 0: none. */
    uint32_t (*normalise)(uint32_t rows, ptrdiff_t next, const float *x, const float *mean,
                          const float *factor, const float *bias, const float *other,
                          qn__activation activation, float *y);
    uint32_t (*normalise_errors)(uint32_t rows, ptrdiff_t next, const float *delta, const float *x,
                                 const float *mean, const float *factor, const float *h,
                                 const float *k, float *sums, float *e);
    /* groupnorm, a panel of `items` items: as `moments` and `slopes`, but each item has its own
     * row in all arrays, and its sums are a chain over its pixels. */
    void (*item_moments)(uint32_t items, uint32_t pixels, size_t apart, const float *x,
                         const float *shift, float *sum, float *squares);
    void (*item_slopes)(uint32_t items, uint32_t pixels, size_t apart, const float *delta,
                        const float *x, const float *mean, float *sum, float *products);
    /* A pixel of `items` items, with rows of 16 for each item in all arrays but bias and weight:
     * y = fma(x - mean, factor, bias) + 0, in place when x == y;
     * e = inverse * fma(-(x - mean), k, fma(weight, delta, -h)) + 0. */
    void (*item_normalise)(uint32_t items, const float *x, const float *mean, const float *factor,
                           const float *bias, float *y);
    void (*item_errors)(uint32_t items, const float *delta, const float *x, const float *mean,
                        const float *inverse, const float *weight, const float *h, const float *k,
                        float *e);
    /* layernorm channels (24.13). Value (row, channel) is at [channel / 16 * stride + row * 16 +
     * channel % 16]; lanes after the last channel do not count. row_moments: S of 17.9 of x - shift
     * and of its square, with a shift for each row; where shift is NULL, of x alone. row_slopes: of
     * weight * delta, and of weight * (delta * (x - mean)).
     *
     * Of a panel, with numbers of each row, and in row_partials of each item of a pixel:
     * row_normalise: y = fma(x - mean, weight * inverse, bias) + 0, in place when x == y.
     * row_errors: as item_errors. row_partials, of all grains of `items` items, as bias_partials:
     * chains from +0 over the items of each pixel of (delta * (x - mean)) * inverse, and of delta.
     */
    void (*row_moments)(uint32_t rows, uint32_t channels, const float *x, size_t stride,
                        const float *shift, float *sum, float *squares);
    void (*row_slopes)(uint32_t rows, uint32_t channels, const float *weight, const float *delta,
                       size_t d_stride, const float *x, size_t x_stride, const float *mean,
                       float *sum, float *products);
    void (*row_normalise)(uint32_t rows, const float *x, const float *mean, const float *inverse,
                          const float *weight, const float *bias, float *y);
    void (*row_errors)(uint32_t rows, const float *delta, const float *x, const float *mean,
                       const float *inverse, const float *weight, const float *h, const float *k,
                       float *e);
    void (*row_partials)(uint32_t items, uint32_t grain, uint32_t pixels, size_t apart,
                         const float *delta, const float *x, const float *mean,
                         const float *inverse, float *weight, float *bias);
    /* rmsnorm (25.30). Value (row, channel) is at [channel / 16 * stride + row * 16 + channel %
     * 16].
     *
     * rms_sums: sums[row] = S of 25.30 of a by b, over `channels`; a first times factor[channel],
     * unless that is NULL. Lanes after the last channel do not count.
     *
     * Of a panel, with a number for each row, and in rms_partials for each item of a pixel:
     * rms_normalise: y = (x * inverse) * weight + 0, in place when x == y.
     * rms_errors: e = inverse * fma(-x, slope, weight * delta) + 0.
     * rms_partials: the chain of fma(delta, x * inverse) from +0 over the items of each pixel. */
    void (*rms_sums)(uint32_t rows, uint32_t channels, const float *factor, const float *a,
                     size_t a_stride, const float *b, size_t b_stride, float *sums);
    void (*rms_normalise)(uint32_t rows, const float *x, const float *inverse, const float *weight,
                          float *y);
    void (*rms_errors)(uint32_t rows, const float *delta, const float *x, const float *inverse,
                       const float *slope, const float *weight, float *e);
    void (*rms_partials)(uint32_t items, uint32_t pixels, size_t apart, const float *delta,
                         const float *x, const float *inverse, float *partial);
    /* position rotary (25.31), rows of 16: y = fma(other, sine, x * cosine) + 0, with a cosine and
     * a sine for each lane. */
    void (*turn)(uint32_t rows, const float *cosine, const float *sine, const float *x,
                 const float *other, float *y);
    /* attention, tiles of at most 48 rows: value (row, column) is at [column / 16 * stride + row *
     * 16 + column % 16] for columns in `panels` panels; g and z have a stride like it.
     *
     * attend_scores: s = s * scale, and greatest[row]; returns what absmax gives for s.
     * attend_weights: s = exp(s * scale - greatest[row]), or +0 where that is not above 2^-41; sums
     * the units of a row, unless `sums` is NULL (25.22).
     * attend_errors: x = p * (x - mean[row]); returns what absmax gives for x.
     * attend_scale: x = x * factor[row] + 0; returns what absmax gives for x.
     * attend_means: mean[row] = the chain of fma(g, z) over `width` columns from +0. */
    uint32_t (*attend_scores)(uint32_t rows, uint32_t panels, size_t stride, float scale, float *s,
                              float *greatest);
    void (*attend_weights)(uint32_t rows, uint32_t panels, size_t stride, float scale,
                           const float *greatest, float *s, int64_t *sums);
    uint32_t (*attend_errors)(uint32_t rows, uint32_t panels, size_t stride, const float *mean,
                              const float *p, float *x);
    void (*attend_means)(uint32_t rows, uint32_t width, size_t stride, const float *g,
                         const float *z, float *mean);
    uint32_t (*attend_scale)(uint32_t rows, uint32_t panels, size_t stride, const float *factor,
                             float *x);
    /* recurrent, at most QN__STATE_ROWS rows of 16: the states of a panel at one position (25.35,
     * 25.36). `gate`: the products of the states before, which become the gates; of gru the fourth
     * array is q, the others are products of three gates. x: what the layer reads for each gate.
     * `before`: of lstm the cells before, of gru the states. Backward `returned` has the products
     * of the errors after, `delta` the errors; gates and q become their errors, and `carry` goes
     * from the position after to the one before. */
    void (*lstm)(uint32_t rows, const float *const x[4], float *const gate[4], const float *before,
                 float *cell, float *state);
    void (*lstm_errors)(uint32_t rows, const float *returned, const float *delta,
                        float *const gate[4], const float *before, const float *cell, float *carry);
    void (*gru)(uint32_t rows, const float *const x[4], float *const gate[4], const float *before,
                float *state);
    void (*gru_errors)(uint32_t rows, const float *returned, const float *delta,
                       float *const gate[4], const float *before, float *carry);
    /* Errors as lists of those that are not zero. masks: bit o of mask[i]: x[i * 16 + o] is not a
     * zero of either sign. sparse_errors: for each row and panel, c[p * c_stride + r * 16 + k] is
     * the chain of fma(value, w[p * w_stride + at + k]) over the `count[r]` entries of list[r],
     * from +0 if `first`, else from c itself; + 0. sparse_sums: for the taps (y, x) of height rows
     * of width (at most three by three, or one by five), sums[(y * width + x) * apart + k] goes on
     * with the chain of fma(value, x[at + y * row + x * column + k]) over the entries. A chain
     * without its zeros differs at most in the sign of a zero. sparse_panels: for how many panels
     * sparse_errors is fastest. */
    uint32_t sparse_panels;
    void (*masks)(size_t rows, const float *x, uint16_t *mask);
    void (*sparse_errors)(uint32_t rows, uint32_t panels, const qn__cpu_entry *const *list,
                          const uint32_t *count, const float *w, size_t w_stride, float *c,
                          size_t c_stride, int first);
    void (*sparse_sums)(uint32_t count, const qn__cpu_entry *list, uint32_t height, uint32_t width,
                        const float *x, size_t row, size_t column, float *sums, size_t apart);
    /* A dense layer with few outputs. dots: z[o * z_stride + i] = the chain of matmul of row i of
     * x, from start[o], with the factors w[k * 16 + o] of k < x->inputs; rows up to the next
     * multiple of 16 are read, and have results without a meaning. outer_few: of one grain, for
     * each output o and input c, partial[o * x->panels * 16 + c] = the chain over the items of
     * fma(d[o * d_stride + i], input c of item i) from +0, and zeros after the last input. After
     * all outputs follow 16 times the sum of d for each output, a chain of additions from +0. */
    void (*dots)(uint32_t items, uint32_t outputs, const qn__cpu_items *x, const float *w,
                 const float *start, float *z, size_t z_stride);
    void (*outer_few)(uint32_t items, uint32_t outputs, const qn__cpu_items *x, const float *d,
                      size_t d_stride, float *partial);
    /* y[i] = exp(x[i]), log(x[i]); x and y may be the same array. */
    void (*exp)(size_t count, const float *x, float *y);
    void (*log)(size_t count, const float *x, float *y);
    /* The largest |x|, compared by its bits, so that a NaN is the largest; count is a multiple of
     * 16. */
    uint32_t (*absmax)(size_t count, const float *x);
    /* The same for each column of a panel of `rows` rows: absmax[c] is raised to it. */
    void (*absmax_columns)(size_t rows, const float *x, uint32_t absmax[QN__PANEL]);
} qn__cpu_kernels;

/* Those of the other instruction sets are in the rows of device/cpu/cpu_isa.c. */
extern const qn__cpu_kernels qn__cpu_kernels_scalar;

#endif
