/* The outputs of a layer as rows of a table in a database. */
#include <quern/predict.h>

#include "base/argument.h"
#include "base/memory.h"
#include "base/sized.h"
#include "base/system/float_state.h"
#include "cluster/cluster.h"
#include "data/table/data.h"
#include "data/write/sink.h"
#include "model/formats/model.h"
#include <math.h>
#include <stdio.h>
#include <string.h>

/* Bytes of a name such as "f16777216"; columns beside the values: item, file, label. */
enum { NAME = 16, BESIDE = 3 };

typedef struct layer_rows {
    const qn_data *data;
    const qn_layer_order *order;
    uint32_t values; /* of an item */
    qn__sink_table table;
    qn__sink_column *column;
    char (*names)[NAME];
    qn__sink_cell *cells;
} layer_rows;

/* ------------------------------------------------------------------ columns */

static int has_labels(const qn_data *d) { return qn_data_labels(d) || qn_data_targets(d); }

static void add_column(layer_rows *r, const char *name, qn__sink_type type) {
    r->column[r->table.columns++] = (qn__sink_column){name, type, 0};
}

/* The names of a CSV file of these values. */
static void add_columns(layer_rows *r) {
    const qn_data *d = r->data;
    const char *label = qn_data_label_name(d);
    add_column(r, "item", QN__SINK_INTEGER);
    if (qn_data_item_name(d, 0))
        add_column(r, "file", QN__SINK_TEXT);
    if (has_labels(d))
        add_column(r, label && *label ? label : "label",
                   qn_data_targets(d)         ? QN__SINK_SINGLE
                   : qn_data_class_name(d, 0) ? QN__SINK_TEXT
                                              : QN__SINK_INTEGER);
    for (uint32_t k = 0; k < r->values; k++) {
        snprintf(r->names[k], NAME, "f%u", k);
        add_column(r, r->names[k], QN__SINK_SINGLE);
    }
    r->table.column = r->column;
}

static void release(layer_rows *r) {
    qn__free(r->column);
    qn__free(r->names);
    qn__free(r->cells);
}

static qn_status prepare(const qn_model *model, layer_rows *r, qn_error *err) {
    uint32_t shape[3], lengths;
    const qn_status status =
        qn_model_layer_shape(model, r->order->layer, r->order->summary, shape, &lengths, err);
    if (status != QN_OK)
        return status;
    r->values = shape[0] * shape[1] * shape[2];
    r->table = (qn__sink_table){.name = "outputs", .keys = 1};
    r->column = qn__alloc((uint64_t)r->values + BESIDE, sizeof *r->column, err);
    r->names = r->column ? qn__alloc(r->values, NAME, err) : NULL;
    r->cells = r->names ? qn__alloc((uint64_t)r->values + BESIDE, sizeof *r->cells, err) : NULL;
    if (!r->cells)
        return QN_MEMORY;
    add_columns(r);
    return QN_OK;
}

/* ------------------------------------------------------------------ rows */

static qn__sink_cell single(float value) {
    return isnan(value) ? (qn__sink_cell){.type = QN__SINK_MISSING}
                        : (qn__sink_cell){QN__SINK_SINGLE, {.number = value + 0.0f}}; /* no "-0" */
}

static qn__sink_cell label_cell(const qn_data *d, uint64_t item) {
    if (qn_data_targets(d))
        return single(qn_data_targets(d)[item]);
    const int32_t class = qn_data_labels(d)[item];
    if (class < 0)
        return (qn__sink_cell){.type = QN__SINK_MISSING};
    const char *name = qn_data_class_name(d, (uint32_t) class);
    return name ? (qn__sink_cell){QN__SINK_TEXT, {.text = name}}
                : (qn__sink_cell){QN__SINK_INTEGER, {.whole = class}};
}

