/* A column of texts that becomes numbers: texts are numbered as they appear, and again when all of
 * them are known, because the numbers of categories and classes ascend with the texts. */
#ifndef QN_DATA_CELLS_TEXT_COLUMN_H
#define QN_DATA_CELLS_TEXT_COLUMN_H

#include "data/cells/text_set.h"
#include "data/table/schema.h"

/* The note about texts that had the character U+0000, which ends texts here, or half a character
 * (a surrogate alone), which UTF-8 does not have: how many, and where the first one is. */
#define QN__ZEROS_NOTE                                                                             \
    "%" PRIu64 " characters U+0000 or lone surrogates of texts are read as U+FFFD, first in"

/* Fails with QN_INPUT, without a place and a remedy, where the text is not UTF-8. */
qn_status qn__text_column_check(const char *text, size_t size, qn_error *err);

/* Adds a text; *number is its number in the order of appearance. `classes` 1: numbers get the form
 * of class names (docs/exactness.md 2.1.5), so that "1" and "1.0" are the same text. Fails with
 * QN_MEMORY, or QN_INPUT without a place and a remedy: not UTF-8, or too many different texts. */
qn_status qn__text_column_add(qn__text_set *set, const char *text, size_t size, int classes,
                              uint32_t *number, qn_error *err);

/* Sorts the texts. order[n] is then the new number of the text that was number n. NULL when memory
 * is short; released with qn__free. */
uint32_t *qn__text_column_sort(qn__text_set *set, int classes, qn_error *err);

/* The texts of a set without a depot move to *texts, *count of them, and the set is empty. */
void qn__text_column_take(qn__text_set *set, uint32_t *count, char ***texts);
/* The texts of any set become the categories of a column, and the set is empty. */
void qn__text_column_give(qn__text_set *set, qn__feature *feature);

#endif
