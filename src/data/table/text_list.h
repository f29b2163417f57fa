/* The texts of a column of a table, one for each item, while they wait to become tokens: in a file
 * of the cache folder where memory may not hold them. */
#ifndef QN_DATA_TABLE_TEXT_LIST_H
#define QN_DATA_TABLE_TEXT_LIST_H

#include "base/text/span.h"
#include "data/table/growing.h"

typedef struct qn__text_list {
    uint32_t feature;  /* the number of the column from 1; 0: none was read yet */
    uint64_t count;    /* of items so far */
    uint64_t missing;  /* of them without a text */
    qn__growing bytes; /* of all texts */
    qn__growing span; /* qn__span of each; until qn__text_list_end only its size counts, and whether
                         `bytes` is NULL */
} qn__text_list;

qn_status qn__text_list_create(qn__text_list **out, qn_error *err);
void qn__text_list_free(qn__text_list *list); /* accepts NULL */

/* 1: the list takes the texts of column `feature` (from 0), which is said to have some. The first
 * one that asks has it. */
int qn__text_list_takes(qn__text_list *list, uint32_t feature);

/* The text of the next item; `doubled`: two quotes in it are one. NULL: it has none. Fails with
 * QN_MEMORY. */
qn_status qn__text_list_add(qn__text_list *list, const char *text, size_t size, int doubled,
                            qn_error *err);

/* When all are there: the texts of all items, `bytes` NULL where there is none. They belong to the
 * list. */
qn__span *qn__text_list_end(qn__text_list *list);

#endif
