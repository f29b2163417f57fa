/* A network of one dense layer whose items are lists of the inputs that are not 0, in float32: its
 * product and its gradient, in time that is proportional to what the lists have.
 *
 * fma(0, w, acc) is acc, but for the sign of a zero (cpu_zeros.h): so an output that is -0 is
 * computed again with all inputs. Sums of a gradient are integers, and those of inputs that no item
 * of a grain has are 0. A worker has such sums for each of its threads until they are collected.
 * Other networks, and other devices, write all inputs of some items out. */
#ifndef QN_DEVICE_CPU_WORKER_CPU_LISTS_H
#define QN_DEVICE_CPU_WORKER_CPU_LISTS_H

#include "device/device.h"

typedef struct qn__worker qn__worker;
typedef struct qn__cpu_pass qn__cpu_pass;
typedef struct qn__cpu_lists qn__cpu_lists;

/* Whether a worker computes the program so. */
int qn__cpu_takes_lists(const qn__program *program);

/* Memory of the sums, when first used. */
qn_status qn__cpu_lists_need(qn__worker *worker, qn_error *err);
void qn__cpu_lists_free(qn__worker *worker);

/* The outputs before the activation of items first .. first + rows - 1 of the batch, some panels of
 * them. */
void qn__cpu_lists_product(const qn__cpu_pass *pass, uint32_t first, uint32_t rows, uint32_t panel,
                           uint32_t panels);
/* The phase of the gradient: adds to the sums. */
void qn__cpu_lists_gradient(const qn__cpu_pass *pass, int thread, uint32_t phase);
/* Adds the sums to `to`, in the canonical order, and clears them. */
void qn__cpu_lists_collect(qn__worker *worker, int64_t *to);
void qn__cpu_lists_forget(qn__worker *worker);

#endif
