/* Totals of a user kernel over all items: exact sums, counts, and extremes with their first item.
 * None depends on the order in which items are taken. */
#ifndef QN_USERKERNEL_EXECUTION_USER_SUMS_H
#define QN_USERKERNEL_EXECUTION_USER_SUMS_H

#include "num/exact_sum.h"
#include "userkernel/execution/user_bins.h"

/* All zeros: of no items. */
typedef struct qn__user_total {
    qn__exact_sum sum;
    uint64_t count; /* items that count; of a MIN or MAX those that took part */
    int64_t item;   /* of a MIN or MAX: the first item with the value */
    uint64_t value; /* its bytes, at the lowest address */
    int has_value;
    qn__user_bins *bins; /* of a part with bins: all that it has */
} qn__user_total;

/* Gives the totals of a kernel, which are all zeros, their bins. Close them also after a failure,
 * which is QN_MEMORY. */
qn_status qn__user_totals_open(const qn__user_source *source, qn__user_total *total, qn_error *err);
void qn__user_totals_close(qn__user_total *total);
/* Back to no items. */
void qn__user_totals_clear(const qn__user_source *source, qn__user_total *total);

/* Adds `count` items from item `first` on. values: one of the part's type for each; took: of a MIN
 * or MAX, whether the item assigned one, as uint8_t; of a part with bins their numbers, as
 * qn__user_bins_add has them. No value is NaN. Returns -1, or the place of the first
 * that is infinite in a SUM. */
int64_t qn__user_total_add(qn__user_total *total, const qn__user_part *part, const void *values,
                           const void *took, int64_t first, int64_t count);

/* Adds another total of the same part, which has no bins. */
void qn__user_total_merge(qn__user_total *total, const qn__user_part *part, qn__user_total *other);

/* A total as int64 words, which ranks and threads add: a sum's limbs, and counts. Of an extreme the
 * words have the count only: its number does not add (userkernel/execution/user_run.c). */
uint64_t qn__user_total_words(const qn__user_part *part);
/* Adds a total to words; up to 2^30 of them may be added. The total keeps its value. */
void qn__user_total_put(qn__user_total *total, const qn__user_part *part, int64_t *words);
/* Adds what words hold to a total. */
void qn__user_total_take(qn__user_total *total, const qn__user_part *part, const int64_t *words);

/* All of a total as words, which were zeros, and back: it is added to the total. */
uint64_t qn__user_total_all_words(const qn__user_part *part);
void qn__user_total_pack(qn__user_total *total, const qn__user_part *part, int64_t *words);
void qn__user_total_unpack(qn__user_total *total, const qn__user_part *part, const int64_t *words);

/* Merges an extreme that other items gave; those items are not counted. */
void qn__user_total_offer(qn__user_total *total, const qn__user_part *part, uint64_t value,
                          int64_t item);

/* The result, as the bytes of the part's type; of a COUNT as uint64_t. 0 where it does not fit. A
 * MIN or MAX in which no item took part has no result: ask for `count`. Bins: qn__user_bins_value.
 */
int qn__user_total_value(qn__user_total *total, const qn__user_part *part, uint64_t *value);

#endif
