#include "data/cells/date_column.h"

#include "base/system/float_state.h"
#include "data/table/date_parts.h"
#include "data/table/dates.h"
#include "data/table/missing.h"
#include "data/table/wide.h"
#include <math.h>
#include <stdio.h>

int64_t qn__moment_of_days(float days) {
    const float day = floorf(days);
    const int64_t last = QN__DAYS_END - 1;
    const int64_t number =
        day >= (float)QN__DAYS_FIRST ? (day < (float)last ? (int64_t)day : last) : QN__DAYS_FIRST;
    return number * QN__DAY_MICROSECONDS;
}

int64_t qn__moment_in_range(int64_t moment) {
    const int64_t first = QN__DAYS_FIRST * QN__DAY_MICROSECONDS,
                  last = QN__DAYS_END * QN__DAY_MICROSECONDS - 1;
    return moment < first ? first : moment > last ? last : moment;
}

qn_date_kind qn_data_dates(const qn_data *data, uint32_t k, char *parts, size_t size) {
    QN__OWN_FLOATS;
    const qn__schema *schema = data ? data->schema : NULL;
    const qn__feature *f = schema && k < schema->features ? &schema->feature[k] : NULL;
    char all[QN__DATE_PARTS_TEXT];
    qn__date_parts_text(f ? f->dates : 0, all);
    if (parts && size > 0)
        snprintf(parts, size, "%s", all);
    return !f || !f->dates ? QN_DATE_NONE
           : f->zone       ? QN_DATE_TIMES_UTC
           : f->time       ? QN_DATE_TIMES
                           : QN_DATE_DAYS;
}

const int64_t *qn_data_moments(const qn_data *data, uint32_t k) {
    QN__OWN_FLOATS;
    const int times =
        data && !data->index && k < data->features && qn__wide_kind(data, k) == QN__EXACT_MOMENT;
    return times ? &qn__wide_column(data, k)->whole : NULL;
}

void qn_data_date(const qn_data *data, uint64_t item, uint32_t k, char *text, size_t size) {
    QN__OWN_FLOATS;
    char all[QN__MOMENT_TEXT] = "";
    const qn_date_kind kind = qn_data_dates(data, k, NULL, 0);
    if (!text || size == 0)
        return;
    if (kind != QN_DATE_NONE && item < data->items &&
        !qn__is_missing(((const float *)qn__data_item(data, item))[k]))
        qn__moment_text(qn__data_moment(data, item, k), kind != QN_DATE_DAYS,
                        kind == QN_DATE_TIMES_UTC, all);
    snprintf(text, size, "%s", all);
}

const char *qn_data_date_format(const qn_data *data) {
    QN__OWN_FLOATS;
    return data && *data->date_format ? data->date_format : NULL;
}

int64_t qn__data_moment(const qn_data *data, uint64_t item, uint32_t feature) {
    const qn__wide_value *exact =
        qn__wide_kind(data, feature) == QN__EXACT_MOMENT ? qn__wide_column(data, feature) : NULL;
    if (exact)
        return qn__moment_in_range(exact[qn__data_row(data, item)].whole);
    return qn__moment_of_days(((const float *)qn__data_item(data, item))[feature]);
}
