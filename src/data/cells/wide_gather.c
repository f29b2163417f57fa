#include "data/cells/wide_gather.h"
#include "base/memory.h"
#include "base/system/available.h"
#include "data/table/kept.h"
#include "data/table/missing.h"
#include "data/table/rules.h"
#include <math.h>
#include <string.h>

qn_status qn__wide_gather_begin(qn__wide_gather *g, qn_data *data, uint32_t features,
                                const char *expected_rules, qn_error *err) {
    const qn_data_options options = {.expected_rules = expected_rules};
    *g = (qn__wide_gather){.data = data, .kept = expected_rules != NULL};
    if (!qn__rule_holds(&options, QN__RULE_EXACT))
        return QN_OK;
    g->column = qn__alloc(features, sizeof *g->column, err);
    if (!g->column)
        return QN_MEMORY;
    g->features = features;
    for (uint32_t k = 0; k < features; k++)
        g->column[k].narrow = 1;
    return QN_OK;
}

void qn__wide_gather_release(qn__wide_gather *g) {
    for (uint32_t k = 0; k < g->features; k++)
        qn__free(g->column[k].value);
    qn__free(g->column);
    *g = (qn__wide_gather){.data = NULL};
}

void qn__wide_gather_column(qn__wide_gather *g, uint32_t feature, int real) {
    if (feature >= g->features)
        return;
    g->column[feature].real = real;
    g->column[feature].narrow = 0;
    g->live++;
}

/* Whether whole numbers, or those of binary64, may still be wide. More values make neither true
 * again: the quotient of magnitude and span never grows. */
static int may_be_real(const qn__wide_gather *g, const qn__wide_column_state *c) {
    return c->real && (g->kept || g->doubles || qn__wide_spans_little(&c->facts));
}

int qn__wide_is_open(const qn__wide_gather *g, const qn__wide_column_state *c) {
    return !c->narrow && (!c->facts.fraction || may_be_real(g, c));
}

static void let_go(qn__wide_gather *g, qn__wide_column_state *c) {
    qn__free(c->value);
    c->value = NULL;
    c->narrow = 1;
    g->live--;
}

static double as_real(qn__wide_value value) {
    return value.whole == QN__WIDE_MISSING ? NAN : (double)value.whole;
}

/* Values that were whole until now came from binary64, which has them exactly. */
static void make_real(const qn__wide_gather *g, qn__wide_column_state *c) {
    for (uint64_t i = 0; c->value && c->held == QN__EXACT_WHOLE && i < g->data->items; i++) {
        const double real = as_real(c->value[i]);
        if (isnan(real))
            c->value[i].whole = qn__wide_missing(QN__EXACT_REAL);
        else
            c->value[i].real = real;
    }
    c->held = QN__EXACT_REAL;
}

/* All values missing, but the first `items`, which are floats of the matrix. */
static qn_status begin_values(const qn__wide_gather *g, uint32_t feature, uint64_t items,
                              qn_error *err) {
    const qn_data *data = g->data;
    qn__wide_column_state *c = &g->column[feature];
    c->held = c->facts.fraction ? QN__EXACT_REAL : QN__EXACT_WHOLE;
    c->value = qn__alloc(data->items, sizeof *c->value, err);
    if (!c->value)
        return QN_MEMORY;
    for (uint64_t i = 0; i < data->items; i++) {
        const float near = i < items ? ((const float *)qn__data_item(data, i))[feature] : NAN;
        if (isnan(near))
            c->value[i].whole = qn__wide_missing(c->held);
        else
            qn__wide_keep_real(c, i, (double)near);
    }
    return QN_OK;
}

qn_status qn__wide_gather_look(qn__wide_gather *g, uint32_t feature, uint64_t items, int *keep,
                               qn_error *err) {
    qn__wide_column_state *c = &g->column[feature];
    *keep = 0;
    if (c->narrow)
        return QN_OK;
    if (!qn__wide_is_open(g, c)) {
        let_go(g, c);
        return QN_OK;
    }
    if (c->facts.fraction)
        make_real(g, c);
    if (!c->facts.other)
        return QN_OK;
    *keep = 1;
    return c->value ? QN_OK : begin_values(g, feature, items, err);
}

qn_status qn__wide_gather_whole(qn__wide_gather *g, uint32_t feature, uint64_t item, int64_t value,
                                qn_error *err) {
    qn__wide_column_state *c = &g->column[feature];
    int keep = 0;
    qn__wide_see_whole(&c->facts, value);
    const qn_status status = qn__wide_gather_look(g, feature, item, &keep, err);
    if (status == QN_OK && keep)
        qn__wide_keep_whole(c, item, value);
    return status;
}

