/* Brings the items of a training that lie on other ranks before they are needed.
 *
 * Each step this rank computes some of its items. Which, is known when its grains are handed out.
 * The next steps will probably take the same places of their batches, so their items are asked for
 * meanwhile; what they need besides is asked for then. Copies are in an item buffer
 * (device/item_buffer.h). What is in none, such as a partner of mixup, is read from the table, page
 * by page. */
#ifndef QN_DATA_AHEAD_REMOTE_AHEAD_H
#define QN_DATA_AHEAD_REMOTE_AHEAD_H

#include "data/table/data.h"
#include "device/item_buffer.h"

typedef struct qn__remote_ahead qn__remote_ahead;

/* For a training of `epochs` epochs on `data`, whose values lie on other ranks (qn__data_remote)
 * and which must outlive it, in the orders that `seed` gives. NULL if out of memory. */
qn__remote_ahead *qn__remote_ahead_create(const qn_data *data, uint64_t seed, uint64_t epochs);
void qn__remote_ahead_destroy(qn__remote_ahead *ahead); /* accepts NULL */

/* Between two steps: as qn__read_ahead_move, with batches of `batch` items, which do not change. */
const qn__item_buffer *qn__remote_ahead_move(qn__remote_ahead *ahead, uint32_t epoch,
                                             uint64_t position, uint64_t batch);

/* In a step that qn__remote_ahead_move began: this rank computes the items at `count` positions
 * from `position` on. Waits until they are in the buffer. Fails as qn__remote_rows.take. */
qn_status qn__remote_ahead_bring(qn__remote_ahead *ahead, uint32_t epoch, uint64_t position,
                                 uint32_t count, qn_error *err);

#endif
