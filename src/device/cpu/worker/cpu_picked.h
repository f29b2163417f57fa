/* Training in integer arithmetic: a max pool is computed with the convolution below it.
 *
 * The pool's windows do not overlap, and nothing else reads the convolution. So an output pixel has
 * the error of its window, or 0: one bit for each value says which. These bits and the pool's array
 * of errors stand for the convolution's errors, which are four times as many with windows of 2 x 2.
 * The derivative of relu is in the bits, and its outputs are needed only until they are pooled:
 *
 *     outputs of the convolution (not kept)    outputs of the pool   bits
 *     -1 5 | 2 2                                5 | 2                 0 1 | 1 0
 *      3 4 | 0 1                                                      0 0 | 0 0
 *
 * Predictions compute the two layers one after the other. */
#ifndef QN_DEVICE_CPU_WORKER_CPU_PICKED_H
#define QN_DEVICE_CPU_WORKER_CPU_PICKED_H

#include "device/cpu/integer/intconv.h"
#include "device/cpu/worker/cpu_arena.h"
#include "device/cpu/worker/cpu_tiles.h"

struct qn__cpu_layer;
struct qn__cpu_pass;
struct qn__worker;

/* Some outputs of a convolution before they are pooled: `height` rows of `pixels` pixels, from
 * pixel (y, x) on, of `items` items from `item` on. A window begins at (y, x). */
typedef struct qn__cpu_unpooled {
    uint32_t y, x, height, pixels, item, items;
    const float *from;        /* of the first panel */
    size_t row, pixel, panel; /* floats between two rows, pixels and panels */
} qn__cpu_unpooled;

/* `pixels` pixels of whole windows of `items` items in the memory of a core, from there on. */
qn__cpu_unpooled qn__cpu_unpooled_at(const struct qn__cpu_layer *layer,
                                     const qn__cpu_tiles_space *space, uint32_t pixels,
                                     uint32_t items);
/* Decides which pools are computed so, after all layers have their shapes. */
void qn__cpu_picked_shape(struct qn__worker *worker);
/* Memory of the layer's bits, and of a core's outputs before they are pooled. */
void qn__cpu_picked_carve(qn__cpu_arena *arena, const struct qn__worker *worker,
                          struct qn__cpu_layer *layer);
void qn__cpu_picked_carve_results(qn__cpu_arena *arena, const struct qn__worker *worker,
                                  qn__cpu_tiles_space *space);

/* Whether this pass computes the layer with the pool above it. */
int qn__cpu_is_pooled(const struct qn__cpu_pass *pass, const struct qn__cpu_layer *layer);
/* Pools whole windows of all panels of the layer, and ends the pool's outputs. */
void qn__cpu_pool_results(const struct qn__cpu_pass *pass, int thread, uint32_t layer,
                          const qn__cpu_unpooled *what);
/* Forward phase of a layer with woven pictures. */
void qn__cpu_picked_forward(const struct qn__cpu_pass *pass, int thread, uint32_t layer,
                            uint32_t phase);

/* The error of item `item` of an output pixel, and its bits; those of the next items follow. */
const float *qn__cpu_picked_at(const struct qn__cpu_pass *pass, const struct qn__cpu_layer *layer,
                               uint32_t panel, size_t pixel, uint32_t item, const uint16_t **bits);
/* qn__cpu_kernels.bias_partials of one panel, for `count` items from `first` on. */
void qn__cpu_picked_partials(const struct qn__cpu_pass *pass, const struct qn__cpu_layer *layer,
                             uint32_t panel, uint32_t first, uint32_t count, float *partial);

#endif
