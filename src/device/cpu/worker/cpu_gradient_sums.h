/* The sums of a task of the gradient, and their destination: the update, the worker's sums or an
 * outlet. */
#ifndef QN_DEVICE_CPU_WORKER_CPU_GRADIENT_SUMS_H
#define QN_DEVICE_CPU_WORKER_CPU_GRADIENT_SUMS_H

#include "base/system/fetch_ahead.h"
#include "device/cpu/worker/cpu_worker.h"

/* The memory of the sums of a task that is not a convolution's, on its stack. */
typedef struct qn__cpu_sums_space {
    _Alignas(64) double narrow[QN__STRIP * QN__OUT_GROUP * QN__PANEL * QN__PANEL];
    _Alignas(64) int64_t wide[QN__OUT_GROUP * QN__PANEL * QN__PANEL];
    _Alignas(64) float partial[QN__STRIP * QN__OUT_GROUP * QN__PANEL * QN__PANEL];
} qn__cpu_sums_space;

/* The sums of a task. */
struct qn__cpu_sums {
    double *narrow;
    int64_t *wide;
    float *partial;
    qn__sums kind; /* which of them holds the result */
    int shift;     /* they count in units of 2^shift */
    const qn__update *update;
    uint32_t *absmax; /* of the strip whose weights are updated, or NULL */
    /* Of a layer that comes several times in a pass, each time with other grains: sums were kept
     * before, others follow, and where those of a pass that updates are kept (NULL: it is the only
     * time). Else 0. */
    int adds, more;
    int64_t *kept;
};

/* Begins to fetch `words` words of each of `rows` rows, `apart` words from one to the next: they
 * will be read, or written. The hardware does not expect rows that are so far apart. Among ranks
 * the words are in the caches of other cores, which take as long as memory. */
static inline void qn__cpu_fetch_rows(const int64_t *at, size_t apart, uint32_t rows,
                                      uint32_t words, int writes) {
    enum { LINE = 8 };
    for (uint32_t r = 0; r < rows; ++r, at += apart)
        for (uint32_t k = 0; k < words; k += LINE)
            if (writes)
                qn__fetch_to_write(at + k);
            else
                __builtin_prefetch(at + k, 0);
}

/* Adds partials of `grains` grains, one after the other, to `count` sums (a multiple of 16) and
 * checks each. Returns 1 when one is out of range. */
int qn__cpu_add_partials(const qn__worker *w, size_t grains, size_t count, const float *partial,
                         int64_t *wide);

/* Adds `count` exact sums of a grain's integers, which count in units of 2^exponent, and checks
 * each. Returns 1 when one is out of range. */
int qn__cpu_add_units(const qn__worker *w, int32_t exponent, size_t count, const int64_t *exact,
                      int64_t *wide);

/* Applies or stores the sums of `rows` rows of weights of a panel of outputs, from `block` on:
 * those that begin at element `from` of s. An outlet gets one block at a time. */
void qn__cpu_keep_weights(const qn__cpu_pass *pass, const qn__cpu_layer *l, uint32_t block,
                          uint32_t rows, uint32_t panel, qn__cpu_sums *s, size_t from);

/* The same of the biases of a panel of outputs: one row, at the beginning of s. */
void qn__cpu_keep_biases(const qn__cpu_pass *pass, const qn__cpu_layer *l, uint32_t panel,
                         qn__cpu_sums *s);

/* A task of the gradient of a layer that walks (cpu_walk.h): panels of outputs, and a row of the
 * grid. */
typedef struct qn__cpu_walk_task {
    uint32_t group, row, out, panels;
} qn__cpu_walk_task;

/* Takes the next one. With an outlet groups run from the last to the first (cpu_gradient.c). */
int qn__cpu_take_walk(const qn__cpu_pass *pass, int thread, uint32_t layer, uint32_t phase,
                      qn__cpu_walk_task *task);
/* Ends a task after its weights: sums the biases if its row is 0, records that a number was out of
 * range if `bad`, and reports progress. */
void qn__cpu_end_walk(const qn__cpu_pass *pass, int thread, uint32_t layer,
                      const qn__cpu_walk_task *task, int bad);

/* How this step may sum a layer's partials. A partial is at most grain * pixels * |a| * |delta| in
 * magnitude; the factor covers the rounding errors of its chain. If that bound times the number of
 * grains is below 2^51, doubles hold the integers exactly and no partial can leave its range. Then
 * no element needs a check. */
typedef struct qn__cpu_summing {
    int narrow;
    int finite;           /* all inputs and errors are, in float32 */
    uint32_t flush_every; /* grains */
    int some;             /* skip inputs that are zero */
    /* For integer arithmetic: the plan (NULL: floats), the update in its units, and whether the
     * panels of inputs of a strip are summed and updated together. That takes fewer calls, but for
     * few items the sums of a strip are a large part of a cache. */
    const qn__cpu_plan *plan;
    qn__update update;
    int strips;
} qn__cpu_summing;
qn__cpu_summing qn__cpu_choose_sums(const qn__cpu_pass *pass, uint32_t layer);

#endif
