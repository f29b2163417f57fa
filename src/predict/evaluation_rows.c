/* An evaluation as a JSON file, or as a row of a database. */
#include "base/argument.h"
#include "base/files/file.h"
#include "base/system/float_state.h"
#include "base/text/text.h"
#include "cluster/cluster.h"
#include "data/write/sink.h"
#include "predict/evaluate.h"
#include <math.h>
#include <stddef.h>
#include <string.h>

/* Numbers of an evaluation that have a column; one that is not defined is NULL there. */
static const struct {
    const char *name;
    size_t place;
} numbers[] = {{"accuracy", offsetof(qn_evaluation, accuracy)},
               {"precision", offsetof(qn_evaluation, precision)},
               {"recall", offsetof(qn_evaluation, recall)},
               {"f1", offsetof(qn_evaluation, f1)},
               {"auc", offsetof(qn_evaluation, auc)},
               {"log_loss", offsetof(qn_evaluation, log_loss)},
               {"calibration_error", offsetof(qn_evaluation, calibration_error)},
               {"top5_accuracy", offsetof(qn_evaluation, top5_accuracy)},
               {"mae", offsetof(qn_evaluation, mae)},
               {"rmse", offsetof(qn_evaluation, rmse)},
               {"r2", offsetof(qn_evaluation, r2)},
               {"inertia", offsetof(qn_evaluation, inertia)},
               {"mean_iou", offsetof(qn_evaluation, mean_iou)},
               {"exact_match", offsetof(qn_evaluation, exact_match)},
               {"micro_f1", offsetof(qn_evaluation, micro_f1)},
               {"loss", offsetof(qn_evaluation, loss)},
               {"perplexity", offsetof(qn_evaluation, perplexity)},
               {"bits_per_byte", offsetof(qn_evaluation, bits_per_byte)}};
enum { NUMBERS = sizeof numbers / sizeof *numbers, FIRST = 3, COLUMNS = FIRST + NUMBERS + 1 };

typedef struct evaluation_row {
    qn__sink_column column[COLUMNS];
    qn__sink_cell cell[COLUMNS];
} evaluation_row;

static qn__sink_table fill(evaluation_row *row, const qn_evaluation *e, const char *model,
                           const char *data) {
    static const qn__sink_column first[FIRST] = {
        {"data", QN__SINK_TEXT, 0}, {"model", QN__SINK_TEXT, 0}, {"items", QN__SINK_INTEGER, 0}};
    memcpy(row->column, first, sizeof first);
    row->cell[0] = (qn__sink_cell){QN__SINK_TEXT, {.text = data}};
    row->cell[1] = (qn__sink_cell){QN__SINK_TEXT, {.text = model}};
    row->cell[2] = (qn__sink_cell){QN__SINK_INTEGER, {.whole = e ? (int64_t)e->items : 0}};
    for (int k = 0; k < NUMBERS; k++) {
        double value = NAN;
        if (e)
            memcpy(&value, (const char *)e + numbers[k].place, sizeof value);
        row->column[FIRST + k] = (qn__sink_column){numbers[k].name, QN__SINK_REAL, 0};
        row->cell[FIRST + k] =
            (qn__sink_cell){isnan(value) ? QN__SINK_MISSING : QN__SINK_REAL, {.number = value}};
    }
    row->column[COLUMNS - 1] = (qn__sink_column){"json", QN__SINK_TEXT, 0};
    row->cell[COLUMNS - 1] = (qn__sink_cell){QN__SINK_TEXT, {.text = e ? e->json : ""}};
    return (qn__sink_table){.name = "evaluations", .column = row->column, .columns = COLUMNS};
}

static qn_status add_row(void *user, qn__sink *sink, qn_error *err) {
    return qn__sink_add(sink, ((const evaluation_row *)user)->cell, err);
}

/* The row of the same evaluation is there once. */
static qn_status write_row(const qn_evaluation *e, const char *model, const char *data,
                           qn_cluster *cluster, const char *path, qn__sink_written *written,
                           qn_error *err) {
    evaluation_row row;
    char run[QN__SINK_RUN];
    qn__sha256 hash;
    const qn__sink_table table = fill(&row, e, model, data);
    const qn__sink_order order = {.to = path,
                                  .table = &table,
                                  .run = run,
                                  .rows = add_row,
                                  .user = &row,
                                  .may = qn__cluster_may_write,
                                  .may_user = cluster};
    qn__sha256_begin(&hash);
    const qn_status status = qn__sink_digest(&table, add_row, &row, &hash, err);
    qn__sink_run(&hash, run);
    return status == QN_OK ? qn__sink_write(&order, written, err) : status;
}

static qn_status write_json(const qn_evaluation *e, const char *model, const char *data,
                            qn_cluster *cluster, const char *path, qn_error *err) {
    qn__text text = {0};
    qn__writer *writer = NULL;
    qn__text_add(&text, "{\"data\": ");
    qn__text_add_json(&text, data);
    qn__text_add(&text, ", \"model\": ");
    qn__text_add_json(&text, model);
    qn__text_add(&text, ", \"evaluation\": %s}\n", e->json);
    qn_status status =
        text.failed ? qn__fail_memory(err, text.size, 1) : qn__writer_create(path, &writer, err);
    if (status == QN_OK) {
        status = qn__writer_add(writer, text.data, text.size, err);
        qn__writer_ask(writer, qn__cluster_may_write, cluster);
        status = qn__writer_finish(writer, NULL, status, err);
    }
    qn__text_release(&text);
    return status;
}

qn_status qn_evaluation_write(const qn_evaluation *evaluation, const qn_model *model,
                              const char *data, qn_cluster *cluster, const char *path, int *there,
                              qn_error *err) {
    QN__OWN_FLOATS;
    QN__NEED(evaluation, err);
    QN__NEED(model, err);
    QN__NEED(data, err);
    QN__NEED(path, err);
    qn__sink_written written = {.there = 0};
    const char *digest = qn_model_digest(model);
    qn_status status = qn__sink_check(path, err);
    if (status == QN_OK)
        status = qn__sink_is_database(path)
                     ? write_row(evaluation, digest, data, cluster, path, &written, err)
                     : write_json(evaluation, digest, data, cluster, path, err);
    if (there)
        *there = written.there;
    return status == QN_BUSY && cluster ? qn__cluster_refuse(cluster, err) : status;
}

qn_status qn_evaluation_check(const char *path, qn_error *err) {
    QN__OWN_FLOATS;
    QN__NEED(path, err);
    evaluation_row row;
    const qn__sink_table table = fill(&row, NULL, "", "");
    return qn__sink_try(path, &table, err);
}
