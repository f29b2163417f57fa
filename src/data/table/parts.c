/* Cutting a data set into parts, each a table of its own. */
#include "base/argument.h"
#include "base/memory.h"
#include "base/system/float_state.h"
#include "data/table/data.h"
#include "data/table/kept_part.h"
#include "num/permutation.h"
#include "num/philox.h"
#include <quern/convert.h>
#include <string.h>

enum { MOST_PARTS = 256 };

typedef struct cut {
    const qn_data *data;
    const uint64_t *shares;
    uint32_t count;
    uint64_t all;    /* the sum of the shares */
    uint64_t *items; /* of each class, or of all in items[0] */
    uint64_t *seen;  /* of these, so far */
    uint8_t *part;   /* of each item */
} cut;

static qn_status check(cut *c, int stratify, qn_error *err) {
    if (c->count == 0 || c->count > MOST_PARTS) {
        qn__fail(err, QN_USAGE, "%u is not a number of parts", (unsigned)c->count);
        return qn__remedy(err, QN_USAGE, "cut into 1 to %d parts", MOST_PARTS);
    }
    for (uint32_t j = 0; j < c->count; j++) {
        if (c->shares[j] == 0 || c->shares[j] >= ((uint64_t)1 << 31) - c->all) {
            qn__fail(err, QN_USAGE, "the share of part %u is %llu", (unsigned)j,
                     (unsigned long long)c->shares[j]);
            return qn__remedy(err, QN_USAGE, "give shares from 1, with a sum below 2^31");
        }
        c->all += c->shares[j];
    }
    if (!stratify || c->data->labels)
        return QN_OK;
    qn__fail(err, QN_USAGE,
             c->data->several ? "items have several labels, so classes cannot be cut one by one"
                              : "the data has no classes, so classes cannot be cut one by one");
    return qn__remedy(err, QN_USAGE, "leave `split.stratify` out");
}

/* floor(n * sum / all + 1/2), exactly: the sums are below 2^31, so no product overflows. */
static uint64_t bound(const cut *c, uint64_t n, uint64_t sum) {
    const uint64_t times = n / c->all, rest = n % c->all;
    return times * sum + (2 * rest * sum + c->all) / (2 * c->all);
}

/* The part of the item that stands at place `at` of `n` in the permuted order. */
static uint8_t part_at(const cut *c, uint64_t n, uint64_t at) {
    uint64_t sum = 0;
    uint32_t j = 0;
    while (j + 1 < c->count && at >= bound(c, n, sum + c->shares[j]))
        sum += c->shares[j++];
    return (uint8_t)j;
}

static void choose(const cut *c, uint64_t seed, int stratify) {
    const qn_data *data = c->data;
    qn__permutation order;
    for (uint64_t i = 0; i < data->items; i++)
        c->items[stratify ? data->labels[i] : 0]++;
    qn__permutation_begin(&order, data->items, seed, QN__PURPOSE_SPLIT, 0);
    for (uint64_t p = 0; p < data->items; p++) {
        const uint64_t item = qn__permutation_at(&order, p);
        const size_t group = stratify ? (size_t)data->labels[item] : 0;
        c->part[item] = part_at(c, c->items[group], c->seen[group]++);
    }
}

/* ------------------------------------------------------------------ a part as a table */

static qn_status copy_names(const qn_data *data, const uint64_t *item, qn_data *out,
                            qn_error *err) {
    uint64_t size = 0;
    if (!data->names)
        return QN_OK;
    for (uint64_t i = 0; i < out->items; i++)
        size += strlen(qn_data_item_name(data, item[i])) + 1;
    char *text = qn__alloc(size, 1, err), *to = text;
    if (!text)
        return QN_MEMORY;
    for (uint64_t i = 0; i < out->items; i++) {
        const char *name = qn_data_item_name(data, item[i]);
        memcpy(to, name, strlen(name) + 1);
        to += strlen(name) + 1;
    }
    const qn_status status = qn__item_names_take(text, size, out->items, &out->names, err);
    qn__free(text);
    if (status != QN_OK || !data->names->seen)
        return status;
    out->names->seen = qn__alloc(out->items, sizeof *out->names->seen, err);
    for (uint64_t i = 0; out->names->seen && i < out->items; i++)
        out->names->seen[i] = data->names->seen[data->index ? data->index[item[i]] : item[i]];
    return out->names->seen ? QN_OK : QN_MEMORY;
}

