#include "job/evaluation.h"

#include "base/binary/float_bits.h"
#include "base/memory.h"
#include "num/elementary.h"
#include "num/ratio.h"
#include <math.h>

/* The power of two of the lowest bit of a float above 0. */
static int lowest_bit(float value) {
    const uint32_t bits = qn__float_bits(value);
    const int exponent = (int)(bits >> 23);
    const uint32_t mantissa = (bits & 0x7FFFFF) | (uint32_t)(exponent > 0) << 23;
    return (exponent > 0 ? exponent : 1) - 150 + __builtin_ctz(mantissa);
}

/* Counts are exact where 2^62 leaves space for it, as with weights that people write. Else the unit
 * is 2^-61 of the sum, so that no count is wrong by more. */
qn_status qn__evaluation_counts(const float *weights, uint64_t items, uint64_t **out,
                                qn_error *err) {
    qn__exact_sum sum = {.pending = 0};
    int unit = 1000, top;
    *out = qn__alloc(items, sizeof **out, err);
    if (!*out)
        return QN_MEMORY;
    for (uint64_t i = 0; i < items; i++) {
        if (!(weights[i] > 0))
            continue;
        const int bit = lowest_bit(weights[i]);
        unit = bit < unit ? bit : unit;
        qn__exact_add(&sum, (double)weights[i]);
    }
    frexp(qn__ratio_of_sum(&sum, 1), &top); /* the sum is at most 2^top */
    unit = unit < top - 61 ? top - 61 : unit;
    for (uint64_t i = 0; i < items; i++)
        (*out)[i] = (uint64_t)rint(ldexp((double)weights[i], -unit));
    return QN_OK;
}

static uint64_t count_of(const qn__judged *in, uint64_t item) {
    return in->counts ? in->counts[item] : 1;
}

/* The predicted class and its output, as docs/exactness.md 6.6 defines them. */
static uint32_t predicted(const qn__judged *in, const float *y, float *score) {
    uint32_t best = 0;
    if (in->outputs == 1) {
        best = y[0] > 0.5f;
        *score = best ? y[0] : 1.0f - y[0];
        return best;
    }
    for (uint32_t j = 1; j < in->outputs; j++)
        best = y[j] > y[best] ? j : best;
    *score = y[best];
    return best;
}

static int is_class(const qn__judged *in, int32_t label) {
    return label >= 0 && (uint32_t)label < in->classes;
}

/* Whether fewer than QN__NEAR classes come before the label: those of greater outputs, and of equal
 * ones those of smaller numbers (docs/exactness.md 24.80). */
static int is_near(const qn__judged *in, const float *y, int32_t label) {
    uint32_t before = 0;
    if (!is_class(in, label))
        return 0;
    for (uint32_t j = 0; j < in->outputs; j++)
        before += y[j] > y[label] || (j < (uint32_t)label && y[j] == y[label]);
    return before < QN__NEAR;
}

/* Minus the logarithm of the probability that the label has. */
static double surprise(const qn__judged *in, const float *y, int32_t label) {
    float p = 0;
    if (is_class(in, label))
        p = in->outputs > 1 ? y[label] : label == 1 ? y[0] : 1.0f - y[0];
    return -(double)qn__log(p > 0x1p-52f ? p : 0x1p-52f);
}

/* Bin b is above b / 15 and not above (b + 1) / 15. The product is exact. */
static uint32_t bin_of(float confidence) {
    const int bin = (int)ceil((double)confidence * QN__CALIBRATION_BINS) - 1;
    return bin < 0 ? 0 : bin >= QN__CALIBRATION_BINS ? QN__CALIBRATION_BINS - 1 : (uint32_t)bin;
}

/* What calibration needs of a bin: the sum of correct counts minus confidences. */
typedef struct sums {
    qn__exact_sum loss, confidence[QN__CALIBRATION_BINS];
} sums;

static void add_item(const qn__judged *in, uint64_t i, qn__evaluated *out, sums *s) {
    const float *y = in->output + i * in->outputs;
    const int32_t label = in->labels[i];
    const uint64_t count = count_of(in, i);
    float score;
    if (isnan(y[0]))
        return;
    const uint32_t class = predicted(in, y, &score);
    const int right = label == (int32_t) class;
    out->count += count;
    out->items++;
    out->correct += right ? count : 0;
    out->right += (uint64_t)right;
    out->near += in->outputs > QN__NEAR && is_near(in, y, label) ? count : 0;
    qn__class_tally *t = &out->of[class];
    t->predicted += count;
    t->taken++;
    t->correct += right ? count : 0;
    t->right += (uint64_t)right;
    if (is_class(in, label)) {
        out->of[label].labelled += count;
        out->of[label].items++;
    }
    if (!in->probabilities)
        return;
    const uint32_t b = bin_of(score);
    out->bin[b].count += count;
    out->bin[b].items++;
    out->bin[b].correct += right ? count : 0;
    qn__ratio_add_times(&s->confidence[b], (double)score, count);
    qn__ratio_add_times(&s->loss, surprise(in, y, label), count);
}

/* Adds the distance of a bin's confidences from its correct counts. */
static void add_distance(qn__exact_sum *sum, qn__exact_sum *confidence, uint64_t correct) {
    qn__exact_sum right = {.pending = 0};
    qn__natural value;
    qn__exact_add_u64(&right, correct);
    for (int i = 0; i < QN__EXACT_LIMBS; i++)
        right.limb[i] -= confidence->limb[i]; /* carries were propagated */
    const int sign = qn__exact_magnitude(&right, &value);
    for (int i = 0; i < QN__EXACT_LIMBS; i++)
        sum->limb[i] += sign < 0 ? -right.limb[i] : right.limb[i];
}

static void calibrate(qn__evaluated *out, sums *s) {
    qn__exact_sum distance = {.pending = 0};
    for (int b = 0; b < QN__CALIBRATION_BINS; b++) {
        out->bin[b].confidence = (double)NAN;
        if (out->bin[b].count > 0)
            out->bin[b].confidence = qn__ratio_of_sum(&s->confidence[b], out->bin[b].count);
        add_distance(&distance, &s->confidence[b], out->bin[b].correct);
    }
    out->calibration_error = qn__ratio_of_sum(&distance, out->count);
    out->log_loss = qn__ratio_of_sum(&s->loss, out->count);
}

void qn__evaluation_classes(const qn__judged *in, qn__evaluated *out) {
    sums s = {.loss = {.pending = 0}};
    out->log_loss = out->calibration_error = out->auc = (double)NAN;
    for (uint64_t i = 0; i < in->items; i++)
        add_item(in, i, out, &s);
    if (in->probabilities && out->count > 0)
        calibrate(out, &s);
}

double qn__evaluation_mean(uint32_t count, const double *numbers, const uint64_t *weight) {
    qn__exact_sum sum = {.pending = 0};
    uint64_t all = 0;
    for (uint32_t i = 0; i < count; i++) {
        if (isnan(numbers[i]))
            continue;
        all += weight ? weight[i] : 1;
        if (!weight || weight[i] > 0)
            qn__ratio_add_times(&sum, numbers[i], weight ? weight[i] : 1);
    }
    return all > 0 ? qn__ratio_of_sum(&sum, all) : (double)NAN;
}
