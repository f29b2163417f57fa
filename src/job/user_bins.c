#include "job/user_bins.h"

#include "base/memory.h"
#include "job/user_round.h"
#include "num/exact_pair.h"
#include <math.h>
#include <string.h>

/* A sum of integers: low + 2^64 high. */
typedef struct wide {
    uint64_t low;
    int64_t high;
} wide;

/* An array of one of these, as the part says. Behind sums of real numbers stand as many pairs,
 * which take what they can hold (num/exact_pair.h): they are in the cache when the sums are not. */
union qn__user_bins {
    qn__exact_sum real;
    wide integer;
    uint64_t count;
};

typedef enum kind { REAL, INTEGER, COUNT } kind;

static kind kind_of(const qn__user_part *part) {
    return part->use == QN__USER_COUNT ? COUNT : qn__user_type_is_real(part->type) ? REAL : INTEGER;
}

static uint64_t size_of(const qn__user_part *part) {
    static const uint64_t sizes[] = {sizeof(qn__exact_sum) + sizeof(qn__pair), sizeof(wide),
                                     sizeof(uint64_t)};
    return sizes[kind_of(part)];
}

static qn__pair *pairs_of(qn__user_bins *bins, const qn__user_part *part) {
    return (qn__pair *)(void *)(&bins->real + part->bins);
}

/* The sum of a bin, all of it. */
static qn__exact_sum *sum_of(qn__user_bins *bins, const qn__user_part *part, uint32_t bin) {
    qn__exact_sum *sum = &(&bins->real)[bin];
    qn__exact_add_pair(sum, &pairs_of(bins, part)[bin]);
    return sum;
}

qn__user_bins *qn__user_bins_make(const qn__user_part *part, qn_error *err) {
    return qn__alloc(part->bins, size_of(part), err);
}

void qn__user_bins_clear(qn__user_bins *bins, const qn__user_part *part) {
    memset(bins, 0, (size_t)(part->bins * size_of(part)));
}

/* ------------------------------------------------------------------ adding */

/* 0: x is infinite. */
static int add_real(qn__exact_sum *sum, qn__pair *pair, double x) {
    const qn__pair before = *pair;
    if (qn__pair_add(pair, x) == 0)
        return 1;
    *pair = before;
    if (!isfinite(x))
        return 0;
    qn__exact_add(sum, x);
    return 1;
}

static int64_t add_reals(qn__user_bins *bins, const qn__user_part *part, const void *values,
                         const int32_t *to, int64_t count) {
    qn__pair *pairs = bins ? pairs_of(bins, part) : NULL, none = {0, 0};
    qn__exact_sum nothing = {.pending = 0};
    for (int64_t i = 0; i < count; i++) {
        const double x = part->type == QN__USER_F32 ? (double)((const float *)values)[i]
                                                    : ((const double *)values)[i];
        if (to[i] >= 0 &&
            !add_real(bins ? &(&bins->real)[to[i]] : &nothing, bins ? &pairs[to[i]] : &none, x))
            return i;
    }
    return -1;
}

static void add_wide(wide *sum, uint64_t low, int64_t high) {
    sum->low += low;
    sum->high += high + (sum->low < low);
}

int64_t qn__user_bins_add(qn__user_bins *bins, const qn__user_part *part, const void *values,
                          const int32_t *to, int64_t count) {
    const kind k = kind_of(part);
    if (k == REAL)
        return add_reals(bins, part, values, to, count);
    for (int64_t i = 0; i < count && bins; i++) {
        if (to[i] < 0)
            continue;
        if (k == COUNT) {
            (&bins->count)[to[i]] += ((const uint8_t *)values)[i] != 0;
        } else {
            const uint64_t x = ((const uint64_t *)values)[i];
            add_wide(&(&bins->integer)[to[i]], x, part->type == QN__USER_I64 && x >> 63 ? -1 : 0);
        }
    }
    return -1;
}

/* ------------------------------------------------------------------ words */

uint64_t qn__user_bins_words(const qn__user_part *part) {
    static const uint64_t words[] = {QN__EXACT_LIMBS, 3, 1};
    return part->bins * words[kind_of(part)];
}

/* The limbs of a sum, but for the last, are below 2^32 after a merge. */
static void put_real(qn__exact_sum *sum, int64_t *words) {
    qn__exact_sum none = {.pending = 0};
    qn__exact_merge(sum, &none);
    for (int i = 0; i < QN__EXACT_LIMBS; i++)
        words[i] += sum->limb[i];
}

void qn__user_bins_put(qn__user_bins *bins, const qn__user_part *part, int64_t *words) {
    const kind k = kind_of(part);
    for (uint32_t i = 0; i < part->bins; i++) {
        if (k == REAL) {
            put_real(sum_of(bins, part, i), words + (size_t)i * QN__EXACT_LIMBS);
        } else if (k == COUNT) {
            words[i] += (int64_t)(&bins->count)[i];
        } else {
            const wide *sum = &(&bins->integer)[i];
            words[3 * (size_t)i] += (int64_t)(sum->low & 0xFFFFFFFF);
            words[3 * (size_t)i + 1] += (int64_t)(sum->low >> 32);
            words[3 * (size_t)i + 2] += sum->high;
        }
    }
}

void qn__user_bins_take(qn__user_bins *bins, const qn__user_part *part, const int64_t *words) {
    const kind k = kind_of(part);
    for (uint32_t i = 0; i < part->bins; i++) {
        if (k == REAL) {
            qn__exact_sum sum = {.pending = 0};
            memcpy(sum.limb, words + (size_t)i * QN__EXACT_LIMBS, sizeof sum.limb);
            qn__exact_merge(&(&bins->real)[i], &sum);
        } else if (k == COUNT) {
            (&bins->count)[i] += (uint64_t)words[i];
        } else {
            const int64_t *w = words + 3 * (size_t)i;
            wide *sum = &(&bins->integer)[i];
            add_wide(sum, (uint64_t)w[0], 0);
            add_wide(sum, (uint64_t)w[1] << 32, w[1] >> 32);
            add_wide(sum, 0, w[2]);
        }
    }
}

/* ------------------------------------------------------------------ results */

int qn__user_bins_value(qn__user_bins *bins, const qn__user_part *part, uint32_t bin,
                        uint64_t *value) {
    const kind k = kind_of(part);
    if (k == REAL)
        return qn__user_round_sum(sum_of(bins, part, bin), part->type, value);
    if (k == COUNT) {
        *value = (&bins->count)[bin];
        return 1;
    }
    const wide *sum = &(&bins->integer)[bin];
    *value = sum->low;
    return sum->high == (part->type == QN__USER_I64 && sum->low >> 63 ? -1 : 0);
}
