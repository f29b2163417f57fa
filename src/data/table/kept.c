#include "data/table/kept.h"
#include "base/memory.h"
#include "data/table/missing.h"
#include <math.h>

void qn__kept_free(qn__kept *kept) {
    for (uint32_t j = 0; kept && kept->value && j < kept->columns; j++)
        qn__free(kept->value[j]);
    if (kept) {
        qn__free((void *)kept->value);
        qn__free(kept->feature);
    }
    qn__free(kept);
}

qn__kept *qn__kept_create(uint32_t columns, qn_error *err) {
    qn__kept *kept = qn__alloc(1, sizeof *kept, err);
    if (!kept)
        return NULL;
    kept->columns = columns;
    kept->feature = qn__alloc(columns, sizeof *kept->feature, err);
    kept->value = (qn__wide_value **)qn__alloc(columns, sizeof *kept->value, err);
    if (kept->feature && kept->value)
        return kept;
    qn__kept_free(kept);
    return NULL;
}

uint32_t qn__kept_column(const qn_data *data, uint32_t k) {
    const qn__kept *kept = data->kept;
    for (uint32_t j = 0; kept && j < kept->columns; j++)
        if (kept->feature[j] == k)
            return j + 1;
    return 0;
}

static float near_of(const qn_data *data, uint32_t k, uint64_t i) {
    return ((const float *)qn__data_item(data, i))[k];
}

double qn__kept_value(const qn_data *data, uint32_t column, uint64_t i) {
    const qn__kept *kept = data->kept;
    const qn__wide_value *value = kept->value[column - 1];
    return value ? value[qn__data_row(data, i)].real
                 : (double)near_of(data, kept->feature[column - 1], i);
}

/* The double of a decimal may be just between two floats, and its float is that of the decimal. A
 * zero has its sign in the matrix only. */
static double beside(double value, float near) {
    if (qn__is_missing(near))
        return (double)NAN;
    if (value == (double)near)
        return (double)near;
    return (float)value == near ? value : nextafter(value, (double)near);
}

void qn__kept_put(const qn_data *data, uint32_t j, uint32_t k, qn__wide_value *values) {
    data->kept->feature[j] = k;
    data->kept->value[j] = values;
    for (uint64_t i = 0; values && i < data->items; i++)
        values[i].real = beside(values[i].real, near_of(data, k, i));
}