/* Memory for all that an item has. */
static qn_status reserve(const qn_data *data, qn_data *out, qn_error *err) {
    out->memory = qn__alloc(out->items, qn__data_stride(data), err);
    out->values = out->memory;
    out->release = qn__free;
    out->labels = data->labels ? qn__alloc(out->items, sizeof *out->labels, err) : NULL;
    out->targets = data->targets ? qn__alloc(out->items, sizeof *out->targets, err) : NULL;
    out->weights = data->weights ? qn__alloc(out->items, sizeof *out->weights, err) : NULL;
    out->weight_name = data->weight_name ? qn__copy_text(data->weight_name, err) : NULL;
    out->tokenizer = data->tokenizer ? qn__copy_text(data->tokenizer, err) : NULL;
    out->schema = qn__schema_copy(data->schema, err);
    return out->memory && !out->labels == !data->labels && !out->targets == !data->targets &&
                   !out->weights == !data->weights && !out->weight_name == !data->weight_name &&
                   !out->tokenizer == !data->tokenizer && !out->schema == !data->schema
               ? QN_OK
               : QN_MEMORY;
}

static qn_status copy_items(const qn_data *data, const uint64_t *item, qn_data *out,
                            qn_error *err) {
    const size_t stride = qn__data_stride(data);
    qn_status status = reserve(data, out, err);
    if (status == QN_OK)
        status = qn__several_copy(data, item, out->items, &out->several, err);
    if (status != QN_OK)
        return status;
    for (uint64_t i = 0; i < out->items; i++) {
        memcpy((uint8_t *)out->memory + i * stride, qn__data_item(data, item[i]), stride);
        if (data->labels)
            out->labels[i] = data->labels[item[i]];
        if (data->targets)
            out->targets[i] = data->targets[item[i]];
        if (data->weights)
            out->weights[i] = data->weights[item[i]];
    }
    if (data->weights)
        status = qn__data_check_weights(out->weights, out->items, "a part", err);
    if (status == QN_OK)
        status = copy_names(data, item, out, err);
    if (status == QN_OK)
        status = qn__kept_part(data, item, out, err);
    if (status == QN_OK)
        qn__data_finish(out, NULL);
    return status;
}

static qn_status make_part(const cut *c, uint32_t j, qn_data **out, qn_error *err) {
    const qn_data *data = c->data;
    qn_data *part = qn__alloc(1, sizeof *part, err);
    if (!part)
        return QN_MEMORY;
    *part = (qn_data){.type = data->type,
                      .features = data->features,
                      .channels = data->channels,
                      .rows = data->rows,
                      .columns = data->columns,
                      .resize = data->resize,
                      .format = data->format,
                      .missing = data->missing,
                      .doubt = data->doubt,
                      .label_values = data->label_values,
                      .rules = data->rules,
                      .comma = data->comma};
    memcpy(part->date_format, data->date_format, sizeof part->date_format);
    memcpy(part->tokens, data->tokens, sizeof part->tokens);
    for (uint64_t i = 0; i < data->items; i++)
        part->items += c->part[i] == j;
    uint64_t *item = qn__alloc(part->items, sizeof *item, err), at = 0;
    qn_status status = item ? QN_OK : QN_MEMORY;
    for (uint64_t i = 0; item && i < data->items; i++)
        if (c->part[i] == j)
            item[at++] = i;
    if (status == QN_OK && part->items == 0) {
        qn__fail(err, QN_INPUT, "part %u of %u would have no item of the %llu", (unsigned)j + 1,
                 (unsigned)c->count, (unsigned long long)data->items);
        status = qn__remedy(err, QN_INPUT, "give it a larger share");
    }
    if (status == QN_OK)
        status = copy_items(data, item, part, err);
    qn__free(item);
    if (status == QN_OK)
        *out = part;
    else
        qn_data_close(part);
    return status;
}

static qn_status make_lists(cut *c, int stratify, qn_error *err) {
    const uint64_t groups = stratify ? c->data->classes : 1;
    c->items = qn__alloc(groups, sizeof *c->items, err);
    c->seen = qn__alloc(groups, sizeof *c->seen, err);
    c->part = qn__alloc(c->data->items, sizeof *c->part, err);
    return c->items && c->seen && c->part ? QN_OK : QN_MEMORY;
}