static qn_status add_rows(void *user, qn__sink *sink, qn_error *err) {
    const layer_rows *r = user;
    qn_status status = QN_OK;
    for (uint64_t i = 0; i < r->data->items && status == QN_OK; i++) {
        const char *name = qn_data_item_name(r->data, i);
        const float *value = r->order->values + i * r->values;
        qn__sink_cell *cell = r->cells;
        *cell++ = (qn__sink_cell){QN__SINK_INTEGER, {.whole = (int64_t)i}};
        if (name)
            *cell++ = (qn__sink_cell){QN__SINK_TEXT, {.text = name}};
        if (has_labels(r->data))
            *cell++ = label_cell(r->data, i);
        for (uint32_t k = 0; k < r->values; k++)
            *cell++ = single(value[k]);
        status = qn__sink_add(sink, r->cells, err);
    }
    return status;
}

/* What decides the rows, and the rows. */
static qn_status name_run(const qn_model *model, layer_rows *r, char run[QN__SINK_RUN],
                          qn_error *err) {
    const char *digests[] = {qn_model_digest(model), qn_data_digest(r->data)};
    char which[32];
    qn__sha256 hash;
    qn__sha256_begin(&hash);
    for (int i = 0; i < 2; i++)
        if (digests[i])
            qn__sha256_add(&hash, digests[i], strlen(digests[i]) + 1);
    snprintf(which, sizeof which, "layer %u %d", r->order->layer, (int)r->order->summary);
    qn__sha256_add(&hash, which, strlen(which) + 1);
    const qn_status status = qn__sink_digest(&r->table, add_rows, r, &hash, err);
    qn__sink_run(&hash, run);
    return status;
}

static qn_status write(const qn_model *model, layer_rows *r, qn_layer_run *out, qn_error *err) {
    char run[QN__SINK_RUN];
    qn__sink_written written;
    const qn__sink_order order = {.to = r->order->to,
                                  .table = &r->table,
                                  .run = run,
                                  .rows = add_rows,
                                  .user = r,
                                  .may = qn__cluster_may_write,
                                  .may_user = r->order->cluster};
    qn_status status = name_run(model, r, run, err);
    if (status == QN_OK)
        status = qn__sink_write(&order, &written, err);
    if (status == QN_BUSY && r->order->cluster)
        return qn__cluster_refuse(r->order->cluster, err);
    if (status != QN_OK)
        return status;
    out->there = written.there;
    snprintf(out->name, sizeof out->name, "%s", written.run);
    return QN_OK;
}

static qn_status check(const qn_layer_order *o, qn_error *err) {
    if (!o->to)
        return qn__fail_null(err, "qn_layer_write", "order->to");
    if (qn__sink_is_database(o->to))
        return QN_OK;
    qn__fail(err, QN_USAGE, "qn_layer_write: this is not the address of a database");
    qn__at(err, "%.400s", o->to);
    return qn__remedy(err, QN_USAGE,
                      "write \"sqlite:FILE\" or \"postgresql://USER@HOST/DATABASE\"");
}

qn_status qn_layer_write(const qn_model *model, const qn_data *data, const qn_layer_order *order,
                         qn_layer_run *run, qn_error *err) {
    QN__OWN_FLOATS;
    QN__NEED(model, err);
    QN__NEED(data, err);
    QN__NEED(order, err);
    qn_layer_order own = {.size = sizeof own};
    qn_layer_run made = {.size = sizeof made};
    layer_rows rows = {.data = data, .order = &own};
    const qn__sized *what = QN__SIZED("run", qn_layer_run);
    qn_status status = qn__sized_take(QN__SIZED("order", qn_layer_order), order, &own, err);
    if (status == QN_OK && run)
        status = qn__sized_check(what, run, err);
    if (status == QN_OK)
        status = check(&own, err);
    if (status == QN_OK)
        status = prepare(model, &rows, err);
    if (status == QN_OK)
        status =
            own.values ? write(model, &rows, &made, err) : qn__sink_try(own.to, &rows.table, err);
    release(&rows);
    if (status == QN_OK && run)
        qn__sized_give(what, &made, run, run->size);
    return status;
}
