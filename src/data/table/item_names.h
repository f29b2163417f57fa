/* The names of items that came from files of their own: a text for each, in one block. */
#ifndef QN_DATA_TABLE_ITEM_NAMES_H
#define QN_DATA_TABLE_ITEM_NAMES_H

#include "base/error.h"
#include <stddef.h>
#include <stdint.h>

typedef struct qn__item_names {
    char *text;    /* all names, each ended by a NUL */
    uint64_t size; /* of them */
    uint64_t *at;  /* where the name of each item begins */
} qn__item_names;

/* Copies a block of `items` names. Fails with QN_MEMORY, and with QN_FORMAT, without a remedy, when
 * it does not hold so many. */
qn_status qn__item_names_take(const char *text, uint64_t size, uint64_t items, qn__item_names **out,
                              qn_error *err);
void qn__item_names_free(qn__item_names *names); /* accepts NULL */

#endif
