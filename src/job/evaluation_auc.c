/* The area under the ROC curve, from ranks of scores.
 *
 * It is the part of all pairs of an item of the class and another item in which the first has the
 * higher score, where equal scores count one half. All items are sorted by score. For each group of
 * equal scores the pairs are a product of two sums of counts, an integer. */
#include "base/binary/float_bits.h"
#include "base/memory.h"
#include "job/evaluation.h"
#include "num/ratio.h"
#include <math.h>

enum { DIGIT_BITS = 11, DIGITS = 1 << DIGIT_BITS, PASSES = 3 };

/* Sorted by their high 32 bits: the score, with the order of floats; below it the item. */
typedef struct ranking {
    uint64_t *entry, *other;
    uint64_t entries;
} ranking;

static uint32_t key_of(float score) {
    const uint32_t bits = qn__float_bits(score + 0.0f); /* -0 is 0 */
    return bits & 0x80000000 ? ~bits : bits | 0x80000000;
}

static uint32_t digit_of(uint64_t entry, int pass) {
    return (uint32_t)(entry >> (32 + DIGIT_BITS * pass)) & (DIGITS - 1);
}

static void sort(ranking *r) {
    for (int pass = 0; pass < PASSES; pass++) {
        uint64_t at[DIGITS] = {0}, sum = 0;
        for (uint64_t i = 0; i < r->entries; i++)
            at[digit_of(r->entry[i], pass)]++;
        for (int d = 0; d < DIGITS; d++) {
            const uint64_t here = at[d];
            at[d] = sum;
            sum += here;
        }
        for (uint64_t i = 0; i < r->entries; i++)
            r->other[at[digit_of(r->entry[i], pass)]++] = r->entry[i];
        uint64_t *const swap = r->entry;
        r->entry = r->other;
        r->other = swap;
    }
}

static void rank(const qn__judged *in, uint32_t output, ranking *r) {
    r->entries = 0;
    for (uint64_t i = 0; i < in->items; i++) {
        const float *y = in->output + i * in->outputs;
        if (!isnan(y[0]))
            r->entry[r->entries++] = (uint64_t)key_of(y[output]) << 32 | i;
    }
    sort(r);
}

/* Twice the pairs over twice their number; NaN where one side has no item. */
static double area(const qn__judged *in, int32_t class, const ranking *r) {
    qn__exact_sum pairs = {.pending = 0}, all = {.pending = 0};
    uint64_t below = 0, members = 0;
    for (uint64_t i = 0; i < r->entries;) {
        uint64_t side[2] = {0, 0}; /* counts of others and of the class in a group */
        const uint64_t key = r->entry[i] >> 32;
        for (; i < r->entries && r->entry[i] >> 32 == key; i++) {
            const uint32_t item = (uint32_t)r->entry[i];
            side[in->labels[item] == class] += in->counts ? in->counts[item] : 1;
        }
        if (side[1] > 0)
            qn__ratio_add_product(&pairs, side[1], 2 * below + side[0]);
        below += side[0];
        members += side[1];
    }
    if (below == 0 || members == 0)
        return (double)NAN;
    qn__ratio_add_product(&all, members, 2 * below);
    return qn__ratio_of_sums(&pairs, &all);
}

/* With two classes the score of the second decides for both. */
static void of_two(const qn__judged *in, ranking *r, qn__evaluated *out) {
    rank(in, in->outputs - 1, r);
    out->auc = out->of[0].auc = out->of[1].auc = area(in, 1, r);
}

static qn_status of_all(const qn__judged *in, ranking *r, qn__evaluated *out, qn_error *err) {
    double *each = qn__alloc(in->classes, sizeof *each, err);
    if (!each)
        return QN_MEMORY;
    for (uint32_t c = 0; c < in->classes; c++) {
        each[c] = (double)NAN;
        if (out->of[c].items > 0) {
            rank(in, c, r);
            each[c] = area(in, (int32_t)c, r);
        }
        out->of[c].auc = each[c];
    }
    out->auc = qn__evaluation_mean(in->classes, each, NULL);
    qn__free(each);
    return QN_OK;
}

qn_status qn__evaluation_auc(const qn__judged *in, qn__evaluated *out, qn_error *err) {
    ranking r = {.entry = qn__alloc(in->items, sizeof *r.entry, err)};
    uint64_t *const first = r.entry;
    r.other = first ? qn__alloc(in->items, sizeof *r.other, err) : NULL;
    uint64_t *const second = r.other;
    qn_status status = second ? QN_OK : QN_MEMORY;
    if (status == QN_OK && in->classes == 2)
        of_two(in, &r, out);
    else if (status == QN_OK)
        status = of_all(in, &r, out, err);
    qn__free(first);
    qn__free(second);
    return status;
}
