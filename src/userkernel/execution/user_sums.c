/* Totals that are one number: exact sums, counts, extremes. Those with bins are passed on to
 * user_bins.c, which has the same functions. Values of a whole piece of items are added at once,
 * because num/exact_block.h adds blocks several times as fast as single numbers. */
#include "userkernel/execution/user_sums.h"

#include "base/memory.h"
#include "num/exact_block.h"
#include "userkernel/execution/user_extreme.h"
#include "userkernel/execution/user_round.h"
#include <string.h>

/* ------------------------------------------------------------------ all parts */

qn_status qn__user_totals_open(const qn__user_source *source, qn__user_total *total,
                               qn_error *err) {
    for (uint32_t i = 0; i < source->parts; i++)
        if (source->part[i].bins > 0) {
            total[i].bins = qn__user_bins_make(&source->part[i], err);
            if (!total[i].bins)
                return QN_MEMORY;
        }
    return QN_OK;
}

void qn__user_totals_close(qn__user_total *total) {
    for (uint32_t i = 0; i < QN__USER_PARTS; i++) {
        qn__free(total[i].bins);
        total[i].bins = NULL;
    }
}

void qn__user_totals_clear(const qn__user_source *source, qn__user_total *total) {
    for (uint32_t i = 0; i < source->parts; i++) {
        total[i] = (qn__user_total){.bins = total[i].bins};
        if (total[i].bins)
            qn__user_bins_clear(total[i].bins, &source->part[i]);
    }
}

/* ------------------------------------------------------------------ one item */

/* Keeps the better one of the total's and this one; of equal ones that of the first item. */
static void take(qn__user_total *total, const qn__user_part *part, const void *value, int64_t item,
                 uint64_t count) {
    const int order = total->has_value ? qn__user_compare(part->type, value, &total->value) : 0;
    const int better = qn__user_use_is_least(part->use) ? order < 0 : order > 0;
    if (!total->has_value || better || (order == 0 && item < total->item)) {
        total->value = 0;
        memcpy(&total->value, value, qn__user_type_size(part->type));
        total->item = item;
        total->has_value = 1;
    }
    total->count += count;
}

/* ------------------------------------------------------------------ many items */

static int64_t add_reals(qn__user_total *total, qn__user_type type, const void *values,
                         int64_t count) {
    const size_t all = (size_t)count;
    const size_t added = type == QN__USER_F32 ? qn__exact_add_floats(&total->sum, values, all)
                                              : qn__exact_add_doubles(&total->sum, values, all);
    return added < all ? (int64_t)added : -1;
}

static void add_extreme(qn__user_total *total, const qn__user_part *part, const void *values,
                        const uint8_t *took, int64_t first, int64_t count) {
    uint64_t taken;
    const int64_t best = qn__user_extreme_of(part, values, took, count, &taken);
    if (best >= 0)
        take(total, part, (const char *)values + (size_t)best * qn__user_type_size(part->type),
             first + best, taken);
}

int64_t qn__user_total_add(qn__user_total *total, const qn__user_part *part, const void *values,
                           const void *took, int64_t first, int64_t count) {
    if (part->bins > 0)
        return qn__user_bins_add(total->bins, part, values, took, first, count);
    if (part->use == QN__USER_SUM && qn__user_type_is_real(part->type))
        return add_reals(total, part->type, values, count);
    if (part->use == QN__USER_SUM)
        qn__exact_add_integers(&total->sum, values, (size_t)count, part->type == QN__USER_I64);
    else if (part->use != QN__USER_COUNT)
        add_extreme(total, part, values, took, first, count);
    else
        for (int64_t i = 0; i < count; i++)
            total->count += ((const uint8_t *)values)[i] != 0;
    return -1;
}

void qn__user_total_merge(qn__user_total *total, const qn__user_part *part, qn__user_total *other) {
    if (part->use == QN__USER_SUM)
        qn__exact_merge(&total->sum, &other->sum);
    else if (part->use == QN__USER_COUNT)
        total->count += other->count;
    else if (other->has_value)
        take(total, part, &other->value, other->item, other->count);
}

/* ------------------------------------------------------------------ words */

