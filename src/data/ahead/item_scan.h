/* Keeps the items that a training needs next in memory, while it reads their file in order.
 *
 * An epoch takes the items of a file in a random order. A disk reads large pieces faster than many
 * small ones, and with a hundredth of the processor time. So the file is read from its first byte
 * to its last, again and again, some times in an epoch. Of each piece those items are kept that
 * are needed until the same piece comes again.
 *
 * Places (device/item_buffer.h) count the items of all epochs. A *cycle* is the number of places by
 * which the training advances while the file is read once. When a piece is read for the place p, it
 * gives its items at p <= place < p + cycle. So each use of an item is served by exactly one
 * reading. The items that are kept are half a cycle on average: memory for a tenth of the items
 * gives a cycle of a fifth.
 *
 * The first reading has to serve all places of its cycle. It can be a reading that is made for
 * something else, before the training begins (qn__item_scan_take). Otherwise the training takes its
 * items from the mapped file meanwhile, as it does wherever an item is not here. */
#ifndef QN_DATA_AHEAD_ITEM_SCAN_H
#define QN_DATA_AHEAD_ITEM_SCAN_H

#include "data/table/data.h"
#include "device/item_buffer.h"

typedef struct qn__item_scan qn__item_scan;

/* For `places` places of a training on `data`, in a file, in the orders that `seed` gives; `data`
 * must outlive it. `memory`: the bytes that it may use. NULL where reading single items is better
 * (little memory, large items), where memory holds all items, or where it cannot be made. */
qn__item_scan *qn__item_scan_create(const qn_data *data, uint64_t seed, uint64_t places,
                                    uint64_t memory);
void qn__item_scan_destroy(qn__item_scan *scan); /* accepts NULL */

/* Valid as long as the scan. */
const qn__item_buffer *qn__item_scan_buffer(const qn__item_scan *scan);

/* For another pass over the file before the training begins: the items first .. end-1 are in memory
 * now. Those of the first places are copied. Once all items were taken, this was the first reading
 * of the training, unless that begins after these places. Any threads, each item once, before the
 * first qn__item_scan_move. */
void qn__item_scan_take(qn__item_scan *scan, uint64_t first, uint64_t end);

/* Between two steps: the places before `from` are not needed any more, those before `to` are needed
 * now. Waits for them for a short time: items that are not here are read from the table. The first
 * call begins the reading. */
void qn__item_scan_move(qn__item_scan *scan, uint64_t from, uint64_t to);

typedef enum qn__item_scan_stage {
    QN__SCAN_FAILED, /* the file could not be read: the scan has ended */
    QN__SCAN_FIRST,  /* a large file is read for the first time: few items are here */
    QN__SCAN_WAITS,  /* the same of a small one: qn__item_scan_move waits for it */
    QN__SCAN_SERVES
} qn__item_scan_stage;

qn__item_scan_stage qn__item_scan_at(qn__item_scan *scan);

/* The bytes that a scan may use, and those of all scans of this process. */
uint64_t qn__item_scan_memory(const qn__item_scan *scan);
uint64_t qn__item_scan_reserved(void);

#endif
