#include "data/cells/rounded.h"
#include "base/text/text.h"
#include "data/table/wide.h"
#include <math.h>

/* As for wide columns: docs/exactness.md 23.4. */
#define SPREAD 4096.0

/* Floats `step` apart; most columns are known after the first few. */
static int is_rounded(const float *values, size_t step, uint64_t items) {
    double lo = INFINITY, hi = -INFINITY;
    int loses = 0; /* whole numbers up to 2^24 are floats */
    for (uint64_t i = 0; i < items; i++) {
        const double value = (double)values[i * step];
        if (isnan(value))
            continue;
        loses |= value != rint(value) || fabs(value) > 0x1p24;
        lo = value < lo ? value : lo;
        hi = value > hi ? value : hi;
        if (!(fmax(fabs(lo), fabs(hi)) > SPREAD * (hi - lo)))
            return 0;
    }
    return loses && (hi > lo || fabs(hi) > 0x1p24); /* equal floats of other numbers, perhaps */
}

static int is_plain_number(const qn_data *data, uint32_t k) {
    return qn__wide_kind(data, k) == QN__EXACT_NONE && qn_data_categories(data, k) == 0 &&
           qn_data_dates(data, k, NULL, 0) == QN_DATE_NONE;
}

static qn_status note(qn_data *data, const char *name, const char *remedy, qn_error *err) {
    qn__text text = {0};
    qn__text_add(&text, "%s spans little beside its magnitude, and float32 may round its values%s",
                 name, remedy);
    const qn_status status =
        text.failed ? qn__fail_memory(err, text.size, 1) : qn__data_add_note(data, text.data, err);
    qn__text_release(&text);
    return status;
}

qn_status qn__note_rounded(qn_data *data, int as_text, qn_error *err) {
    const float *values = (const void *)data->values;
    qn_status status = QN_OK;
    char name[160];
    if (!as_text)
        return QN_OK;
    for (uint32_t k = 0; data->type == QN_F32 && k < data->features && status == QN_OK; k++)
        if (is_plain_number(data, k) && is_rounded(values + k, data->features, data->items))
            status = note(data, qn__column_name(data->schema, k, name, sizeof name),
                          "; subtract a number from them, or give doubles in a Parquet, Arrow or "
                          "NPY file",
                          err);
    if (status == QN_OK && data->targets && is_rounded(data->targets, 1, data->items))
        status = note(data, "the label", "; subtract a number from them", err);
    return status;
}
