#include "data/numpy/array_dates.h"

#include "base/memory.h"
#include "data/cells/labels.h"
#include "data/table/date_parts.h"
#include "data/table/dates.h"
#include "data/table/missing.h"
#include "data/table/rules.h"
#include "data/table/wide.h"
#include <inttypes.h>
#include <math.h>
#include <stdio.h>

int qn__array_is_date(const qn_data_arrays *a, uint32_t k) {
    return a->dates && a->dates[k] && *a->dates[k];
}

static const int64_t *moments_of(const qn_data_arrays *a, uint32_t k) {
    return a->date_kinds && a->date_kinds[k] > QN_DATE_DAYS && a->whole ? a->whole[k] : NULL;
}

static qn_status check_feature(const qn_data_arrays *a, uint32_t k, qn_error *err) {
    const int kind = a->date_kinds ? a->date_kinds[k] : QN_DATE_NONE;
    const char *why = a->type != QN_F32                                 ? "has bytes"
                      : a->categories && a->categories[k]               ? "has categories, too"
                      : kind < QN_DATE_DAYS || kind > QN_DATE_TIMES_UTC ? "has no kind of dates"
                      : kind > QN_DATE_DAYS && !moments_of(a, k)        ? "has no exact values"
                                                                        : NULL;
    if (!why)
        return QN_OK;
    qn__fail(err, QN_USAGE, "feature %u of dates %s", (unsigned)k, why);
    return qn__remedy(err, QN_USAGE, "give floats, date_kinds, and for times whole");
}

/* Days, and moments on these days, in the range of years. */
static qn_status check_values(const qn_data *data, uint32_t k, const int64_t *moment,
                              qn_error *err) {
    for (uint64_t i = 0; i < data->items; i++) {
        const float day = ((const float *)qn__data_item(data, i))[k];
        if (qn__is_missing(day))
            continue;
        if (day == floorf(day) && day >= (float)QN__DAYS_FIRST && day < (float)QN__DAYS_END &&
            (!moment || qn__days_of_moment(moment[i]) == (int64_t)day))
            continue;
        qn__fail(err, QN_INPUT, "%g is not a day of the years 1 to 9999, or not that of its moment",
                 (double)day);
        qn__at(err, "feature %u, item %" PRIu64, (unsigned)k, i);
        return qn__remedy(err, QN_INPUT, "give days since 1970-01-01");
    }
    return QN_OK;
}

static qn_status describe(qn_data *data, const qn_data_arrays *a, uint32_t k, qn__exact *exact,
                          qn_error *err) {
    qn__feature *feature = &data->schema->feature[k];
    qn_status status = check_feature(a, k, err);
    if (status == QN_OK)
        status = qn__date_parts_read(a->dates[k], &feature->dates, err);
    if (status != QN_OK)
        return status;
    feature->time = a->date_kinds[k] > QN_DATE_DAYS;
    feature->zone = a->date_kinds[k] == QN_DATE_TIMES_UTC;
    feature->bytes = 0;
    *exact = feature->time ? QN__EXACT_MOMENT : QN__EXACT_NONE;
    data->rules |= QN__RULE_DATES;
    return check_values(data, k, moments_of(a, k), err);
}

static void take_moments(qn_data *data, uint32_t k, const int64_t *moment) {
    qn__wide_value *to = (qn__wide_value *)(uintptr_t)qn__wide_column(data, k);
    for (uint64_t i = 0; i < data->items; i++)
        if (!qn__is_missing(((const float *)qn__data_item(data, i))[k]))
            to[i].whole = moment[i];
}

qn_status qn__array_dates_take(qn_data *data, const qn_data_arrays *a, qn_error *err) {
    if (!a->dates)
        return QN_OK;
    qn_status status = qn__data_need_schema(data, err);
    if (status == QN_OK && a->date_format &&
        (status = qn__date_format_check(a->date_format, err)) == QN_OK)
        snprintf(data->date_format, sizeof data->date_format, "%s", a->date_format);
    qn__exact *exact = status == QN_OK ? qn__alloc(a->features, sizeof *exact, err) : NULL;
    if (!exact)
        return status == QN_OK ? QN_MEMORY : status;
    for (uint32_t k = 0; k < a->features && status == QN_OK; k++)
        if (qn__array_is_date(a, k))
            status = describe(data, a, k, &exact[k], err);
    if (status == QN_OK)
        status = qn__wide_make(data, exact, err);
    for (uint32_t k = 0; k < a->features && status == QN_OK; k++)
        if (exact[k] != QN__EXACT_NONE)
            take_moments(data, k, moments_of(a, k));
    qn__free(exact);
    return status;
}
