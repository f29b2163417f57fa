/* The state of a user kernel between two of its iterations, or two of its items, as a file, from
 * which a run continues with the same results. docs/formats.md describes the file. */
#ifndef QN_USERKERNEL_RUN_USER_CHECKPOINT_H
#define QN_USERKERNEL_RUN_USER_CHECKPOINT_H

#include "userkernel/execution/user_sums.h"
#include "userkernel/run/user_kernel.h"

/* Takes what the options say about checkpoints; the rank that writes them locks the file. Fails
 * with QN_USAGE, also where a file exists and `resume` is 0, QN_BUSY (another run has locked it),
 * QN_IO or QN_MEMORY. qn__user_checkpoint_end ends the lock. */
qn_status qn__user_checkpoint_set(qn_kernel *kernel, const qn_kernel_options *options,
                                  qn_error *err);

void qn__user_checkpoint_end(qn_kernel *kernel);

/* Writes the state after `iteration` iterations: state[part] are the arrays of the outputs that are
 * carried. Digests of the inputs must be there. Fails with QN_IO, also where another
 * run has made the file meanwhile, or QN_MEMORY; QN_BUSY where another rank has become the writer.
 */
qn_status qn__user_checkpoint_write(qn_kernel *kernel, uint64_t iteration,
                                    void *const state[QN__USER_PARTS], qn_error *err);

/* The same for a run of one iteration, whose first `items` items are done
 * (userkernel/run/user_state_file.h). */
qn_status qn__user_checkpoint_write_items(qn_kernel *kernel, uint64_t items, qn__user_total *total,
                                          qn_error *err);

/* Reads it into the outputs and series, which exist, and sets kernel->checkpoint.from or .items.
 * Without a file these are 0. Fails with QN_FORMAT (damaged), QN_MISMATCH (of another kernel,
 * shape, scalars or inputs), QN_USAGE (beyond the last iteration), QN_IO or QN_MEMORY; outputs may
 * be changed. */
qn_status qn__user_checkpoint_read(qn_kernel *kernel, qn_error *err);

/* When the next one is due: the iterations until then, at most `most`; and whether one is due now.
 */
uint64_t qn__user_checkpoint_ahead(const qn_kernel *kernel, uint64_t iteration, uint64_t most);
int qn__user_checkpoint_due(const qn_kernel *kernel, uint64_t iteration);

#endif
