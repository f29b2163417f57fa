#include "data/prepare/offsets.h"
#include "base/memory.h"
#include "data/table/wide.h"
#include "num/ratio.h"
#include <inttypes.h>
#include <math.h>
#include <string.h>

uint32_t qn__wide_features(const qn__schema *table) {
    uint32_t columns = 0;
    for (uint32_t k = 0; table && k < table->features; k++)
        columns += table->feature[k].exact != QN__EXACT_NONE;
    return columns;
}

/* The values of a column: exact ones, or the floats of a table that has no others. */
typedef struct column {
    const qn_data *data;
    uint32_t feature;
    qn__exact kind;
    const qn__wide_value *exact;
} column;

static column column_of(const qn_data *data, uint32_t k) {
    return (column){data, k, qn__wide_kind(data, k), qn__wide_column(data, k)};
}

/* A value, and whether it is a whole number of 64 bits. */
typedef struct number {
    int missing, is_whole;
    int64_t whole;
    double real; /* the nearest one */
} number;

static number of_real(double real) {
    const int is_whole = fabs(real) < 0x1p63 && real == rint(real);
    return (number){isnan(real), is_whole, is_whole ? (int64_t)real : 0, real};
}

static number value_at(const column *c, uint64_t item) {
    if (c->kind == QN__EXACT_NONE)
        return of_real(qn__data_number(c->data, item, c->feature));
    const qn__wide_value value = c->exact[qn__data_row(c->data, item)];
    if (c->kind == QN__EXACT_REAL)
        return of_real(value.real);
    return (number){value.whole == QN__WIDE_MISSING, 1, value.whole, (double)value.whole};
}

/* ------------------------------------------------------------------ fitting */

static double mean_of(const column *c) {
    qn__exact_sum sum = {.pending = 0};
    uint64_t present = 0;
    for (uint64_t i = 0; i < c->data->items; i++) {
        const number x = value_at(c, i);
        if (x.missing)
            continue;
        present++;
        if (x.is_whole)
            qn__exact_add_scaled(&sum, x.whole < 0 ? 0 - (uint64_t)x.whole : (uint64_t)x.whole, 0,
                                 x.whole < 0);
        else
            qn__exact_add(&sum, x.real);
    }
    return present ? qn__ratio_of_sum(&sum, present) : 0;
}

void qn__offsets_fit(const qn_data *train, const qn__schema *table, qn__offset *offset) {
    for (uint32_t k = 0, j = 0; k < table->features; k++) {
        const qn__exact exact = table->feature[k].exact;
        if (exact == QN__EXACT_NONE)
            continue;
        const column c = column_of(train, k);
        const double mean = mean_of(&c), near = exact == QN__EXACT_WHOLE ? rint(mean) : mean;
        offset[j].high = (float)near;
        offset[j++].low = (float)(near - (double)(float)near);
    }
}

void qn__offsets_keep(const qn__schema *other, const qn__offset *kept, const qn__schema *table,
                      qn__offset *offset) {
    for (uint32_t k = 0; k < table->features; k++) {
        const int wide = other && kept && other->feature[k].exact != QN__EXACT_NONE;
        if (table->feature[k].exact != QN__EXACT_NONE)
            *offset++ = wide ? *kept : (qn__offset){0, 0};
        kept += wide;
    }
}

/* ------------------------------------------------------------------ subtracting */

double qn__narrow_bytes(const qn_data *raw) {
    return (double)raw->items * raw->features * sizeof(float);
}

/* x - offset for a whole offset of at most 2^63 in magnitude, rounded once. The difference is below
 * 2^64 in magnitude, so that modulo 2^64 and its sign are all of it. */
static float difference_of_whole(int64_t x, double offset) {
    const uint64_t magnitude = (uint64_t)fabs(offset), from = (uint64_t)x;
    const uint64_t rest = offset < 0 ? from + magnitude : from - magnitude;
    const int below = offset < 0 ? x < 0 && 0 - from > magnitude : x < 0 || from < magnitude;
    return below ? -(float)(0 - rest) : (float)rest;
}

