/* The bins of a total that is an array: exact sums, counts and extremes, which do not depend on the
 * order of the items. */
#ifndef QN_USERKERNEL_EXECUTION_USER_BINS_H
#define QN_USERKERNEL_EXECUTION_USER_BINS_H

#include "userkernel/language/user_source.h"

typedef union qn__user_bins qn__user_bins;

/* All bins of a part are 0. NULL: QN_MEMORY. qn__free releases them. */
qn__user_bins *qn__user_bins_make(const qn__user_part *part, qn_error *err);
void qn__user_bins_clear(qn__user_bins *bins, const qn__user_part *part);

/* Adds the values of `count` items from `first` on, each to the bin whose number `to` has; to none
 * where that is -1. Returns -1, or the place of the first value that is infinite in a SUM.
 * bins == NULL: only looks for it. */
int64_t qn__user_bins_add(qn__user_bins *bins, const qn__user_part *part, const void *values,
                          const int32_t *to, int64_t first, int64_t count);

/* The bins as int64 words, which ranks and threads add: as qn__user_total_words and the others. An
 * extreme has none. */
uint64_t qn__user_bins_words(const qn__user_part *part);
void qn__user_bins_put(qn__user_bins *bins, const qn__user_part *part, int64_t *words);
void qn__user_bins_take(qn__user_bins *bins, const qn__user_part *part, const int64_t *words);

/* Extremes as two words a bin, its bytes and the item + 1, or zeros. _tell merges the bins into
 * `places`, _hear merges `places` into the bins; the better extreme stays. */
void qn__user_bins_tell(const qn__user_bins *bins, const qn__user_part *part, int64_t *places);
void qn__user_bins_hear(qn__user_bins *bins, const qn__user_part *part, const int64_t *places);

/* The result of a bin, as the bytes of qn__user_part_type. 0 where it does not fit. */
int qn__user_bins_value(qn__user_bins *bins, const qn__user_part *part, uint32_t bin,
                        uint64_t *value);

#endif
