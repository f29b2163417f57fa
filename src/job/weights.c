#include "job/weights.h"

#include "base/memory.h"
#include "job/token_check.h"
#include "layer/answers.h"
#include "model/recipe/class_weight.h"
#include "num/exact_sum.h"
#include <math.h>

qn_status qn__weights_combine(const qn_data *set, const float *of_class, const char *what,
                              float **out, qn_error *err) {
    float greatest = 0.0f;
    *out = NULL;
    if (!set->weights && !of_class)
        return QN_OK;
    float *weight = qn__alloc(set->items, sizeof *weight, err);
    if (!weight)
        return QN_MEMORY;
    for (uint64_t i = 0; i < set->items; ++i) {
        const float own = set->weights ? set->weights[i] : 1.0f;
        weight[i] = of_class ? own * of_class[set->labels[i]] : own;
        greatest = weight[i] > greatest ? weight[i] : greatest;
    }
    if (greatest > 0 && isfinite(greatest)) {
        *out = weight;
        return QN_OK;
    }
    qn__free(weight);
    if (greatest > 0)
        qn__fail(err, QN_INPUT, "the weight of an item times that of its class is out of range");
    else
        qn__fail(err, QN_INPUT, "the weight of every item is 0");
    qn__at(err, "%s", what);
    return qn__remedy(err, QN_INPUT,
                      greatest > 0 ? "give smaller weights: only their ratios count"
                                   : "give some items and their classes a weight above 0");
}

/* RN(n / (k * count)): n items, k classes that have any, and `count` items of the class. */
static qn_status balance(const qn_data *train, uint32_t classes, float *weight, qn_error *err) {
    uint64_t present = 0, *count = qn__alloc(classes, sizeof *count, err);
    if (!count)
        return QN_MEMORY;
    for (uint64_t i = 0; i < train->items; ++i)
        present += count[train->labels[i]]++ == 0;
    for (uint32_t c = 0; c < classes; ++c) {
        qn__exact_sum items = {.pending = 0}, share = {.pending = 0};
        weight[c] = 1.0f;
        if (count[c] == 0)
            continue;
        qn__exact_add_u64(&items, train->items);
        /* The product may take more than 64 bits. */
        qn__exact_add(&share, (double)present * (double)(count[c] & 0xFFFFFF));
        qn__exact_add(&share, (double)present * (double)(count[c] >> 24) * 0x1p24);
        weight[c] = qn__exact_weighted_mean(&items, &share);
    }
    qn__free(count);
    return QN_OK;
}

qn_status qn__class_factors(const qn__recipe *recipe, const qn_data *train, float **out,
                            qn_error *err) {
    const qn__class_names names = qn__recipe_class_names(recipe);
    *out = NULL;
    if (!recipe->class_weight)
        return QN_OK;
    float *weight = qn__alloc(names.classes, sizeof *weight, err);
    if (!weight)
        return QN_MEMORY;
    const qn_status status = qn__class_weight_is_balanced(recipe->class_weight)
                                 ? balance(train, names.classes, weight, err)
                                 : qn__class_weight_read(recipe->class_weight, &names, weight, err);
    if (status == QN_OK)
        *out = weight;
    else
        qn__free(weight);
    return status;
}

void qn__weights_share(float *weights, uint64_t items) {
    qn__exact_sum sum = {.pending = 0};
    for (uint64_t i = 0; i < items; ++i)
        qn__exact_add(&sum, (double)weights[i]);
    qn__exact_shares(&sum, items, weights);
}

qn_status qn__weights_of_targets(const qn_data *set, uint32_t tokens, float **shares,
                                 qn_error *err) {
    if (!set->several && !tokens)
        return QN_OK;
    float *share = *shares ? *shares : qn__alloc(set->items, sizeof *share, err);
    if (!share)
        return QN_MEMORY;
    for (uint64_t i = 0; i < set->items; ++i)
        share[i] =
            qn__answers_share(*shares ? share[i] : 1.0f,
                              tokens ? qn__next_count(set, i, tokens) : qn__several_count(set, i));
    *shares = share;
    return QN_OK;
}
