/* Windows over pixels: what convolutions and pools share. */
#ifndef QN_LAYER_WINDOW_H
#define QN_LAYER_WINDOW_H

#include "layer/layer.h"
#include <stddef.h>

/* One tap (ky, kx) of the window of output pixel (y, x). */
typedef struct qn__tap {
    uint32_t y, x, ky, kx;
} qn__tap;

/* Where the values of the tap's input pixel and of the output pixel begin, in [pixel][channel], and
 * the tap's weights in an output's row of `depth`. */
typedef struct qn__places {
    size_t input, output, weights;
} qn__places;

/* 0 when the tap lies outside the input; `at` is undefined then. */
int qn__tap_find(const qn__layer *layer, qn__tap tap, qn__places *at);

/* Goes on to the next tap: output pixels in order, and the taps of each in order. The first tap is
 * {0, 0, 0, 0}. Returns 0 after the last. */
int qn__tap_next(const qn__layer *layer, qn__tap *tap);

/* Taps of one window. */
static inline uint32_t qn__window_taps(const qn__layer *layer) {
    return layer->window.kernel[0] * layer->window.kernel[1];
}

/* Reads "3" or "3x5" as the kernel. */
qn_status qn__window_kernel(qn__tokens *tokens, qn__window *window);

/* Reads "stride" and what follows it, if this is the next word. */
qn_status qn__window_stride(qn__tokens *tokens, qn__window *window);

/* Appends " WORD 2", or " WORD 2x1". */
void qn__window_write(const char *word, const uint32_t pair[2], qn__text *text);

/* Fills a layer without parameters and with `channels` channels of `to` pixels, height and width.
 * Fails with QN_USAGE where these are too many values. */
qn_status qn__window_fill(const qn__layer_text *text, qn__shape from, uint32_t channels,
                          const uint64_t to[2], uint64_t first, qn__layer *layer, qn_error *err);

/* The same for an output that may have more pixels than the input: positions stay one row. */
qn_status qn__window_enlarge(const qn__layer_text *text, qn__shape from, uint32_t channels,
                             const uint64_t to[2], uint64_t first, qn__layer *layer, qn_error *err);

/* The same for a layer whose windows are fitted to the given size of its output (24.40). */
qn_status qn__window_fit(const qn__layer_text *text, qn__shape from, const uint64_t to[2],
                         uint64_t first, qn__layer *layer, qn_error *err);

/* Fills a layer without parameters and with `channels` channels of output. Fails with QN_USAGE
 * where the window does not fit. */
qn_status qn__window_make(const qn__layer_text *text, qn__shape from, uint32_t channels,
                          uint64_t first, qn__layer *layer, qn_error *err);

#endif