/* Of whole numbers it is rounded once, of others to binary64 first. */
static float difference(const number *x, double offset) {
    if (x->is_whole && offset == rint(offset))
        return difference_of_whole(x->whole, offset);
    return (float)(x->real - offset);
}

static qn_status refuse(const qn__encoding *how, uint32_t k, uint64_t item, double value,
                        double offset, const char *what, qn_error *err) {
    char name[160];
    qn__fail(err, QN_INPUT, "%s: the value %.17g is too far from %.17g, the mean of the training",
             qn__column_name(how->table, k, name, sizeof name), value, offset);
    qn__at(err, "%s, item %" PRIu64 " (from 0)", what, item);
    return qn__remedy(err, QN_INPUT, "correct the value, or leave the item out");
}

static qn_status subtract(const qn__encoding *how, const qn_data *raw, uint32_t k, double offset,
                          const char *what, float *to, qn_error *err) {
    const column c = column_of(raw, k);
    for (uint64_t i = 0; i < raw->items; i++, to += raw->features) {
        number x = value_at(&c, i);
        if (x.missing && how->missing != QN__MISSING_ZERO)
            continue;
        x = x.missing ? of_real(0) : x;
        to[k] = difference(&x, offset);
        if (!isfinite(to[k]))
            return refuse(how, k, i, x.real, offset, what, err);
    }
    return QN_OK;
}

static void copy_floats(const qn_data *raw, float *to) {
    for (uint64_t i = 0; i < raw->items; i++, to += raw->features)
        qn__element_of(raw->type)->floats(qn__data_item(raw, i), raw->features, to);
}

/* The items of `raw` with a matrix of their own. All else is that of `raw`. */
static qn_data *begin(const qn_data *raw, qn_error *err) {
    qn_data *made = qn__alloc(1, sizeof *made, err);
    if (!made)
        return NULL;
    *made = *raw;
    made->type = QN_F32;
    made->mapped = 1; /* labels, targets and weights belong to `raw` */
    made->release = qn__free;
    made->memory = qn__alloc(raw->items, raw->features * sizeof(float), err);
    made->values = made->memory;
    made->schema = qn__schema_copy(raw->schema, err);
    made->values_digest = NULL;
    made->late = NULL;
    made->in_file = NULL;
    made->note = NULL;
    made->names = NULL;
    made->weight_name = NULL;
    made->index = NULL;
    made->wide = NULL;
    made->kept = NULL;
    made->several = NULL;
    memcpy(made->digest, qn_data_digest(raw), sizeof made->digest);
    for (uint32_t k = 0; made->schema && k < raw->features; k++)
        if (made->schema->feature[k].exact != QN__EXACT_MOMENT)
            made->schema->feature[k].exact = QN__EXACT_NONE;
    if (made->memory && !made->schema == !raw->schema &&
        qn__wide_copy(raw, NULL, NULL, made, err) == QN_OK &&
        qn__several_copy(raw, NULL, raw->items, &made->several, err) == QN_OK)
        return made;
    qn_data_close(made);
    return NULL;
}

static qn_status fill(const qn__encoding *how, const qn_data *raw, const char *what, float *to,
                      qn_error *err) {
    qn_status status = QN_OK;
    copy_floats(raw, to);
    for (uint32_t k = 0, j = 0; status == QN_OK && k < how->features; k++)
        if (how->table->feature[k].exact != QN__EXACT_NONE)
            status = subtract(how, raw, k, qn__offset_of(&how->offset[j++]), what, to, err);
    return status;
}

qn_status qn__subtract_offsets(const qn__encoding *how, const qn_data *raw,
                               const qn__encoding_notes *notes, qn_data **out, qn_error *err) {
    *out = NULL;
    if (!how->offset || qn__wide_features(how->table) == 0)
        return QN_OK;
    qn_status status = qn__inputs_check_size(
        qn__narrow_bytes(raw), "columns that float32 cannot hold are read exactly", notes, err);
    if (status != QN_OK)
        return status;
    if (!(*out = begin(raw, err)))
        return QN_MEMORY;
    status = fill(how, raw, notes->what, (*out)->memory, err);
    if (status == QN_OK)
        return QN_OK;
    qn_data_close(*out);
    *out = NULL;
    return status;
}
