/* Fetches the items of an epoch from a file before they are needed.
 *
 * The order of an epoch is random. A table in a file that is larger than memory would be read page
 * by page, each while a step waits for it. A separate thread tells the system which pages come
 * next, so that the disk has many requests at a time. */
#ifndef QN_DATA_AHEAD_PAGE_AHEAD_H
#define QN_DATA_AHEAD_PAGE_AHEAD_H

#include "data/table/data.h"

typedef struct qn__page_ahead qn__page_ahead;

/* Whether the items of `data` are read in a random order from now on. If not, the kernel reads
 * neighbouring pages with each missing page. In a random order most neighbours would be evicted
 * before they are used, and would fill the memory. */
void qn__page_order(const qn_data *data, int random);

/* For training on `data`, which must outlive it, in the orders that `seed` gives (section 4.3 of
 * docs/exactness.md). NULL where the values are in memory, or where no thread can be started; the
 * training works without it. */
qn__page_ahead *qn__page_ahead_create(const qn_data *data, uint64_t seed);
void qn__page_ahead_destroy(qn__page_ahead *ahead); /* accepts NULL */

/* The items at the positions before `position` of the epoch, from 0, are not needed any more: those
 * after are fetched, also of the next epoch. Returns at once. Accepts NULL. */
void qn__page_ahead_move(qn__page_ahead *ahead, uint32_t epoch, uint64_t position);

#endif