/* The first values are kept where the column may be wide. */
static qn_status keep_early(qn__wide_gather *g, uint32_t feature, qn_error *err) {
    qn__wide_column_state *c = &g->column[feature];
    int keep = 0;
    const qn_status status = qn__wide_gather_look(g, feature, c->early_item[0], &keep, err);
    for (uint32_t i = 0; status == QN_OK && keep && i < c->early; i++)
        qn__wide_keep_real(c, c->early_item[i], c->early_value[i]);
    c->early = QN__WIDE_EARLY;
    return status;
}

qn_status qn__wide_gather_real(qn__wide_gather *g, uint32_t feature, uint64_t item, double value,
                               qn_error *err) {
    qn__wide_column_state *c = &g->column[feature];
    int keep = 0;
    qn__wide_see_real(&c->facts, value);
    if (c->early < QN__WIDE_EARLY && qn__wide_is_open(g, c)) {
        c->early_item[c->early] = item;
        c->early_value[c->early++] = value;
        return c->early < QN__WIDE_EARLY ? QN_OK : keep_early(g, feature, err);
    }
    const qn_status status = qn__wide_gather_look(g, feature, item, &keep, err);
    if (status == QN_OK && keep)
        qn__wide_keep_real(c, item, value);
    return status;
}

/* ------------------------------------------------------------------ the end */

static qn__exact kind_of(const qn__wide_gather *g, const qn__wide_column_state *c) {
    const qn__wide_facts *f = &c->facts;
    if (c->narrow || !c->value || !f->other)
        return QN__EXACT_NONE;
    if (!f->fraction)
        return QN__EXACT_WHOLE;
    return g->kept || (f->hi > f->lo && qn__wide_spans_little(f)) ? QN__EXACT_REAL : QN__EXACT_NONE;
}

static qn_status take(qn__wide_gather *g, const qn__exact *exact, qn_error *err) {
    const qn_status status = qn__wide_make(g->data, exact, err);
    for (uint32_t j = 0; status == QN_OK && g->data->wide && j < g->data->wide->columns; j++) {
        qn__wide_column_state *c = &g->column[g->data->wide->feature[j]];
        if (exact[g->data->wide->feature[j]] == QN__EXACT_NONE) /* of dates */
            continue;
        memcpy(qn__wide_of(g->data->wide, j), c->value, (size_t)g->data->items * sizeof *c->value);
        qn__free(c->value);
        c->value = NULL;
    }
    return status;
}

qn_status qn__wide_gather_doubles(qn__wide_gather *gather, qn_error *err) {
    qn_data *data = gather->data;
    double bytes = 0;
    for (uint32_t k = 0; k < gather->features; k++)
        if (gather->column[k].real)
            bytes += (double)data->items * sizeof(double);
    gather->doubles = bytes > 0 && !data->in_file && bytes <= (double)qn__available_memory() / 2;
    if (bytes == 0 || gather->doubles)
        return QN_OK;
    return qn__data_add_note(
        data,
        "the memory does not suffice to keep 64-bit floats, so they are rounded "
        "to 32 bits",
        err);
}

/* The columns of doubles that are not wide; exact[k] is how feature k is. */
static qn_status take_doubles(qn__wide_gather *gather, const qn__exact *exact, qn_error *err) {
    uint32_t columns = 0;
    for (uint32_t k = 0; gather->doubles && k < gather->features; k++)
        columns += gather->column[k].real && exact[k] == QN__EXACT_NONE;
    if (columns == 0)
        return QN_OK;
    if (!(gather->data->kept = qn__kept_create(columns, err)))
        return QN_MEMORY;
    for (uint32_t k = 0, j = 0; k < gather->features; k++) {
        qn__wide_column_state *c = &gather->column[k];
        if (!c->real || exact[k] != QN__EXACT_NONE)
            continue;
        qn__kept_put(gather->data, j++, k, c->value);
        c->value = NULL;
    }
    return QN_OK;
}

qn_status qn__wide_gather_end(qn__wide_gather *g, qn_error *err) {
    uint32_t wide = 0;
    for (uint32_t k = 0; k < g->features; k++)
        if (g->column[k].early > 0 && g->column[k].early < QN__WIDE_EARLY &&
            keep_early(g, k, err) != QN_OK)
            return QN_MEMORY;
    for (uint32_t k = 0; g->data->type == QN_F32 && k < g->features; k++)
        wide += kind_of(g, &g->column[k]) != QN__EXACT_NONE;
    if (wide == 0 && !g->doubles)
        return QN_OK;
    qn__exact *exact = qn__alloc(g->features, sizeof *exact, err);
    if (!exact)
        return QN_MEMORY;
    for (uint32_t k = 0; g->data->type == QN_F32 && k < g->features; k++)
        exact[k] = kind_of(g, &g->column[k]);
    qn_status status = take_doubles(g, exact, err);
    if (status == QN_OK && wide > 0)
        status = take(g, exact, err);
    qn__free(exact);
    return status;
}
