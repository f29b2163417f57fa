/* Fetches the items of an epoch from a file before they are needed.
 *
 * The order of an epoch is random. A table whose values lie in a file that memory does not hold
 * would be read one page after the other, each when a step waits for it. A thread of its own tells
 * the system which pages come next, so that the disk has many requests at a time. */
#ifndef QN_DATA_READ_AHEAD_H
#define QN_DATA_READ_AHEAD_H

#include "data/data.h"

typedef struct qn__read_ahead qn__read_ahead;

/* For training on `data`, which must outlive it, in the orders that `seed` gives (section 4.3 of
 * docs/exactness.md). NULL where the values lie in memory, or where no thread can be started:
 * nothing else depends on it. */
qn__read_ahead *qn__read_ahead_create(const qn_data *data, uint64_t seed);
void qn__read_ahead_destroy(qn__read_ahead *ahead); /* accepts NULL */

/* The items at the positions before `position` of the epoch, from 0, are not needed any more: those
 * behind are fetched, also of the next epoch. Returns at once. Accepts NULL. */
void qn__read_ahead_move(qn__read_ahead *ahead, uint32_t epoch, uint64_t position);

#endif
