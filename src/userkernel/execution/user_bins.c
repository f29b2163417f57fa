/* The bins of a total that is an array, such as SUM(double, sales, 100). Each thread has bins of
 * its own. At the end of a round they become words of int64, which threads and ranks add:
 *
 *   thread 0   bins --put--+
 *   thread 1   bins --put--+--> words --take--> bins of the rank --> one number each
 *   rank 1         words --+
 *
 * Sums of integers do not depend on the order of addition, so neither does the result. Of a real
 * number a bin has the limbs of an exact sum, of an integer 128 bits, of a count one word. The
 * least and greatest numbers do not add: each rank tells its own, and all ranks take the best of
 * them. */
#include "userkernel/execution/user_bins.h"

#include "base/memory.h"
#include "num/exact_pair.h"
#include "userkernel/execution/user_extreme.h"
#include "userkernel/execution/user_round.h"
#include <math.h>
#include <string.h>

/* A sum of integers: low + 2^64 high. */
typedef struct wide {
    uint64_t low;
    int64_t high;
} wide;

/* The least or greatest number so far, and the first item with it + 1; 0: there is none. */
typedef struct best {
    uint64_t value; /* its bytes, at the lowest address */
    int64_t item;
} best;

/* An array of one of these, as the part says. After sums of real numbers stand as many pairs,
 * which take what they can hold (num/exact_pair.h): they are in the cache when the sums are not. */
union qn__user_bins {
    qn__exact_sum real;
    wide integer;
    uint64_t count;
    best best;
};

typedef enum kind { REAL, INTEGER, COUNT, BEST } kind;

static kind kind_of(const qn__user_part *part) {
    return part->use == QN__USER_COUNT          ? COUNT
           : qn__user_use_is_extreme(part->use) ? BEST
           : qn__user_type_is_real(part->type)  ? REAL
                                                : INTEGER;
}

static uint64_t size_of(const qn__user_part *part) {
    static const uint64_t sizes[] = {sizeof(qn__exact_sum) + sizeof(qn__pair), sizeof(wide),
                                     sizeof(uint64_t), sizeof(best)};
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

/* Keeps the better one; of equal ones that of the first item. */
static void offer(best *own, const qn__user_part *part, const void *value, int64_t item) {
    const int order = own->item > 0 ? qn__user_compare(part->type, value, &own->value) : 0;
    const int better = qn__user_use_is_least(part->use) ? order < 0 : order > 0;
    if (own->item > 0 && !better && (order != 0 || item >= own->item))
        return;
    own->value = 0;
    memcpy(&own->value, value, qn__user_type_size(part->type));
    own->item = item;
}

static void add_extremes(qn__user_bins *bins, const qn__user_part *part, const void *values,
                         const int32_t *to, int64_t first, int64_t count) {
    const size_t size = qn__user_type_size(part->type);
    for (int64_t i = 0; i < count && bins; i++)
        if (to[i] >= 0)
            offer(&(&bins->best)[to[i]], part, (const char *)values + (size_t)i * size,
                  first + i + 1);
}

int64_t qn__user_bins_add(qn__user_bins *bins, const qn__user_part *part, const void *values,
                          const int32_t *to, int64_t first, int64_t count) {
    const kind k = kind_of(part);
    if (k == REAL)
        return add_reals(bins, part, values, to, count);
    if (k == BEST)
        add_extremes(bins, part, values, to, first, count);
    if (k == BEST)
        return -1;
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
    static const uint64_t words[] = {QN__EXACT_LIMBS, 3, 1, 0};
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
        } else if (k == INTEGER) {
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
        } else if (k == INTEGER) {
            const int64_t *w = words + 3 * (size_t)i;
            wide *sum = &(&bins->integer)[i];
            add_wide(sum, (uint64_t)w[0], 0);
            add_wide(sum, (uint64_t)w[1] << 32, w[1] >> 32);
            add_wide(sum, 0, w[2]);
        }
    }
}

void qn__user_bins_tell(const qn__user_bins *bins, const qn__user_part *part, int64_t *places) {
    for (uint32_t i = 0; i < part->bins; i++) {
        const best *own = &(&bins->best)[i];
        best known = {(uint64_t)places[2 * (size_t)i], places[2 * (size_t)i + 1]};
        if (own->item > 0)
            offer(&known, part, &own->value, own->item);
        places[2 * (size_t)i] = (int64_t)known.value;
        places[2 * (size_t)i + 1] = known.item;
    }
}

void qn__user_bins_hear(qn__user_bins *bins, const qn__user_part *part, const int64_t *places) {
    for (uint32_t i = 0; i < part->bins; i++)
        if (places[2 * (size_t)i + 1] > 0)
            offer(&(&bins->best)[i], part, &places[2 * (size_t)i], places[2 * (size_t)i + 1]);
}

/* ------------------------------------------------------------------ results */

/* What a bin without a number has: the number that none is worse than. */
static uint64_t neutral(const qn__user_part *part) {
    static const char *const ends[][2] = {
        {"-128", "127"},
        {"-32768", "32767"},
        {"-2147483648", "2147483647"},
        {"-9223372036854775808", "9223372036854775807"},
        {"0", "255"},
        {"0", "65535"},
        {"0", "4294967295"},
        {"0", "18446744073709551615"},
    };
    const int least = qn__user_use_is_least(part->use);
    const float narrow = least ? INFINITY : -INFINITY;
    const double real = (double)narrow;
    uint64_t value = 0;
    if (part->type == QN__USER_F32)
        memcpy(&value, &narrow, sizeof narrow);
    else if (part->type == QN__USER_F64)
        memcpy(&value, &real, sizeof real);
    else
        qn__user_type_read(part->type, ends[part->type][least], &value);
    return value;
}

static uint64_t value_of_best(const best *own, const qn__user_part *part) {
    return part->use >= QN__USER_ARGMIN ? (uint64_t)(own->item - 1)
           : own->item > 0              ? own->value
                                        : neutral(part);
}

int qn__user_bins_value(qn__user_bins *bins, const qn__user_part *part, uint32_t bin,
                        uint64_t *value) {
    const kind k = kind_of(part);
    if (k == REAL)
        return qn__user_round_sum(sum_of(bins, part, bin), part->type, value);
    if (k != INTEGER) {
        *value = k == COUNT ? (&bins->count)[bin] : value_of_best(&(&bins->best)[bin], part);
        return 1;
    }
    const wide *sum = &(&bins->integer)[bin];
    *value = sum->low;
    return sum->high == (part->type == QN__USER_I64 && sum->low >> 63 ? -1 : 0);
}