static void free_lists(const cut *c) {
    qn__free(c->items);
    qn__free(c->seen);
    qn__free(c->part);
}

static qn_status make_all(cut *c, uint64_t seed, int stratify, qn_data **out, qn_error *err) {
    qn_status status = make_lists(c, stratify, err);
    if (status == QN_OK)
        choose(c, seed, stratify);
    for (uint32_t j = 0; j < c->count && status == QN_OK; j++)
        status = make_part(c, j, &out[j], err);
    free_lists(c);
    return status;
}

qn_status qn_data_split(const qn_data *data, const uint64_t *shares, uint32_t count, uint64_t seed,
                        int stratify, qn_data **out, qn_error *err) {
    QN__OWN_FLOATS;
    QN__NEED(data, err);
    QN__NEED(shares, err);
    QN__NEED(out, err);
    cut c = {.data = data, .shares = shares, .count = count};
    qn_status status = check(&c, stratify, err);
    if (count > MOST_PARTS) /* it may not be the length of `out` */
        return status;
    for (uint32_t j = 0; j < count; j++)
        out[j] = NULL;
    if (status == QN_OK)
        status = make_all(&c, seed, stratify, out, err);
    for (uint32_t j = 0; status != QN_OK && j < count; j++) {
        qn_data_close(out[j]);
        out[j] = NULL;
    }
    return status;
}

/* ------------------------------------------------------------------ folds */

static qn_status check_folds(const qn_data *data, uint32_t folds, uint32_t fold, int stratify,
                             qn_error *err) {
    if (folds < 2 || folds > MOST_PARTS) {
        qn__fail(err, QN_USAGE, "%u is not a number of folds", (unsigned)folds);
        return qn__remedy(err, QN_USAGE, "take 2 to %d folds", MOST_PARTS);
    }
    if (fold >= folds) {
        qn__fail(err, QN_USAGE, "there is no fold %u of %u", (unsigned)fold, (unsigned)folds);
        return qn__remedy(err, QN_USAGE, "folds count from 0");
    }
    if (stratify && !data->labels) {
        qn__fail(err, QN_USAGE, "there are no classes, of which each fold could have its share");
        return qn__remedy(err, QN_USAGE, "leave `split.stratify` out");
    }
    if (data->items >= folds)
        return QN_OK;
    qn__fail(err, QN_INPUT, "%llu items are too few for %u folds", (unsigned long long)data->items,
             (unsigned)folds);
    return qn__remedy(err, QN_INPUT, "take fewer folds, or more data");
}

/* Class after class the folds take turns, so that they differ by one item at most, in each class
 * and in all. Part 1 has the fold, part 0 all others. */
static void deal(const cut *c, uint32_t folds, uint32_t fold, uint64_t seed, int stratify) {
    const qn_data *data = c->data;
    qn__permutation order;
    uint64_t before = 0;
    for (uint64_t i = 0; i < data->items; i++)
        c->items[stratify ? data->labels[i] : 0]++;
    for (uint32_t k = 0; k < (stratify ? data->classes : 1); k++) {
        c->seen[k] = before;
        before += c->items[k];
    }
    qn__permutation_begin(&order, data->items, seed, QN__PURPOSE_SPLIT, 0);
    for (uint64_t p = 0; p < data->items; p++) {
        const uint64_t item = qn__permutation_at(&order, p);
        c->part[item] = c->seen[stratify ? data->labels[item] : 0]++ % folds == fold;
    }
}

qn_status qn_data_fold(const qn_data *data, uint32_t folds, uint32_t fold, uint64_t seed,
                       int stratify, qn_data **train, qn_data **valid, qn_error *err) {
    QN__OWN_FLOATS;
    QN__NEED_OUT(train, err);
    QN__NEED_OUT(valid, err);
    QN__NEED(data, err);
    cut c = {.data = data, .count = 2};
    qn_status status = check_folds(data, folds, fold, stratify, err);
    if (status != QN_OK)
        return status;
    status = make_lists(&c, stratify, err);
    if (status == QN_OK) {
        deal(&c, folds, fold, seed, stratify);
        status = make_part(&c, 0, train, err);
    }
    if (status == QN_OK)
        status = make_part(&c, 1, valid, err);
    free_lists(&c);
    if (status != QN_OK) {
        qn_data_close(*train);
        *train = NULL;
    }
    return status;
}
