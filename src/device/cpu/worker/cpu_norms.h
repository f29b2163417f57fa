/* What the normalisations of the CPU worker share, and what other layers ask them. */
#ifndef QN_DEVICE_CPU_WORKER_CPU_NORMS_H
#define QN_DEVICE_CPU_WORKER_CPU_NORMS_H

#include "device/cpu/worker/cpu_worker.h"

/* What normalisations share. Applies the activation to rows of results, and does all that comes
 * after it. */
void qn__cpu_norm_finish(const qn__cpu_pass *pass, int thread, uint32_t layer, uint32_t panel,
                         uint32_t first, uint32_t rows, float *out);
/* Applies the sums of one vector's panel as an update, or stores them. */
void qn__cpu_norm_put(const qn__cpu_pass *pass, const qn__cpu_layer *layer, uint32_t panel,
                      uint32_t vector, const int64_t *sums);

/* The batchnorms that sum the errors of `own` in this pass, for rows of one panel from `first` on:
 * returns how many, and sets *count to the rows up to the end of the grain in this pixel. Where
 * there is none, to all `rows`; else these have whole grains. */
uint32_t qn__cpu_norm_slopes(const qn__cpu_pass *pass, const qn__cpu_layer *own, uint32_t panel,
                             uint32_t first, uint32_t rows, uint32_t *count,
                             qn__cpu_slopes norm[2]);
/* The array of the sums of a grain's errors: see qn__cpu_norm. */
float *qn__cpu_norm_sums_of(const qn__cpu_pass *pass, const qn__cpu_layer *layer, uint32_t panel,
                            uint32_t grain);
/* Counts memory for them: sets `sums_at`, and enlarges the array of errors. */
void qn__cpu_norm_size(const qn__worker *worker, qn__cpu_layer *layer);
/* Decides which batchnorms have their errors `summed` in passes over so many items. */
void qn__cpu_norm_begin(qn__worker *worker, uint32_t items);

/* Whether all outputs of a batchnorm are finite that has added them to others. */
int qn__cpu_norm_is_finite(const qn__cpu_pass *pass, const qn__cpu_layer *layer);

#endif
