/* The functions of the CPU's device table (device/device.h says what each does). */
#ifndef QN_DEVICE_CPU_WORKER_CPU_TABLE_H
#define QN_DEVICE_CPU_WORKER_CPU_TABLE_H

#include "device/device.h"

qn_status qn__cpu_check(const qn_compute *compute, qn_error *err);
qn__device_word qn__cpu_isa_word(uint32_t index);
qn_status qn__cpu_open(uint32_t index, const qn_compute *compute, const qn__program *program,
                       qn__worker **out, qn_error *err);
void qn__cpu_close(qn__worker *worker);
qn_status qn__cpu_load(qn__worker *worker, const qn__state *state, qn_error *err);
qn_status qn__cpu_save(qn__worker *worker, qn__state *state, qn_error *err);
qn_status qn__cpu_compute(qn__worker *worker, const qn__job *job, uint32_t first, uint32_t count,
                          const qn__outlet *sums, qn_error *err);
qn_status qn__cpu_collect(qn__worker *worker, int64_t *sums, qn__tally *tally, qn_error *err);
qn_status qn__cpu_update(qn__worker *worker, const qn__update *update, const int64_t *sums,
                         qn_error *err);
/* The same of tied weights alone, in float32; `sums` are theirs. */
void qn__cpu_update_tied(qn__worker *worker, const qn__update *update, const int64_t *sums);
qn_status qn__cpu_train_step(qn__worker *worker, const qn__batch *batch, const qn__batch *next,
                             const qn__update *update, qn__tally *tally, qn_error *err);
int qn__cpu_busy(const qn__worker *worker, double *seconds, int capacity);
qn_status qn__cpu_measure(uint32_t index, const qn_compute *compute, qn_device_rates *rates,
                          qn_error *err);
int qn__cpu_energy(uint32_t index, double *joules);
uint64_t qn__cpu_memory(const qn_compute *compute, const qn__program *program, uint32_t items);
qn_status qn__cpu_extend(qn__worker *worker, const qn__extension *extension, uint32_t *bad,
                         qn_error *err);

extern const qn__device_table qn__cpu_device;

#endif
