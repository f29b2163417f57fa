/* Rows of layers with pixels in chunks, for gpu_chunks.c, gpu_pixels.c and gpu_pixels_intgemm.c. */
#ifndef QN_DEVICE_GPU_GPU_PIXELS_H
#define QN_DEVICE_GPU_GPU_PIXELS_H

#include "device/gpu/gpu_kinds.h"

/* Rows of an array, and the columns of them, that are unfolded together. */
typedef struct qn__gpu_chunk {
    uint32_t index; /* of the taps */
    uint32_t first, count, column, columns;
    uint32_t span; /* rows of a grain */
} qn__gpu_chunk;

/* A chunk of a gradient: whole grains, and all or some inputs of the weights; the last column is
 * the input 1 of the biases. */
typedef struct qn__gpu_part {
    uint32_t span, rows, columns; /* span: rows of a grain */
} qn__gpu_part;

static inline uint32_t qn__gpu_from_pixels(const qn__layer *l) {
    return l->from.height * l->from.width;
}

/* Taps of a window. */
static inline uint32_t qn__gpu_window_of(const qn__layer *l) {
    return l->window.kernel[0] * l->window.kernel[1];
}

/* The number of terms of a chain of errors. */
static inline uint32_t qn__gpu_error_depth(const qn__layer *l) {
    return qn__gpu_window_of(l) * l->to.channels;
}

/* QN_PIXELS_ADD, unless the layer is the first to give errors to layer `source`. */
static inline uint32_t qn__gpu_adds(const qn__worker *w, uint32_t layer, int32_t source) {
    return qn__gpu_gives_first(w, layer, source) ? 0 : QN_PIXELS_ADD;
}

/* gpu_chunks.c */

/* Rows of a chunk whose rows have `columns`, whole tiles if it has several. */
uint32_t qn__gpu_chunk_rows(const qn__worker *worker, uint64_t columns, uint64_t rows);
qn__gpu_part qn__gpu_part_of(const qn__worker *worker, const qn__layer *layer, uint32_t items);

/* gpu_pixels.c */

/* Unfolds a chunk of `from`; `rows` becomes the step of products over it. */
void qn__gpu_unfold(qn__gpu_pass *pass, const qn__gpu_chunk *chunk, const qn__gpu_memory *from,
                    const qn__gpu_memory *to);
/* Writes the outputs of a layer, for a chunk of rows whose products are in `chains`. flags:
 * QN_PIXELS_CHAINS for chains of floats. */
void qn__gpu_finish_chains(qn__gpu_pass *pass, uint32_t layer, const qn__gpu_chunk *chunk,
                           uint32_t flags);
/* Writes the errors of the layer that `layer` reads, from sums. flags: QN_PIXELS_FLAT or
 * QN_PIXELS_CHAINS. */
void qn__gpu_finish_sums(qn__gpu_pass *pass, uint32_t layer, const qn__gpu_memory *sums,
                         const qn__gpu_chunk *chunk, uint32_t flags);
/* Writes the errors of layer `source`, which layer i reads. The layers of both paths of a block
 * read its input: the last one that gives errors applies dropout and activation to their sum. */
void qn__gpu_finish_source(qn__gpu_pass *pass, uint32_t layer, int32_t source,
                           const qn__gpu_memory *from, const qn__gpu_chunk *chunk, uint32_t flags);
/* The errors of a chunk of rows: the array of errors itself, or the chunk unfolded to `chains` if
 * the array has more rows. */
const qn__gpu_memory *qn__gpu_errors_of_chunk(qn__gpu_pass *pass, uint32_t layer,
                                              const qn__gpu_chunk *chunk);

/* gpu_pixels_intgemm.c */

/* Rows of a chunk as words along their columns, which are repetitions of the layer's outputs if
 * they are weighed (flags: QN_QUANTIZE_WEIGHED), in quantized_items. */
void qn__gpu_quantize_rows(qn__gpu_pass *pass, uint32_t layer, const qn__gpu_chunk *chunk,
                           const qn__gpu_memory *from, uint32_t flags);
/* The absmax of items and of grains of what a layer reads, before any of its rows. */
void qn__gpu_absmax_of_inputs(qn__gpu_pass *pass, uint32_t layer);
/* The gradients of a chunk of whole grains, so many inputs at a time: of some outputs, whose errors
 * are e[rows][ld(count)]. */
void qn__gpu_launch_grains_intgemm(qn__gpu_pass *pass, uint32_t layer, uint32_t columns,
                                   qn__gpu_chunk chunk, const qn__gpu_memory *e,
                                   const qn__gpu_range *outputs, int add);

#endif
