/* Attention over sequences that grow, with floats (cpu_cache.c) and with integers
 * (cpu_cache_integer.c). */
#ifndef QN_DEVICE_CPU_LAYERS_CPU_CACHE_H
#define QN_DEVICE_CPU_LAYERS_CPU_CACHE_H

#include "device/cpu/worker/cpu_heads.h"
#include "layer/attention.h"

/* A group of heads of a stretch, and a core's memory. */
typedef struct qn__cpu_cached {
    const qn__cpu_pass *pass;
    const qn__cpu_layer *l;
    const qn__cpu_stretch *rows;
    uint32_t group;
    qn__cpu_head_sizes s;
    size_t slot; /* number of the group among those of all sequences */
    float *keys, *values;
    float *query, *output; /* [panel of channels][row][16] */
    float *weights;        /* [panel of positions][row][16] */
    size_t *steps, *blocks;
} qn__cpu_cached;

/* What a position sees; the layer itself has one position only. */
static inline qn__cover qn__cpu_cached_sees(const qn__layer *l, uint32_t position) {
    return (qn__cover){l->span && position >= l->span ? position - l->span + 1 : 0, position + 1};
}

static inline qn__cpu_head_sizes qn__cpu_cached_sizes(const qn__worker *w, const qn__layer *l) {
    return qn__cpu_head_sizes_of(qn__attention_width(l), w->kernels->rows, w->program->positions);
}

/* The queries of a head, and its outputs. */
void qn__cpu_cached_queries(const qn__cpu_cached *task, uint32_t head);
void qn__cpu_cached_outputs(const qn__cpu_cached *task, uint32_t head);
/* Makes positions that a row does not see QN__UNSEEN, in `panels` panels from panel `first` on. */
void qn__cpu_cached_hide(const qn__cpu_cached *task, uint32_t row, uint32_t first, uint32_t panels);

/* Floats of a core, beside those for floats, and memory of a layer. */
size_t qn__cpu_cache_integer_space(const qn__worker *worker, const qn__layer *layer);
void qn__cpu_cache_integer_carve(qn__cpu_arena *arena, const qn__worker *worker,
                                 qn__cpu_layer *layer);
/* Keeps the keys and values of a stretch. */
void qn__cpu_cache_integer_keep(const qn__cpu_cached *task);
/* The outputs of the heads of a stretch. `space` is what follows the task's arrays. */
void qn__cpu_cache_integer_attend(const qn__cpu_cached *task, float *space);

#endif
