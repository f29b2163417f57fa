/* Tables whose rows are with several ranks, and whose items are made of these rows when they are
 * touched: no rank has all of them. */
#ifndef QN_DATA_PREPARE_CODED_ITEMS_H
#define QN_DATA_PREPARE_CODED_ITEMS_H

#include "data/table/data.h"

typedef struct qn__item_coder {
    void *user;
    /* Makes an item, whose bytes are 0 before, of the values of a row. Several threads call it. */
    void (*code)(void *user, const void *row, void *item);
    void (*release)(void *user);
} qn__item_coder;

/* Whether the items of `raw` can be made in this way: it is a table, no view, that lies in parts.
 */
int qn__coded_items_possible(const qn_data *raw);

/* Gives `table`, whose type, features and items are set, its values. It needs `raw` alive, which
 * forgets the values that it keeps. The table releases the coder, but not if this fails: QN_MEMORY
 * or QN_UNSUPPORTED. */
qn_status qn__coded_items_open(const qn_data *raw, const qn__item_coder *coder, qn_data *table,
                               qn_error *err);

#endif
