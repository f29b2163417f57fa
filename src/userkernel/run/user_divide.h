/* A run of which each rank has some rows of the index space: those of its inputs in parts, and of
 * the outputs (qn_kernel_bind_parts). */
#ifndef QN_USERKERNEL_RUN_USER_DIVIDE_H
#define QN_USERKERNEL_RUN_USER_DIVIDE_H

#include "userkernel/run/user_kernel.h"

/* Collective. Opens the inputs in parts, and sets kernel->divided; it stays NULL where nothing is
 * in parts. Fails on all ranks alike: QN_UNSUPPORTED, QN_INPUT, QN_MISMATCH, QN_IO or QN_MEMORY. */
qn_status qn__user_divide_open(qn_kernel *kernel, qn_error *err);

/* Not collective. Decides which rows of the index space this rank computes, and gets what they need
 * of the inputs in parts. Nothing to do where kernel->divided is NULL. Fails with QN_USAGE (memory
 * of another shape), QN_UNSUPPORTED, QN_MEMORY, or QN_IO where a rank has ended. */
qn_status qn__user_divide_space(qn_kernel *kernel, const uint64_t shape[QN_KERNEL_DIMENSIONS],
                                qn_error *err);

/* Not collective: all ranks have agreed after the last read. Does nothing where kernel->divided is
 * NULL. */
void qn__user_divide_close(qn_kernel *kernel);

/* The items of this rank as a range of all. */
void qn__user_divide_items(const qn_kernel *kernel, int64_t *begin, int64_t *end);

/* The rows of this rank of an output, as an array that belongs to the whole. `map` is not NULL
 * where they are in their file. */
qn__user_array qn__user_divide_own(const qn_kernel *kernel, uint32_t part);

/* The rows of an array of the index space that the items of this rank read, in one range, or in
 * two where a halo wraps; 0: it has no rows. Returns their number. */
uint32_t qn__user_divide_needs(const qn_kernel *kernel, uint32_t part, qn__row_range ranges[2]);

#endif
