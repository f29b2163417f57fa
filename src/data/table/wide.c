#include "data/table/wide.h"
#include "base/float_state.h"
#include "base/memory.h"
#include "data/table/missing.h"
#include "data/table/rules.h"
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

static qn_status need_schema(qn_data *data, qn_error *err) {
    if (data->schema)
        return QN_OK;
    data->schema = qn__schema_create(data->features, err);
    if (!data->schema)
        return QN_MEMORY;
    data->schema->target = data->labels ? QN__TARGET_INDEX : QN__TARGET_NONE;
    return QN_OK;
}

/* Which rules of reading the wide columns follow. */
static void set_rules(qn_data *data) {
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
    const qn_status status = need_schema(data, err);
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
    set_rules(data);
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
        set_rules(to);
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
    set_rules(to);
    return QN_OK;
}

/* ------------------------------------------------------------------ which columns are wide */

static int is_float(const qn_data *data, uint32_t k, const qn__wide_value *value, uint64_t i) {
    const float near = ((const float *)qn__data_item(data, i))[k];
    if (qn__is_missing(near))
        return 1;
    return data->schema->feature[k].exact == QN__EXACT_WHOLE
               ? near < 0x1p63f && (int64_t)near == value[i].whole
               : (double)near == value[i].real;
}

/* Whether the items of a table need the exact values of a column: 23.4 of the contract. Those of
 * fewer items span less, so what is left to ask of real numbers is whether they differ. */
static int is_wide(const qn_data *data, uint32_t k, const qn__wide_value *value) {
    const int real = data->schema->feature[k].exact == QN__EXACT_REAL;
    if (data->schema->feature[k].exact == QN__EXACT_MOMENT)
        return 1;
    double first = NAN;
    int differ = !real, floats = 1;
    for (uint64_t i = 0; i < data->items && (floats || !differ); i++) {
        floats &= is_float(data, k, value, i);
        if (!real || isnan(value[i].real))
            continue;
        differ |= !isnan(first) && value[i].real != first;
        first = value[i].real;
    }
    return differ && !floats;
}

void qn__wide_settle(qn_data *data) {
    qn__wide *wide = data->wide;
    uint32_t kept = 0;
    for (uint32_t j = 0; wide && j < wide->columns; j++) {
        const uint32_t k = wide->feature[j];
        const qn__wide_value *value = qn__wide_of(wide, j);
        if (!is_wide(data, k, value)) {
            data->schema->feature[k].exact = QN__EXACT_NONE;
            continue;
        }
        memmove(qn__wide_of(wide, kept), value, (size_t)wide->rows * sizeof *value);
        wide->feature[kept++] = k;
    }
    if (wide)
        wide->columns = kept;
    if (wide && kept == 0) {
        qn__wide_free(wide);
        data->wide = NULL;
    }
    set_rules(data);
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

static void show_real(double value, char text[32]) {
    for (int digits = 15; digits <= 17; digits++) {
        snprintf(text, 32, "%.*g", digits, value);
        if (strtod(text, NULL) == value)
            return;
    }
}

void qn_data_exact(const qn_data *data, uint64_t item, uint32_t k, char *text, size_t size) {
    QN__OWN_FLOATS;
    char shown[32] = "";
    if (!text || size == 0)
        return;
    const int known = data && k < data->features && item < data->items;
    const qn__exact kind = known ? qn__wide_kind(data, k) : QN__EXACT_NONE;
    const qn__wide_value *values = kind ? qn__wide_column(data, k) : NULL;
    const uint64_t row = values ? qn__data_row(data, item) : 0;
    if (values && kind == QN__EXACT_WHOLE && values[row].whole != QN__WIDE_MISSING)
        snprintf(shown, sizeof shown, "%" PRId64, values[row].whole);
    else if (values && kind == QN__EXACT_REAL && !isnan(values[row].real))
        show_real(values[row].real, shown);
    snprintf(text, size, "%s", shown);
}
