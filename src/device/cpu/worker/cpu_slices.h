/* The last layer in slices: its logits, its loss, the errors that it passes and its gradient, for
 * some positions at a time. So the logits of many words are never kept whole. */
#ifndef QN_DEVICE_CPU_WORKER_CPU_SLICES_H
#define QN_DEVICE_CPU_WORKER_CPU_SLICES_H

#include "device/cpu/worker/cpu_arena.h"
#include <stddef.h>

typedef struct qn__worker qn__worker;
typedef struct qn__cpu_pass qn__cpu_pass;
typedef struct qn__cpu_sums qn__cpu_sums;

enum { QN__SLICE_PHASES = 6 }; /* of a slice */

/* Of a worker. `trained`, `applied`: rows of a slice in training and outside; 0: such passes have
 * the last layer whole. Between two slices of a grain there are partials of weights and biases;
 * between two grains of a step that also updates there are sums. `lends`: the partials of weights
 * stand where the sums of the step will be. */
typedef struct qn__cpu_slicing {
    uint32_t trained, applied;
    int keeps_partials, keeps_sums, lends;
    float *input;  /* of items that are not all of the batch */
    void *partial; /* of weights: floats, or exact sums of integers */
    float *bias_partial;
    int64_t *weight_sums, *bias_sums;
    /* Of integers: the rows as the left operand of logits, 2^t of each; and as that of a gradient,
     * QN__CHUNK of them after the others. */
    void *left, *depths;
    float *factor;
} qn__cpu_slicing;

/* Some pixels of some items: in training of a grain. Its rows are (pixel, item), items fastest, and
 * `stride` floats lie between two of its panels. A pass without slices is one slice. */
typedef struct qn__cpu_slice {
    uint32_t item, items, pixel, pixels, rows;
    uint32_t part; /* of its items: slices before it */
    size_t stride;
    int begins, ends; /* whether it has the first pixels of its items, and the last ones */
    int first, last;  /* whether its items are the first ones of the pass, and the last ones */
    /* Whether the sums of the gradient begin with it, and are complete after it; and whether it is
     * computed once more for them alone (qn__cpu_slice_follow). */
    int fresh, closes, again;
} qn__cpu_slice;

/* Of the grain whose slices are computed: 2^t of its errors so far, and slices at its beginning
 * whose integers had another one. */
typedef struct qn__cpu_slice_state {
    int32_t exponent;
    uint32_t wrong;
    int any; /* an error was not 0 */
} qn__cpu_slice_state;

/* The row of the pass that a row of the slice is. */
static inline uint32_t qn__cpu_slice_row(const qn__cpu_slice *slice, uint32_t items, uint32_t row) {
    return (slice->pixel + row / slice->items) * items + slice->item + row % slice->items;
}

/* Chooses the slices of a worker whose layers are shaped, and the bytes of the last outputs. */
void qn__cpu_slices_shape(qn__worker *worker);
/* Memory beside the outputs; of it, floats of a core. */
void qn__cpu_slices_carve(qn__cpu_arena *arena, qn__worker *worker);
size_t qn__cpu_slice_space(const qn__worker *worker);

/* Whether a pass has slices. Then how many, and the one at an index; else the whole pass. */
int qn__cpu_is_sliced(const qn__cpu_pass *pass);
uint32_t qn__cpu_slices(const qn__cpu_pass *pass);
qn__cpu_slice qn__cpu_slice_at(const qn__cpu_pass *pass, uint32_t index);
qn__cpu_slice qn__cpu_whole(const qn__cpu_pass *pass);

typedef void qn__cpu_slice_phase(const qn__cpu_pass *pass, int thread, const qn__cpu_slice *slice,
                                 uint32_t phase);

/* The phases of a slice: what it reads, logits, and in training errors of the layer below and the
 * gradient. The loss comes before the errors. A barrier stands between two of the first three, and
 * after all. `inputs` has two phases of the counter. */
typedef struct qn__cpu_slice_way {
    qn__cpu_slice_phase *inputs, *forward, *errors, *gradient;
} qn__cpu_slice_way;
extern const qn__cpu_slice_way qn__cpu_slices_float, qn__cpu_slices_integers;

/* Integers: raises the absmax of the items by what the last layer reads. Before all slices. */
void qn__cpu_slices_note(const qn__cpu_pass *pass, int thread);
/* Integers in training, after the loss of a slice, with the same result in all threads: whether the
 * sums of the grain begin with it or are complete after it. The integers of a grain's errors depend
 * on the greatest of them. Where a slice has a greater one, those before it, state->wrong, are to
 * be computed once more after the last one. */
void qn__cpu_slice_follow(const qn__cpu_pass *pass, qn__cpu_slice *slice,
                          qn__cpu_slice_state *state);

/* Parts of these phases. Whether the rows of a slice follow one another among those of the pass: */
int qn__cpu_slice_is_together(const qn__cpu_pass *pass, const qn__cpu_slice *slice);
/* Copies rows of a panel between a slice and the pass, from row `first` of the slice on: */
void qn__cpu_slice_copy(const qn__cpu_pass *pass, const qn__cpu_slice *slice, uint32_t first,
                        uint32_t rows, const float *from, float *to, int into_slice);
/* Where `panels` panels begin that are `stride` floats apart, in space of the thread: */
size_t *qn__cpu_slice_panels(const qn__worker *worker, int thread, uint32_t panels, size_t stride);
/* After errors of the layer below, of a panel and some rows. Those of items that are not together
 * are in `from`, else NULL. */
void qn__cpu_slice_finish(const qn__cpu_pass *pass, int thread, const qn__cpu_slice *slice,
                          uint32_t panel, uint32_t first, uint32_t rows, const float *from);
/* How the sums of a grain go on: alone, or with those of the others before it and after it. `kept`:
 * of weights or of biases. */
void qn__cpu_slice_turn(const qn__cpu_pass *pass, const qn__cpu_slice *slice, int64_t *kept,
                        qn__cpu_sums *sums);
/* Where the sums of a block of weights will be, a row of them for each output. */
int64_t *qn__cpu_slice_words(const qn__cpu_pass *pass, uint32_t in, uint32_t out);
/* The biases of a panel of outputs, whose chains go over the rows, too. Returns 1 if a partial was
 * out of range. */
int qn__cpu_slice_biases(const qn__cpu_pass *pass, const qn__cpu_slice *slice, uint32_t out);
/* After a task of the gradient of the last slice, and `panels` biases of it: an outlet may send
 * what is complete. */
void qn__cpu_slice_tell(const qn__cpu_pass *pass, int thread, uint32_t group, uint32_t panels);

#endif
