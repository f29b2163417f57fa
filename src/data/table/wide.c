#include "data/table/wide.h"
#include "base/memory.h"
#include "base/system/float_state.h"
#include "base/text/text.h"
#include "data/table/kept.h"
#include "data/table/rules.h"
#include <inttypes.h>
#include <math.h>
#include <stdio.h>

int64_t qn__wide_missing(qn__exact exact) {
    return exact == QN__EXACT_REAL ? INT64_C(0x7ff8000000000000) : QN__WIDE_MISSING;
}

uint64_t qn__wide_bytes(const qn__wide *wide) {
    return wide ? (uint64_t)wide->columns * wide->rows * sizeof *wide->value : 0;
}

void qn__wide_free(qn__wide *wide) {
    if (!wide)
        return;
    qn__free(wide->feature);
    qn__free(wide->memory);
    qn__free(wide);
}

qn__wide *qn__wide_create(uint32_t columns, uint64_t rows, const void *values, qn_error *err) {
    qn__wide *wide = qn__alloc(1, sizeof *wide, err);
    if (!wide)
        return NULL;
    wide->columns = columns;
    wide->rows = rows;
    wide->feature = qn__alloc(columns, sizeof *wide->feature, err);
    if (!values)
        wide->memory = qn__alloc(rows, (uint64_t)columns * sizeof *wide->value, err);
    /* Nobody writes to values of somebody else; the pointer is not const for those who own them. */
    wide->value = values ? (void *)(uintptr_t)values : wide->memory;
    if (wide->feature && wide->value)
        return wide;
    qn__wide_free(wide);
    return NULL;
}

const qn__wide_value *qn__wide_column(const qn_data *data, uint32_t k) {
    const qn__wide *wide = data->wide;
    uint32_t j = 0;
    while (wide && j < wide->columns && wide->feature[j] != k)
        j++;
    return wide && j < wide->columns ? qn__wide_of(wide, j) : NULL;
}

/* ------------------------------------------------------------------ making */

qn_status qn__wide_need_schema(qn_data *data, qn_error *err) {
    if (data->schema)
        return QN_OK;
    data->schema = qn__schema_create(data->features, err);
    if (!data->schema)
        return QN_MEMORY;
    data->schema->target = data->labels ? QN__TARGET_INDEX : QN__TARGET_NONE;
    return QN_OK;
}

void qn__wide_set_rules(qn_data *data) {
    data->rules &= ~(uint32_t)QN__RULE_EXACT;
    for (uint32_t j = 0; data->wide && j < data->wide->columns; j++)
        data->rules |= data->schema->feature[data->wide->feature[j]].exact == QN__EXACT_MOMENT
                           ? QN__RULE_DATES
                           : QN__RULE_EXACT;
}

/* The column `j` of feature k: with the values that it had, or all missing. */
static void begin_column(const qn__wide *wide, uint32_t j, const qn__wide_value *before,
                         qn__exact exact) {
    qn__wide_value *to = qn__wide_of(wide, j);
    for (uint64_t i = 0; i < wide->rows; i++)
        to[i].whole = before ? before[i].whole : qn__wide_missing(exact);
}

qn_status qn__wide_make(qn_data *data, const qn__exact *exact, qn_error *err) {
    uint32_t columns = data->wide ? data->wide->columns : 0;
    const uint32_t before = columns;
    for (uint32_t k = 0; k < data->features; k++)
        columns += exact[k] != QN__EXACT_NONE;
    if (columns == before)
        return QN_OK;
    const qn_status status = qn__wide_need_schema(data, err);
    if (status != QN_OK)
        return status;
    qn__wide *wide = qn__wide_create(columns, data->items, NULL, err);
    if (!wide)
        return QN_MEMORY;
    for (uint32_t k = 0, j = 0; k < data->features; k++) {
        const qn__wide_value *values = qn__wide_column(data, k);
        if (exact[k] == QN__EXACT_NONE && !values)
            continue;
        if (!values)
            data->schema->feature[k].exact = exact[k];
        wide->feature[j] = k;
        begin_column(wide, j++, values, exact[k]);
    }
    qn__wide_free(data->wide);
    data->wide = wide;
    qn__wide_set_rules(data);
    return QN_OK;
}

/* ------------------------------------------------------------------ copies */

static uint32_t count_wide(const qn_data *data) {
    uint32_t columns = 0;
    for (uint32_t k = 0; data->schema && k < data->features; k++)
        columns += data->schema->feature[k].exact != QN__EXACT_NONE;
    return columns;
}

static void copy_values(const qn_data *from, const qn__wide_value *value, const uint64_t *item,
                        uint64_t items, qn__wide_value *to) {
    for (uint64_t i = 0; i < items; i++)
        to[i] = value[qn__data_row(from, item ? item[i] : i)];
}

qn_status qn__wide_copy(const qn_data *from, const uint64_t *item, const uint32_t *column,
                        qn_data *to, qn_error *err) {
    const uint32_t columns = count_wide(to);
    const int shared =
        !item && !column && !from->index && from->wide && columns == from->wide->columns;
    if (!from->wide || columns == 0) {
        qn__wide_set_rules(to);
        return QN_OK;
    }
    to->wide = qn__wide_create(columns, to->items, shared ? from->wide->value : NULL, err);
    if (!to->wide)
        return QN_MEMORY;
    for (uint32_t k = 0, j = 0; j < columns; k++) {
        if (to->schema->feature[k].exact == QN__EXACT_NONE)
            continue;
        to->wide->feature[j] = k;
        if (!shared)
            copy_values(from, qn__wide_column(from, column ? column[k] : k), item, to->items,
                        qn__wide_of(to->wide, j));
        j++;
    }
    qn__wide_set_rules(to);
    return QN_OK;
}

/* ------------------------------------------------------------------ the public functions */

const int64_t *qn_data_whole(const qn_data *data, uint32_t k) {
    QN__OWN_FLOATS;
    const int is_whole = data && k < data->features && qn__wide_kind(data, k) == QN__EXACT_WHOLE;
    return is_whole ? &qn__wide_column(data, k)->whole : NULL;
}

const double *qn_data_real(const qn_data *data, uint32_t k) {
    QN__OWN_FLOATS;
    const int is_real = data && k < data->features && qn__wide_kind(data, k) == QN__EXACT_REAL;
    return is_real ? &qn__wide_column(data, k)->real : NULL;
}

void qn_data_exact(const qn_data *data, uint64_t item, uint32_t k, char *text, size_t size) {
    QN__OWN_FLOATS;
    char shown[32] = "";
    if (!text || size == 0)
        return;
    const int known = data && k < data->features && item < data->items;
    const qn__exact kind = known ? qn__wide_kind(data, k) : QN__EXACT_NONE;
    const qn__wide_value *values = kind ? qn__wide_column(data, k) : NULL;
    const uint32_t kept = known && !values ? qn__kept_column(data, k) : 0;
    const uint64_t row = values ? qn__data_row(data, item) : 0;
    const double real = kept ? qn__kept_value(data, kept, item) : (double)NAN;
    if (values && kind == QN__EXACT_WHOLE && values[row].whole != QN__WIDE_MISSING)
        snprintf(shown, sizeof shown, "%" PRId64, values[row].whole);
    else if (values && kind == QN__EXACT_REAL && !isnan(values[row].real))
        qn__real_text(values[row].real, shown);
    else if (!isnan(real))
        qn__real_text(real, shown);
    snprintf(text, size, "%s", shown);
}
