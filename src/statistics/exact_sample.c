#include "statistics/exact_sample.h"

#include "base/memory.h"
#include "data/table/wide.h"
#include <string.h>

static qn_status take_column(qn__exact_sample *s, const qn_data *data, const uint64_t *item,
                             uint32_t k, qn_error *err) {
    const qn__wide_value *value = qn__wide_column(data, k);
    const int real = qn__wide_kind(data, k) == QN__EXACT_REAL;
    s->kinds[k] = (uint8_t)qn_data_dates(data, k, s->parts[k], sizeof s->parts[k]);
    s->dates[k] = s->parts[k];
    if (!value)
        return QN_OK;
    void *own = qn__alloc(s->items, sizeof *value, err);
    if (!own)
        return QN_MEMORY;
    s->whole[k] = real ? NULL : own;
    s->real[k] = real ? own : NULL;
    for (uint64_t i = 0; i < s->items; ++i)
        memcpy((char *)own + i * sizeof *value, &value[qn__data_row(data, item[i])], sizeof *value);
    return QN_OK;
}

qn_status qn__exact_sample_begin(qn__exact_sample *s, const qn_data *data, const uint64_t *item,
                                 uint64_t items, qn_error *err) {
    *s = (qn__exact_sample){.items = items, .features = data->features};
    s->whole = (int64_t **)qn__alloc(data->features, sizeof *s->whole, err);
    s->real = s->whole ? (double **)qn__alloc(data->features, sizeof *s->real, err) : NULL;
    s->column = s->real ? qn__alloc(items, sizeof(qn__wide_value), err) : NULL;
    s->parts = s->column ? qn__alloc(data->features, sizeof *s->parts, err) : NULL;
    s->dates = s->parts ? (const char **)qn__alloc(data->features, sizeof *s->dates, err) : NULL;
    s->kinds = s->dates ? qn__alloc(data->features, 1, err) : NULL;
    qn_status status = s->kinds ? QN_OK : QN_MEMORY;
    for (uint32_t k = 0; k < data->features && status == QN_OK; ++k)
        status = take_column(s, data, item, k, err);
    return status;
}

void qn__exact_sample_release(qn__exact_sample *s) {
    for (uint32_t k = 0; s->kinds && k < s->features; ++k) {
        qn__free(s->whole[k]);
        qn__free(s->real[k]);
    }
    qn__free((void *)s->whole);
    qn__free((void *)s->real);
    qn__free(s->column);
    qn__free(s->parts);
    qn__free((void *)s->dates);
    qn__free(s->kinds);
}

void qn__exact_sample_lend(const qn__exact_sample *s, qn_data_arrays *arrays) {
    if (arrays->type != QN_F32)
        return;
    arrays->whole = (const int64_t *const *)s->whole;
    arrays->real = (const double *const *)s->real;
    arrays->dates = s->dates;
    arrays->date_kinds = s->kinds;
}

/* The exact values of a feature, 8 bytes each; NULL: it has none. */
static void *values_of(const qn__exact_sample *s, uint32_t k) {
    return s->whole[k] ? (void *)s->whole[k] : (void *)s->real[k];
}

void qn__exact_sample_keep(qn__exact_sample *s, uint32_t k) {
    if (values_of(s, k))
        memcpy(s->column, values_of(s, k), s->items * sizeof(qn__wide_value));
}

void qn__exact_sample_shuffle(qn__exact_sample *s, uint32_t k, const qn__permutation *order) {
    char *to = values_of(s, k);
    for (uint64_t i = 0; to && i < s->items; ++i)
        memcpy(to + i * sizeof(qn__wide_value),
               (const char *)s->column + qn__permutation_at(order, i) * sizeof(qn__wide_value),
               sizeof(qn__wide_value));
}

void qn__exact_sample_restore(qn__exact_sample *s, uint32_t k) {
    if (values_of(s, k))
        memcpy(values_of(s, k), s->column, s->items * sizeof(qn__wide_value));
}
