#include "data/arrow/arrow_dates.h"

#include "base/memory.h"
#include "data/arrow/arrow_columns.h"
#include "data/arrow/arrow_time.h"
#include "data/cells/labels.h"
#include "data/table/date_parts.h"
#include "data/table/dates.h"
#include "data/table/missing.h"
#include "data/table/rules.h"
#include "data/table/table_space.h"
#include <stdio.h>

static qn_status refuse_use(const qn__arrow_column *c, qn_error *err) {
    const int label = c->use == QN__ARROW_LABEL;
    qn__fail(err, QN_INPUT, "the %s are dates", label ? "labels" : "weights");
    return qn__arrow_refuse(c->table, c->column, QN__ARROW_NO_ITEM,
                            label ? "convert them to numbers or texts, or name another column with "
                                    "`data.label_column`"
                                  : "name a column of numbers with `data.weight`",
                            err);
}

qn_status qn__arrow_dates_begin(qn__arrow_column *c, qn_error *err) {
    const struct ArrowSchema *column = c->table->schema.children[c->column];
    const char *format = column->dictionary ? column->dictionary->format : column->format;
    qn__time_type type;
    c->dates.others =
        c->kind != QN__ARROW_DATE && (c->category || !qn__rule_holds(c->options, QN__RULE_DATES));
    if (c->kind != QN__ARROW_DATE)
        return QN_OK;
    if (c->use != QN__ARROW_FEATURE)
        return refuse_use(c, err);
    c->dates.time = qn__time_type_of(format, &type) && type.form == QN__TIME_MOMENT;
    c->dates.zones = c->dates.time && type.zone;
    return QN_OK;
}

/* Space for the exact values of all items, missing at first. */
static qn_status need_space(qn__arrow_column *c, qn_error *err) {
    const uint64_t items = c->data->items;
    if (c->value)
        return QN_OK;
    c->value = qn__alloc(items, sizeof *c->value, err);
    for (uint64_t i = 0; c->value && i < items; i++)
        c->value[i].whole = QN__WIDE_MISSING;
    return c->value ? QN_OK : QN_MEMORY;
}

static float *place_of(const qn__arrow_column *c, uint64_t item) {
    return (float *)qn__table_space_values(c->data) + item * c->data->features + c->feature;
}

qn_status qn__arrow_dates_range(const qn__arrow_column *c, uint64_t item,
                                const qn__arrow_cell *cell, qn_error *err) {
    if (c->kind != QN__ARROW_DATE || cell->missing || cell->whole != INT64_MIN)
        return QN_OK;
    qn__fail(err, QN_INPUT, "the date is before year 1 or after year 9999");
    return qn__arrow_refuse(c->table, c->column, item, "correct it, or make it missing with a null",
                            err);
}

qn_status qn__arrow_dates_put(void *user, uint64_t item, const qn__arrow_cell *cell,
                              qn_error *err) {
    qn__arrow_column *c = user;
    float *to = place_of(c, item);
    if (cell->missing) {
        qn__set_missing(to);
        c->data->missing = 1;
        return QN_OK;
    }
    if (qn__arrow_dates_range(c, item, cell, err) != QN_OK)
        return QN_INPUT;
    *to = (float)qn__days_of_moment(cell->whole);
    c->dates.hour |= cell->whole % QN__DAY_MICROSECONDS != 0;
    if (!c->dates.time)
        return QN_OK;
    if (need_space(c, err) != QN_OK)
        return QN_MEMORY;
    c->value[item].whole = cell->whole;
    return QN_OK;
}

/* ------------------------------------------------------------------ texts */

static int read_text(const qn__arrow_column *c, const qn__arrow_cell *cell, qn__moment *out) {
    const char *format = c->options->date_format;
    return format ? qn__moment_read_as(format, cell->text, cell->size, out)
                  : qn__moment_read(cell->text, cell->size, out);
}

qn_status qn__arrow_dates_look(qn__arrow_column *c, uint64_t item, const qn__arrow_cell *cell,
                               int *taken, qn_error *err) {
    qn__moment moment;
    *taken = 0;
    if (c->dates.others)
        return QN_OK;
    if (!read_text(c, cell, &moment)) {
        c->dates.others = 1;
        qn__free(c->value);
        c->value = NULL;
        if (!c->dates.uncounted)
            return QN_OK;
        qn__fail(err, QN_INPUT, "the column has more than %d different texts", QN__TEXTS_MAX);
        return qn__arrow_refuse(c->table, c->column, item, "leave the column out with `data.drop`",
                                err);
    }
    if (need_space(c, err) != QN_OK)
        return QN_MEMORY;
    c->value[item].whole = moment.at;
    c->dates.found++;
    c->dates.zones += moment.has_zone != 0;
    c->dates.time |= moment.has_time != 0;
    c->dates.hour |= moment.at % QN__DAY_MICROSECONDS != 0;
    c->dates.uncounted |= c->texts.count >= QN__TEXTS_MAX;
    *taken = c->dates.uncounted;
    return QN_OK;
}

/* ------------------------------------------------------------------ the end */

int qn__arrow_dates_hold(const qn__arrow_column *c) {
    const qn__arrow_dates *d = &c->dates;
    if (c->kind == QN__ARROW_DATE)
        return !c->category;
    return c->kind == QN__ARROW_TEXT && !d->others && d->found > 0 &&
           (d->zones == 0 || d->zones == d->found);
}

/* Texts have numbers where dates have days. */
static void put_days(const qn__arrow_column *c) {
    for (uint64_t i = 0; i < c->data->items; i++)
        if (!qn__is_missing(*place_of(c, i)))
            *place_of(c, i) = (float)qn__days_of_moment(c->value[i].whole);
}

qn_status qn__arrow_dates_settle(qn__arrow_column *c, qn_error *err) {
    qn__feature *feature = &c->data->schema->feature[c->feature];
    feature->dates = qn__date_parts_usual(c->dates.hour);
    feature->time = c->dates.time;
    feature->zone = c->dates.zones > 0;
    c->data->rules |= QN__RULE_DATES;
    if (c->kind == QN__ARROW_TEXT && c->options->date_format)
        snprintf(c->data->date_format, sizeof c->data->date_format, "%s", c->options->date_format);
    c->exact = c->dates.time && c->value ? QN__EXACT_MOMENT : QN__EXACT_NONE;
    if (c->kind == QN__ARROW_TEXT && c->value)
        put_days(c);
    return c->options->dates ? qn__date_parts_read(c->options->dates, &feature->dates, err) : QN_OK;
}
