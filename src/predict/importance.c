/* Permutation importance (Breiman, "Random forests", 2001): a column is as important as the score
 * loses when its values are exchanged between items. The items that a column's values come from are
 * a keyed permutation (docs/exactness.md 4.3), so the same model and data give the same numbers
 * everywhere. */
#include "predict/judge.h"
#include "statistics/exact_sample.h"

#include "base/memory.h"
#include "model/formats/model_kind.h"
#include "num/permutation.h"
#include "num/philox.h"
#include <inttypes.h>
#include <math.h>
#include <quern/predict.h>
#include <stdlib.h>
#include <string.h>

/* Columns at most; and items: of more, so many that lie evenly apart. */
enum { COLUMNS = 500, ITEMS = 10000 };

/* A copy of some items, of which one column is replaced at a time. */
typedef struct sample {
    const qn__judged *of;
    uint64_t items;
    uint64_t *item;  /* of the data */
    size_t size;     /* of an element */
    uint8_t *value;  /* items x features */
    uint8_t *column; /* the values of one column, as they were */
    int32_t *label;
    float *target;
    uint32_t *categories;
    const char *const **category;
    const char **name;
    qn__exact_sample exact;
} sample;

/* Whether the model can predict the item, whatever of it is exchanged. */
static int is_complete(const qn_data *data, uint64_t item) {
    const float *value = qn__data_item(data, item);
    for (uint32_t k = 0; data->type == QN_F32 && k < data->features; ++k)
        if (isnan(value[k]))
            return 0;
    return 1;
}

/* The items that count, then those of them that lie evenly apart. */
static qn_status choose_items(sample *s, qn_error *err) {
    const qn_data *data = s->of->data;
    const int drops = s->of->model->drops;
    uint64_t all = 0;
    s->item = qn__alloc(data->items, sizeof *s->item, err);
    if (!s->item)
        return QN_MEMORY;
    for (uint64_t i = 0; i < data->items; ++i)
        if (!drops || is_complete(data, i))
            s->item[all++] = i;
    s->items = all < ITEMS ? all : ITEMS;
    for (uint64_t i = 0; i < s->items && s->items < all; ++i)
        s->item[i] = s->item[i * all / s->items];
    if (s->items > 0)
        return QN_OK;
    qn__fail(err, QN_INPUT, "every item lacks a value, and the model predicts complete items only");
    return qn__remedy(err, QN_INPUT, "leave `report.importance` out");
}

static void release(sample *s) {
    qn__free(s->item);
    qn__free(s->value);
    qn__free(s->column);
    qn__free(s->label);
    qn__free(s->target);
    qn__free(s->categories);
    qn__free(s->category);
    qn__free(s->name);
    qn__exact_sample_release(&s->exact);
}

static qn_status begin(sample *s, const qn__judged *judged, qn_error *err) {
    const qn_data *data = judged->data;
    const size_t stride = qn__data_stride(data);
    *s = (sample){.of = judged};
    if (choose_items(s, err) != QN_OK)
        return s->item ? QN_INPUT : QN_MEMORY;
    s->size = qn__element_of(data->type)->size;
    s->value = qn__alloc(s->items, stride, err);
    s->column = s->value ? qn__alloc(s->items, s->size, err) : NULL;
    s->label = s->column ? qn__alloc(s->items, sizeof *s->label, err) : NULL;
    s->target = s->label ? qn__alloc(s->items, sizeof *s->target, err) : NULL;
    s->categories = s->target ? qn__alloc(data->features, sizeof *s->categories, err) : NULL;
    s->category = s->categories ? qn__alloc(data->features, sizeof *s->category, err) : NULL;
    s->name = s->category ? qn__alloc(data->features, sizeof *s->name, err) : NULL;
    if (!s->name)
        return QN_MEMORY;
    for (uint64_t i = 0; i < s->items; ++i) {
        memcpy(s->value + i * stride, qn__data_item(data, s->item[i]), stride);
        s->label[i] = data->labels ? data->labels[s->item[i]] : 0;
        s->target[i] = data->targets ? data->targets[s->item[i]] : 0;
    }
    for (uint32_t k = 0; k < data->features; ++k) {
        const qn__feature *f = data->schema ? &data->schema->feature[k] : NULL;
        s->categories[k] = f ? f->categories : 0;
        s->category[k] = f ? (const char *const *)f->category : NULL;
        s->name[k] = f ? f->name : NULL;
    }
    return qn__exact_sample_begin(&s->exact, data, s->item, s->items, err);
}

/* Compares predictions with what the items have: the share of right classes, or the RMSE. */
static double compare(const sample *s, const int32_t *class, const float *number) {
    double squares = 0;
    uint64_t items = 0, correct = 0;
    for (uint64_t i = 0; i < s->items; ++i) {
        if (s->of->real ? isnan(number[i]) : class[i] < 0)
            continue; /* it lacks a value */
        const double error = s->of->real ? (double)number[i] - (double)s->target[i] : 0;
        squares += error * error;
        correct += !s->of->real && class[i] == s->label[i];
        ++items;
    }
    if (items == 0)
        return 0;
    return s->of->real ? sqrt(squares / (double)items) : (double)correct / (double)items;
}

