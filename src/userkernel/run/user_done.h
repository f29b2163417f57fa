/* The checkpoint of a run of one iteration: the items that are done. Only new ones are written, in
 * place. docs/formats.md describes the file. */
#ifndef QN_USERKERNEL_RUN_USER_DONE_H
#define QN_USERKERNEL_RUN_USER_DONE_H

#include "userkernel/execution/user_sums.h"
#include "userkernel/run/user_kernel.h"

/* The first line of such a file. */
#define QN__DONE_LINE "quern kernel items 1"

/* 1: the run has one iteration, and its checkpoints have the first items. */
int qn__user_done_used(const qn_kernel *kernel);

/* Makes room for the state of a run, which qn__user_done_end frees. Fails with QN_MEMORY. */
qn_status qn__user_done_open(qn_kernel *kernel, qn_error *err);
void qn__user_done_end(qn_kernel *kernel);

/* Reads the outputs and totals, and sets kernel->checkpoint.items. Fails with QN_FORMAT,
 * QN_MISMATCH, QN_IO or QN_MEMORY; outputs may be changed. */
qn_status qn__user_done_read(qn_kernel *kernel, int file, qn_error *err);

/* Gives totals, which are all zeros, those that were read. */
void qn__user_done_begin(const qn_kernel *kernel, qn__user_total *total);

/* Writes what the file lacks of the first `items` items, then their totals. Nothing that the file
 * had is changed before all is on the disk. Fails with QN_IO or QN_MEMORY; QN_BUSY where another
 * rank has become the writer. Sets kernel->checkpoint.items. */
qn_status qn__user_done_write(qn_kernel *kernel, uint64_t items, qn__user_total *total,
                              qn_error *err);

#endif