uint64_t qn__user_total_words(const qn__user_part *part) {
    if (part->bins > 0)
        return qn__user_bins_words(part);
    return part->use == QN__USER_SUM ? QN__EXACT_LIMBS : part->use > QN__USER_SUM ? 1 : 0;
}

void qn__user_total_put(qn__user_total *total, const qn__user_part *part, int64_t *words) {
    if (part->bins > 0) {
        qn__user_bins_put(total->bins, part, words);
        return;
    }
    if (part->use != QN__USER_SUM) {
        words[0] += (int64_t)total->count;
        return;
    }
    qn__exact_sum none = {.pending = 0};
    qn__exact_merge(&total->sum, &none); /* its limbs, but for the last, are below 2^32 */
    for (int i = 0; i < QN__EXACT_LIMBS; i++)
        words[i] += total->sum.limb[i];
}

void qn__user_total_take(qn__user_total *total, const qn__user_part *part, const int64_t *words) {
    if (part->bins > 0) {
        qn__user_bins_take(total->bins, part, words);
        return;
    }
    if (part->use != QN__USER_SUM) {
        total->count += (uint64_t)words[0];
        return;
    }
    qn__exact_sum sum = {.pending = 0};
    memcpy(sum.limb, words, sizeof sum.limb);
    qn__exact_merge(&total->sum, &sum);
}

/* Words of an extreme's numbers: for each a value and its item + 1. */
static uint64_t extreme_words(const qn__user_part *part) {
    return !qn__user_use_is_extreme(part->use) ? 0 : part->bins > 0 ? 2 * (uint64_t)part->bins : 2;
}

uint64_t qn__user_total_all_words(const qn__user_part *part) {
    return qn__user_total_words(part) + extreme_words(part);
}

void qn__user_total_pack(qn__user_total *total, const qn__user_part *part, int64_t *words) {
    int64_t *extreme = words + qn__user_total_words(part);
    if (qn__user_total_words(part) > 0)
        qn__user_total_put(total, part, words);
    if (extreme_words(part) == 0)
        return;
    if (part->bins > 0) {
        qn__user_bins_tell(total->bins, part, extreme);
    } else if (total->has_value) {
        memcpy(extreme, &total->value, sizeof *extreme);
        extreme[1] = total->item + 1;
    }
}

void qn__user_total_unpack(qn__user_total *total, const qn__user_part *part, const int64_t *words) {
    const int64_t *extreme = words + qn__user_total_words(part);
    if (qn__user_total_words(part) > 0)
        qn__user_total_take(total, part, words);
    if (extreme_words(part) == 0)
        return;
    if (part->bins > 0)
        qn__user_bins_hear(total->bins, part, extreme);
    else if (extreme[1] > 0)
        qn__user_total_offer(total, part, (uint64_t)extreme[0], extreme[1] - 1);
}

void qn__user_total_offer(qn__user_total *total, const qn__user_part *part, uint64_t value,
                          int64_t item) {
    take(total, part, &value, item, 0);
}

/* ------------------------------------------------------------------ results */

static int whole_number(qn__exact_sum *sum, qn__user_type type, uint64_t *value) {
    qn__natural n;
    const int sign = qn__exact_magnitude(sum, &n);
    uint64_t magnitude = 0;
    for (int i = 0; i < n.size; i++) {
        const int place = n.place + 32 * i;
        if (place >= 64 && n.digit[i] != 0)
            return 0;
        if (place >= 0 && place < 64)
            magnitude |= (uint64_t)n.digit[i] << place;
    }
    *value = sign < 0 ? 0 - magnitude : magnitude;
    if (type == QN__USER_U64)
        return sign >= 0;
    return magnitude <= (uint64_t)INT64_MAX + (sign < 0);
}

int qn__user_total_value(qn__user_total *total, const qn__user_part *part, uint64_t *value) {
    if (part->use == QN__USER_SUM)
        return qn__user_type_is_real(part->type)
                   ? qn__user_round_sum(&total->sum, part->type, value)
                   : whole_number(&total->sum, part->type, value);
    *value = part->use == QN__USER_COUNT ? total->count : total->value;
    return 1;
}
