/* The file of a kernel's checkpoint: what a run has computed, and what it follows from. There is
 * one form for both kinds of runs. docs/formats.md describes it.
 *
 *   run of            a state has                            how the file changes
 *   one iteration     the first items of each output,        new items are written in place
 *                     and the totals of these items
 *   several           outputs that NEXT carries, and series  the whole file is replaced
 */
#ifndef QN_USERKERNEL_RUN_USER_STATE_FILE_H
#define QN_USERKERNEL_RUN_USER_STATE_FILE_H

#include "userkernel/execution/user_sums.h"
#include "userkernel/run/user_kernel.h"

/* 1: the run has one iteration, and its checkpoints have the first items. */
int qn__state_of_items(const qn_kernel *kernel);

/* Allocates the state of a run, which qn__state_file_close frees. Fails with QN_MEMORY. */
qn_status qn__state_file_open(qn_kernel *kernel, qn_error *err);
void qn__state_file_close(qn_kernel *kernel);

/* Reads outputs and totals or series, and sets kernel->checkpoint.items or .from. Fails with
 * QN_FORMAT, QN_MISMATCH, QN_USAGE (beyond the last iteration), QN_IO or QN_MEMORY; outputs may be
 * changed. */
qn_status qn__state_file_read(qn_kernel *kernel, int file, qn_error *err);

/* Sets `total`, which is all zeros, to the totals that were read. */
void qn__state_totals(const qn_kernel *kernel, qn__user_total *total);

/* Writes the state after the first `items` items: what the file lacks of them, then their totals.
 * Nothing that the file had is changed before all is on the disk. Fails with QN_IO or QN_MEMORY;
 * QN_BUSY where another rank has become the writer. Sets kernel->checkpoint.items. */
qn_status qn__state_items_write(qn_kernel *kernel, uint64_t items, qn__user_total *total,
                                qn_error *err);

/* Writes the state after `iteration` iterations: carried[part] are the arrays of outputs that
 * NEXT carries. Fails
 * with QN_IO or QN_MEMORY. */
qn_status qn__state_iteration_write(qn_kernel *kernel, uint64_t iteration,
                                    void *const carried[QN__USER_PARTS], qn_error *err);

#endif