static qn_status score_of(const sample *s, const qn_compute *compute, double *score,
                          qn_error *err) {
    const qn_data *from = s->of->data;
    qn_data_arrays arrays;
    qn_data *data = NULL;
    int32_t *class = qn__alloc(s->items, sizeof *class, err);
    float *number = class ? qn__alloc(s->items, sizeof *number, err) : NULL;
    qn_data_arrays_init(&arrays);
    arrays.type = from->type;
    arrays.features = from->features;
    arrays.items = s->items;
    arrays.values = s->value;
    arrays.missing = from->type == QN_F32;
    arrays.categories = from->schema ? s->categories : NULL;
    arrays.category = from->schema ? s->category : NULL;
    arrays.feature_name = from->schema ? s->name : NULL;
    qn__exact_sample_lend(&s->exact, &arrays);
    qn_status status = number ? qn_data_lend(&arrays, &data, err) : QN_MEMORY;
    if (status == QN_OK)
        status = qn_predict(s->of->model, data, compute, class, number, NULL, err);
    if (status == QN_OK)
        *score = compare(s, class, number);
    qn_data_close(data);
    qn__free(class);
    qn__free(number);
    return status;
}

/* Puts the value of item P(i) in the place of that of item i, in column k. */
static void shuffle(sample *s, uint32_t k, uint64_t seed, uint32_t repeat) {
    const size_t stride = qn__data_stride(s->of->data);
    qn__permutation order;
    qn__permutation_begin(&order, s->items, seed, QN__PURPOSE_IMPORTANCE, repeat);
    for (uint64_t i = 0; i < s->items; ++i)
        memcpy(s->value + i * stride + k * s->size,
               s->column + qn__permutation_at(&order, i) * s->size, s->size);
    qn__exact_sample_shuffle(&s->exact, k, &order);
}

static qn_status judge_column(sample *s, const qn_compute *compute, double whole, uint32_t repeats,
                              uint64_t seed, qn__importance *out, qn_error *err) {
    const size_t stride = qn__data_stride(s->of->data);
    double sum = 0, low = INFINITY, high = -INFINITY;
    qn_status status = QN_OK;
    for (uint64_t i = 0; i < s->items; ++i)
        memcpy(s->column + i * s->size, s->value + i * stride + out->column * s->size, s->size);
    qn__exact_sample_keep(&s->exact, out->column);
    for (uint32_t r = 0; r < repeats && status == QN_OK; ++r) {
        double score = 0;
        shuffle(s, out->column, seed, r);
        status = score_of(s, compute, &score, err);
        const double loss = s->of->real ? score - whole : whole - score;
        sum += loss;
        low = loss < low ? loss : low;
        high = loss > high ? loss : high;
    }
    for (uint64_t i = 0; i < s->items; ++i)
        memcpy(s->value + i * stride + out->column * s->size, s->column + i * s->size, s->size);
    qn__exact_sample_restore(&s->exact, out->column);
    out->loss = sum / repeats;
    out->spread = high - low;
    return status;
}

/* Descending; of equals the first column. */
static int by_loss(const void *one, const void *other) {
    const qn__importance *a = one, *b = other;
    if (a->loss < b->loss || a->loss > b->loss)
        return a->loss < b->loss ? 1 : -1;
    return a->column < b->column ? -1 : 1;
}

qn_status qn__importance_of(const qn__judged *judged, const qn_compute *compute, uint32_t repeats,
                            uint64_t seed, qn__importance **out, uint64_t *items, qn_error *err) {
    const uint32_t columns = judged->data->features;
    double whole = 0;
    sample s;
    *out = NULL;
    if (columns > COLUMNS) {
        qn__fail(err, QN_UNSUPPORTED,
                 "the importance of %" PRIu32 " columns was asked for, and %d is the most", columns,
                 COLUMNS);
        return qn__remedy(err, QN_UNSUPPORTED, "leave `report.importance` out");
    }
    qn_status status = begin(&s, judged, err);
    if (status == QN_OK && !(*out = qn__alloc(columns, sizeof **out, err)))
        status = QN_MEMORY;
    if (status == QN_OK)
        status = score_of(&s, compute, &whole, err);
    for (uint32_t k = 0; k < columns && status == QN_OK; ++k) {
        (*out)[k].column = k;
        status = judge_column(&s, compute, whole, repeats, seed, &(*out)[k], err);
    }
    *items = s.items;
    if (status == QN_OK)
        qsort(*out, columns, sizeof **out, by_loss);
    release(&s);
    if (status != QN_OK) {
        qn__free(*out);
        *out = NULL;
    }
    return status;
}
