/* Fetches the items of an epoch from a file before they are needed.
 *
 * The order of an epoch is random. A table in a file that is larger than memory would be read page
 * by page, each while a step waits for it. There are two better ways, and this header chooses one.
 * The file is read in order and the items that are needed next are kept (item_scan.h). Or the
 * system is told which pages come next (page_ahead.h). Items that lie on other ranks are asked for
 * (remote_ahead.h). */
#ifndef QN_DATA_AHEAD_READ_AHEAD_H
#define QN_DATA_AHEAD_READ_AHEAD_H

#include "data/table/data.h"
#include "device/item_buffer.h"

typedef struct qn__read_ahead qn__read_ahead;

/* For a training of `epochs` epochs on `data`, which must outlive it, in the orders that `seed`
 * gives (section 4.3 of docs/exactness.md). `ranks`: processes of this machine that do the same.
 * `later`: bytes that this process will take for its steps; then items can be kept before the first
 * one. UINT64_MAX: it is not known before some steps were done. NULL where the values are in
 * memory, or where it cannot be made; the training works without it. */
qn__read_ahead *qn__read_ahead_create(const qn_data *data, uint64_t seed, uint64_t epochs,
                                      uint32_t ranks, uint64_t later);
void qn__read_ahead_destroy(qn__read_ahead *ahead); /* accepts NULL */

/* For another pass over the file before the first step: the items first .. end-1 are in memory now,
 * and those that the training needs first are kept. If this is called for all items, the training
 * does not have to read the file at its beginning. Any threads, each item once. Accepts NULL. */
void qn__read_ahead_take(qn__read_ahead *ahead, uint64_t first, uint64_t end);

/* Makes such a pass with so many threads, unless one was made. 0: the training begins with a later
 * item. Nor is it made for a large file: there, the training can do its first steps meanwhile.
 * Without it no items are kept before some steps were done. Accepts NULL. */
void qn__read_ahead_fill(qn__read_ahead *ahead, int threads);

/* Between two steps: the items at the positions before `position` of the epoch, from 0, are not
 * needed any more, and the `count` after it are needed now. Those after are fetched, also of the
 * next epoch. Returns copies of items for the feed, which are valid until the next call; or NULL.
 * Accepts NULL. */
const qn__item_buffer *qn__read_ahead_move(qn__read_ahead *ahead, uint32_t epoch, uint64_t position,
                                           uint64_t count);

/* In a step, after the move to it: this rank computes the items at `count` positions of the epoch
 * from `position` on. Waits for those that lie on other ranks. Fails with QN_IO where these are
 * gone. Accepts NULL. */
qn_status qn__read_ahead_bring(qn__read_ahead *ahead, uint32_t epoch, uint64_t position,
                               uint32_t count, qn_error *err);

/* For tests: bytes that items may take in memory. 0: what is available decides. */
extern uint64_t qn__read_ahead_memory;

#endif
