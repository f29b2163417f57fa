/* Texts of like lengths in a batch (docs/exactness.md 25.89): a window of some batches of the epoch
 * is sorted by length, and its batches are filled from the sorted items in a drawn order.
 *
 *     positions of a window   0   1   2   3   4   5        batches of two items
 *     lengths                 3  90   5  70   4   3
 *     by length               0 5 | 4 2 | 3 1
 *     batches                 4 2 | 3 1 | 0 5
 *
 * One thread asks for places. */
#ifndef QN_DEVICE_LENGTH_GROUPS_H
#define QN_DEVICE_LENGTH_GROUPS_H

#include "device/device.h"

typedef struct qn__length_groups qn__length_groups;

/* For batches of `batch` items of the feed, whose values are tokens or other numbers of an item of
 * `program`; `batches` of them are a window. Values are read here only. Fails with QN_MEMORY. */
qn_status qn__length_groups_create(const qn__program *program, const qn__feed *feed, uint32_t batch,
                                   uint32_t batches, qn__length_groups **out, qn_error *err);
void qn__length_groups_free(qn__length_groups *groups); /* accepts NULL */

/* Where the window of a position begins, and how many positions it may have. */
uint64_t qn__length_groups_window(const qn__length_groups *groups, uint64_t position,
                                  uint64_t *positions);

/* Of the batch that begins at batch->first, with its order and epoch: the positions of its items.
 * They stay until the window after the next one is asked for with the same `replays`, which tells
 * steps that are repeated from others. */
const uint64_t *qn__length_groups_places(qn__length_groups *groups, const qn__batch *batch,
                                         int replays);

#endif
