/* The public prediction, and its results as CSV. */
#include <quern/predict.h>

#include "base/argument.h"
#include "base/memory.h"
#include "base/sized.h"
#include "base/system/float_state.h"
#include "cluster/cluster.h"
#include "data/prepare/encode.h"
#include "device/notes.h"
#include "job/answer_counts.h"
#include "job/targets.h"
#include "model/formats/model.h"
#include "predict/evaluate.h"
#include "predict/joined_parts.h"
#include "predict/layer_values.h"
#include "predict/model_kinds.h"
#include "predict/predicted_masks.h"
#include "predict/prediction_rows.h"
#include "predict/score.h"
#include <math.h>
#include <string.h>

/* Makes what the model takes of the data, where that is something else; else *made is NULL. */
static qn_status encode(const qn_model *model, const qn_data *data, const qn_compute *compute,
                        qn_data **made, qn_error *err) {
    qn__fitting to = qn__model_fitting(model, "the data");
    if (!compute->cluster || qn_cluster_is_writer(compute->cluster))
        to.note = qn__device_tell_note;
    return qn__encode(&to, data, QN__UNKNOWN_MINUS_ONE, made, err);
}

/* The caller's compute options, or the defaults. */
static qn_status take(const char *function, const qn_compute *compute, qn_compute *own,
                      qn_error *err) {
    const qn__sized what = {function, "compute", "qn_compute", sizeof *own};
    *own = (qn_compute){.size = sizeof *own};
    return compute ? qn__sized_take(&what, compute, own, err) : QN_OK;
}

static qn_status refuse_several(const qn_model *model, qn_error *err) {
    qn__fail(err, QN_UNSUPPORTED, "the model gives %u answers to an item, not one class",
             model->answers);
    return qn__remedy(err, QN_UNSUPPORTED, "take them from qn_predict_several");
}

/* Flips are for networks; those that have no images refuse them later. */
static qn_status check_flips(const qn_model *model, int flips, qn_status status, qn_error *err) {
    if (status != QN_OK || !flips || (model->kind == &qn__network_kind && !model->answers))
        return status;
    qn__fail(err, QN_UNSUPPORTED, "flips are for networks with one answer to an image");
    qn__at(err, "`predict.flips`");
    return qn__remedy(err, QN_UNSUPPORTED, "leave out `predict.flips`");
}

static qn_status predict(const qn_model *model, const qn_data *data, const qn_compute *compute,
                         const qn__model_results *results, qn_error *err) {
    qn_data *made;
    if (data->items == 0) /* of a rank that has no part */
        return QN_OK;
    if (model->answers && !model->next && !results->flips && (results->classes || results->scores))
        return refuse_several(model, err);
    qn_status status = encode(model, data, compute, &made, err);
    status = check_flips(model, results->flips, status, err);
    status = qn__model_apply_to(model, made ? made : data, compute, results, status, err);
    qn_data_close(made);
    return status;
}

qn_status qn_predict(const qn_model *model, const qn_data *data, const qn_compute *compute,
                     int32_t *classes, float *scores, float *outputs, qn_error *err) {
    QN__OWN_FLOATS;
    QN__NEED(model, err);
    QN__NEED(data, err);
    const qn__model_results results = {.classes = classes, .scores = scores, .outputs = outputs};
    qn_error unwanted;
    qn_compute own;
    err = err ? err : &unwanted;
    const qn_status status = take(__func__, compute, &own, err);
    return status == QN_OK ? predict(model, data, &own, &results, err) : status;
}

qn_status qn_predict_several(const qn_model *model, const qn_data *data, const qn_compute *compute,
                             uint8_t *answers, float *outputs, qn_error *err) {
    QN__OWN_FLOATS;
    QN__NEED(model, err);
    QN__NEED(data, err);
    const qn__model_results results = {.answers = answers, .outputs = outputs};
    qn_error unwanted;
    qn_compute own;
    err = err ? err : &unwanted;
    const qn_status status = take(__func__, compute, &own, err);
    if (status != QN_OK)
        return status;
    if (model->answers == 0) {
        qn__fail(err, QN_UNSUPPORTED, "the model gives one answer to an item");
        return qn__remedy(err, QN_UNSUPPORTED, "take it from qn_predict");
    }
    return predict(model, data, &own, &results, err);
}

qn_status qn_predict_flipped(const qn_model *model, const qn_data *data, const qn_compute *compute,
                             int32_t *classes, float *scores, float *outputs, qn_error *err) {
    QN__OWN_FLOATS;
    QN__NEED(model, err);
    QN__NEED(data, err);
    const qn__model_results results = {
        .classes = classes, .scores = scores, .outputs = outputs, .flips = 1};
    qn_error unwanted;
    qn_compute own;
    err = err ? err : &unwanted;
    const qn_status status = take(__func__, compute, &own, err);
    return status == QN_OK ? predict(model, data, &own, &results, err) : status;
}

qn_status qn_predict_next(const qn_model *model, const qn_data *data, const qn_compute *compute,
                          double *logprobs, int32_t *tokens, float *logprob, int32_t *token,
                          qn_error *err) {
    QN__OWN_FLOATS;
    QN__NEED(model, err);
    QN__NEED(data, err);
    qn_error unwanted;
    qn_compute own;
    err = err ? err : &unwanted;
    qn__next_counts counts = {.logprob = logprob, .token = token};
    const qn__model_results results = {.tokens = &counts};
    qn_status status = take(__func__, compute, &own, err);
    if (status == QN_OK)
        counts.item = qn__alloc((size_t)qn__data_texts(data), sizeof *counts.item, err);
    if (status == QN_OK)
        status = counts.item ? predict(model, data, &own, &results, err) : QN_MEMORY;
    for (uint64_t i = 0; status == QN_OK && i < qn__data_texts(data); ++i) {
        if (logprobs)
            logprobs[i] = counts.item[i].logprob;
        if (tokens)
            tokens[i] = counts.item[i].prediction;
    }
    qn__free(counts.item);
    return status;
}

qn_status qn_predict_layer(const qn_model *model, const qn_data *data, const qn_compute *compute,
                           uint32_t layer, qn_summary summary, float *values, qn_error *err) {
    QN__OWN_FLOATS;
    QN__NEED(model, err);
    QN__NEED(data, err);
    QN__NEED(values, err);
    qn__layer_cut cut = {.layer = NULL};
    const qn__model_results results = {.outputs = values, .cut = &cut};
    qn_error unwanted;
    qn_compute own;
    err = err ? err : &unwanted;
    qn_status status = take(__func__, compute, &own, err);
    if (status == QN_OK)
        status = qn__layer_cut_make(model, layer, summary, &cut, err);
    if (status == QN_OK)
        status = predict(model, data, &own, &results, err);
    qn__layer_cut_release(&cut);
    return status;
}

qn_status qn_predictions_columns(qn_predictions *p, int all_outputs, uint32_t top, qn_error *err) {
    QN__OWN_FLOATS;
    QN__NEED_AS(p, "predictions", err);
    const int each = p->kind->predicted == QN_PREDICTS_LABELS && !p->several && !p->next &&
                     p->outputs == p->classes_known;
    if (top > 1 && !each) {
        qn__fail(err, QN_UNSUPPORTED, "this model has not one output for each class");
        return qn__remedy(err, QN_UNSUPPORTED, "ask for one prediction of each item");
    }
    if (qn__predicts_mask(p) && all_outputs) {
        qn__fail(err, QN_UNSUPPORTED, "tags and masks are written without the outputs");
        return qn__remedy(err, QN_UNSUPPORTED, "take these from qn_predict_several");
    }
    if (p->several) /* its columns are what they are */
        return QN_OK;
    if (p->next && all_outputs && !p->tokens.logprob) {
        qn__fail(err, QN_USAGE, "qn_predictions_columns: log-probabilities were not kept");
        return qn__remedy(err, QN_USAGE, "call qn_predictions_make with `all_outputs` 1");
    }
    if (p->next)
        p->shown = all_outputs;
    if (p->next)
        return QN_OK;
    if ((top > 1 || (all_outputs && !p->real)) && !p->output) {
        qn__fail(err, QN_USAGE, "qn_predictions_columns: the outputs were not kept");
        return qn__remedy(err, QN_USAGE, "call qn_predictions_make with `all_outputs` 1");
    }
    p->shown = !qn__predicts_one(p) || (all_outputs && !p->real);
    p->top = top < p->outputs ? top : p->outputs;
    return QN_OK;
}

qn_status qn_predictions_mask_size(qn_predictions *p, int as_given, qn_error *err) {
    QN__OWN_FLOATS;
    QN__NEED_AS(p, "predictions", err);
    if (as_given && (!qn__predicts_mask(p) || qn__predicts_tags(p))) {
        qn__fail(err, QN_UNSUPPORTED, "the model does not predict masks, so they have no size");
        return qn__remedy(err, QN_UNSUPPORTED, "leave it out");
    }
    p->as_given = as_given;
    return QN_OK;
}

static qn_status write_masks(const qn_predictions *p, const char *folder, qn_error *err) {
    const qn__predicted_masks masks = {.data = p->data,
                                       .first = p->range.row,
                                       .end = p->range.row_end,
                                       .answers = p->answers,
                                       .rows = p->several->mask.height,
                                       .columns = p->several->mask.width,
                                       .as_given = p->as_given,
                                       .may = qn__cluster_may_write,
                                       .user = p->cluster};
    return qn__predicted_masks_write(&masks, folder, err);
}

static qn_status end_writing(const qn_predictions *p, qn_status status, qn_error *err) {
    return status == QN_BUSY && p->cluster ? qn__cluster_refuse(p->cluster, err) : status;
}

/* What the rows of a prediction are made of. */
typedef struct made_rows {
    const qn_predictions *predictions;
    const qn__prediction_table *table;
} made_rows;

static qn_status add_rows(void *user, qn__sink *sink, qn_error *err) {
    const made_rows *rows = user;
    return qn__prediction_rows_add(rows->predictions, rows->table, sink, err);
}

/* The run is named by what decides the rows, and by these: so that the same result is not there
 * twice, whoever writes it again. */
static qn_status name_run(made_rows *rows, char run[QN__SINK_RUN], qn_error *err) {
    const qn_predictions *p = rows->predictions;
    const char *digests[] = {qn_model_digest(p->model), qn_data_digest(p->data)};
    qn__sha256 hash;
    qn__sha256_begin(&hash);
    for (int i = 0; i < 2; i++)
        if (digests[i])
            qn__sha256_add(&hash, digests[i], strlen(digests[i]) + 1);
    const qn_status status = qn__sink_digest(&rows->table->table, add_rows, rows, &hash, err);
    qn__sink_run(&hash, run);
    return status;
}

/* To a CSV file or a database. */
static qn_status write_rows(made_rows *rows, const char *path, qn_error *err) {
    const qn_predictions *p = rows->predictions;
    char run[QN__SINK_RUN];
    const qn__sink_order order = {.to = path,
                                  .table = &rows->table->table,
                                  .run = run,
                                  .rows = add_rows,
                                  .user = rows,
                                  .may = qn__cluster_may_write,
                                  .may_user = p->cluster};
    qn_status status = qn__sink_is_database(path) ? name_run(rows, run, err) : QN_OK;
    return status == QN_OK ? qn__sink_write(&order, p->written, err) : status;
}

qn_status qn_predictions_write(const qn_predictions *p, const char *path, qn_error *err) {
    QN__OWN_FLOATS;
    QN__NEED_AS(p, "predictions", err);
    QN__NEED(path, err);
    if (qn__predicts_mask(p) && !qn__predicts_tags(p))
        return end_writing(p, write_masks(p, path, err), err);
    qn__prediction_table table;
    made_rows rows = {p, &table};
    qn_status status = qn__prediction_table_make(p, &table, err);
    if (status == QN_OK)
        status = write_rows(&rows, path, err);
    qn__prediction_table_release(&table);
    return end_writing(p, status, err);
}

qn_status qn_predictions_write_part(const qn_predictions *p, const qn_parts *parts, uint32_t rank,
                                    const char *path, qn_error *err) {
    QN__OWN_FLOATS;
    QN__NEED_AS(p, "predictions", err);
    QN__NEED(parts, err);
    QN__NEED(path, err);
    const qn__part_range range = qn__parts_range(parts, rank);
    if (p->data != parts->own || !p->joined)
        return qn__fail(err, QN_USAGE,
                        "qn_predictions_write_part: the predictions are not joined with this part");
    if (!range.is_here)
        return qn__fail(err, QN_USAGE,
                        "qn_predictions_write_part: another rank has the items of rank %u",
                        (unsigned)rank);
    qn_predictions some = *p;
    some.range = range;
    return qn_predictions_write(&some, path, err);
}

/* The same for several answers to an item. */
static qn_status reserve_several(qn_predictions *p, qn_error *err) {
    const qn_model *model = p->several;
    const uint32_t counted = qn__predicts_mask(p) ? model->classes : model->outputs;
    p->answers = qn__alloc((size_t)p->data->items, model->answers, err);
    if (p->answers && p->shown)
        p->output = qn__alloc((size_t)p->data->items, p->outputs * sizeof *p->output, err);
    if (p->answers && p->data->several)
        p->counts.of = qn__alloc(counted, sizeof *p->counts.of, err);
    return p->answers && (p->output || !p->shown) && (p->counts.of || !p->data->several)
               ? QN_OK
               : QN_MEMORY;
}

/* What shows the text of each token. */
static qn_status open_tokenizer(qn_predictions *p, qn_error *err) {
    const char *tokenizer = p->next->tokenizer;
    return p->shown && tokenizer && *tokenizer
               ? qn_tokenizer_from_json(tokenizer, strlen(tokenizer), &p->tokenizer, err)
               : QN_OK;
}

/* The same for tokens that come next. */
static qn_status reserve_next(qn_predictions *p, qn_error *err) {
    const size_t items = (size_t)p->data->items, positions = p->next->answers;
    qn__next_counts *c = &p->tokens;
    c->item = qn__alloc((size_t)qn__data_texts(p->data), sizeof *c->item, err);
    if (c->item && p->shown)
        c->logprob = qn__alloc(items, positions * sizeof *c->logprob, err);
    if (c->logprob)
        c->token = qn__alloc(items, positions * sizeof *c->token, err);
    if (!c->item || (p->shown && !c->token))
        return QN_MEMORY;
    return open_tokenizer(p, err);
}

/* Allocates the results. */
static qn_status reserve(qn_predictions *p, int keep, qn_error *err) {
    const size_t items = (size_t)p->data->items;
    size_t outputs;
    if (p->next)
        return reserve_next(p, err);
    if (p->several)
        return reserve_several(p, err);
    if (__builtin_mul_overflow(items, (size_t)p->outputs, &outputs))
        outputs = SIZE_MAX;
    p->classes = qn__alloc(items, sizeof *p->classes, err);
    p->scores = p->classes ? qn__alloc(items, sizeof *p->scores, err) : NULL;
    if (p->scores && p->kind->predicted == QN_PREDICTS_CLUSTERS)
        p->squares = qn__alloc(items, sizeof *p->squares, err);
    if (p->squares == NULL && p->kind->predicted == QN_PREDICTS_CLUSTERS)
        return QN_MEMORY;
    if (p->scores && keep)
        p->output = qn__alloc(outputs, sizeof *p->output, err);
    return p->scores && (p->output || !keep) ? QN_OK : QN_MEMORY;
}

/* Whether an evaluation needs all outputs, or the caller. */
static int keeps_outputs(const qn_predictions *p) {
    return p->shown || (!p->real && qn__predicts_labelled(p) &&
                        qn__evaluation_fits(p->data->items, p->outputs));
}

/* The score against the labels of `data`, of which the predictions are. */
static void count(qn_predictions *p, const qn_data *data) {
    p->score = qn__score_of(&(qn__tally){0});
    for (uint64_t i = 0; i < qn__data_texts(data); ++i)
        p->predicted += (uint64_t)qn__has_prediction(p, i);
    if (p->real && qn__predicts_labelled(p)) {
        const qn__target_errors errors =
            qn__targets_compare(data->targets, p->scores, NULL, data->items);
        p->score.items = p->predicted;
        qn__score_errors(&p->score, &errors);
    }
    if (p->counts.of) {
        p->score.items = p->counts.targets;
        p->score.correct = p->counts.right;
    }
    if (p->next) {
        p->score.items = p->tokens.targets;
        p->score.correct = p->tokens.right;
    }
    if (p->real || !qn__predicts_labelled(p))
        return;
    p->score.items = p->predicted;
    for (uint64_t i = 0; i < data->items; ++i)
        p->score.correct += qn__has_prediction(p, i) && p->classes[i] == data->labels[i];
}

/* What is known before the prediction. */
static void describe(const qn_model *model, const qn_data *data, int all_outputs,
                     qn_predictions *p) {
    p->model = model;
    p->data = data;
    p->range = (qn__part_range){.row_end = data->items, .text_end = qn__data_texts(data)};
    p->kind = model->kind;
    p->table = model->table;
    p->outputs = model->outputs;
    p->real = model->classes == 0;
    p->classes_known = model->classes;
    p->probabilities = model->probabilities;
    p->several = model->answers && !model->next ? model : NULL;
    p->next = model->next ? model : NULL;
    /* Probabilities of labels are the predictions, and so is the one output for real labels. */
    p->shown = p->next      ? all_outputs
               : p->several ? !qn__predicts_mask(p)
                            : !qn__predicts_one(p) || (all_outputs && !p->real);
}

static qn_status make(const qn_model *model, const qn_data *data, const qn_compute *compute,
                      int all_outputs, int flips, qn_predictions **out, qn_error *err) {
    qn__model_results results = {0};
    qn_predictions *p = qn__alloc(1, sizeof *p, err);
    qn_status status = QN_MEMORY;
    if (p) {
        describe(model, data, all_outputs, p);
        p->cluster = compute->cluster;
        p->written = qn__alloc(1, sizeof *p->written, err);
        status = p->written ? reserve(p, keeps_outputs(p), err) : QN_MEMORY;
        results = (qn__model_results){.classes = p->classes,
                                      .scores = p->scores,
                                      .outputs = p->output,
                                      .inertia = &p->inertia,
                                      .squares = p->squares,
                                      .answers = p->answers,
                                      .counts = p->counts.of ? &p->counts : NULL,
                                      .tokens = p->next ? &p->tokens : NULL,
                                      .flips = flips};
    }
    if (status == QN_OK && data->items > 0)
        status = encode(model, data, compute, &p->made, err);
    status = check_flips(model, flips, status, err);
    const qn_data *use = p && p->made ? p->made : data;
    if (data->items > 0) /* a rank may have none */
        status = qn__model_apply_to(model, use, compute, &results, status, err);
    if (p && status == QN_OK)
        count(p, use);
    if (!p || !(p->scores || p->answers || p->tokens.item) || status != QN_OK) {
        qn_predictions_free(p);
        return status;
    }
    *out = p;
    return QN_OK;
}

qn_status qn_predictions_make(const qn_model *model, const qn_data *data, const qn_compute *compute,
                              int all_outputs, qn_predictions **out, qn_error *err) {
    QN__OWN_FLOATS;
    QN__NEED_OUT(out, err);
    QN__NEED(model, err);
    QN__NEED(data, err);
    qn_error unwanted;
    qn_compute own;
    err = err ? err : &unwanted;
    const qn_status status = take(__func__, compute, &own, err);
    return status == QN_OK ? make(model, data, &own, all_outputs, 0, out, err) : status;
}

qn_status qn_predictions_make_flipped(const qn_model *model, const qn_data *data,
                                      const qn_compute *compute, int all_outputs,
                                      qn_predictions **out, qn_error *err) {
    QN__OWN_FLOATS;
    QN__NEED_OUT(out, err);
    QN__NEED(model, err);
    QN__NEED(data, err);
    qn_error unwanted;
    qn_compute own;
    err = err ? err : &unwanted;
    const qn_status status = take(__func__, compute, &own, err);
    return status == QN_OK ? make(model, data, &own, all_outputs, 1, out, err) : status;
}

const char *qn_predictions_run(const qn_predictions *p, int *there) {
    if (there)
        *there = p ? p->written->there : 0;
    return p ? p->written->run : "";
}

int qn_writes_to_database(const char *path) { return path && qn__sink_is_database(path); }

/* The table that there will be. */
static qn_status check_table(const qn_model *model, const qn_data *data, const char *path,
                             int all_outputs, uint32_t top, qn_error *err) {
    qn_predictions p = {0};
    qn__prediction_table table;
    describe(model, data, all_outputs, &p);
    p.top = top < p.outputs ? top : p.outputs;
    qn_status status = p.next ? open_tokenizer(&p, err) : QN_OK;
    if (status == QN_OK)
        status = qn__prediction_table_make(&p, &table, err);
    if (status == QN_OK) {
        status = qn__sink_try(path, &table.table, err);
        qn__prediction_table_release(&table);
    }
    qn_tokenizer_free(p.tokenizer);
    return status;
}

qn_status qn_predictions_check(const qn_model *model, const qn_data *data, const char *path,
                               int all_outputs, uint32_t top, qn_error *err) {
    QN__OWN_FLOATS;
    QN__NEED(model, err);
    QN__NEED(data, err);
    QN__NEED(path, err);
    uint32_t rows = 0;
    qn_model_answers(model, &rows, NULL);
    if (rows > 0 && !model->tokens)
        return qn__predicted_masks_check(data, path, err);
    return check_table(model, data, path, all_outputs, top, err);
}

uint64_t qn_predictions_items(const qn_predictions *p) { return p ? p->predicted : 0; }

uint64_t qn_predictions_correct(const qn_predictions *p) { return p ? p->score.correct : 0; }

qn_status qn_predictions_score(const qn_predictions *p, qn_score *score, qn_error *err) {
    QN__OWN_FLOATS;
    QN__NEED_AS(p, "predictions", err);
    QN__NEED(score, err);
    *score = p->score;
    return QN_OK;
}

static qn_status check_evaluation(const qn_predictions *p, const qn_data *data, qn_error *err) {
    if (!qn__predicts_one(p)) {
        qn__fail(err, QN_UNSUPPORTED, "there is nothing to evaluate: %s predicts no labels",
                 p->kind->title);
        return qn__remedy(err, QN_UNSUPPORTED, "write its outputs with quern predict");
    }
    if (p->kind->predicted == QN_PREDICTS_CLUSTERS)
        return QN_OK;
    if (p->next)
        return p->tokens.targets > 0 ? QN_OK : qn__fail(err, QN_INPUT, "no item has a next token");
    if (qn__predicts_tags(p) && (data->labels || data->targets)) {
        qn__fail(err, QN_INPUT, "the data has one label for each item, and the model tags tokens");
        return qn__remedy(
            err, QN_INPUT,
            "give each token a tag, with spaces between or as a list; at least one of "
            "them is not -100, which does not count");
    }
    if (p->several && (data->labels || data->targets)) {
        qn__fail(err, QN_USAGE, "the data has one label for each item, and the model has several");
        return qn__remedy(err, QN_USAGE,
                          "name all their columns with `data.label_column`, each in quotes: "
                          "'\"x\",\"y\"'; an array needs a column for each");
    }
    if (p->several ? !p->counts.of : p->real ? !data->targets : !data->labels) {
        qn__fail(err, QN_USAGE, "qn_predictions_evaluate: the data has no labels");
        return qn__remedy(err, QN_USAGE, "evaluate predictions of labelled data");
    }
    if (p->several)
        return p->predicted > 0 ? QN_OK : qn__fail(err, QN_INPUT, "no item has a prediction");
    if (!p->real && !(p->joined ? p->joined->output : p->output)) {
        qn__fail(err, QN_USAGE, "qn_predictions_evaluate: the outputs were not kept");
        return qn__remedy(err, QN_USAGE, "call qn_predictions_make with `all_outputs` 1");
    }
    if (!p->real && p->classes_known < 2)
        return qn__fail(err, QN_USAGE, "qn_predictions_evaluate: the model knows one class only");
    return p->predicted > 0 ? QN_OK : qn__fail(err, QN_INPUT, "no item has a prediction");
}

static qn_status evaluate_several(const qn_predictions *p, const qn_data *data, qn_evaluation **out,
                                  qn_error *err) {
    const qn__answer_naming names = qn__names_of(p->table);
    qn__program program;
    qn__model_program(p->several, &program);
    return qn__evaluation_of_answers(&p->counts, data, &program, &names, out, err);
}

static qn_status evaluate_next(const qn_predictions *p, const qn_data *data, qn_evaluation **out,
                               qn_error *err) {
    uint64_t bytes = p->joined ? p->joined->bytes : 0;
    int known;
    const qn_status status = p->joined ? QN_OK : qn__next_bytes(data, p->next, &bytes, &known, err);
    return status == QN_OK ? qn__evaluation_of_next(&p->tokens, bytes, out, err) : status;
}

qn_status qn_predictions_evaluate(const qn_predictions *p, qn_evaluation **out, qn_error *err) {
    QN__OWN_FLOATS;
    QN__NEED_OUT(out, err);
    QN__NEED_AS(p, "predictions", err);
    const qn_data *data = p->made ? p->made : p->data;
    const qn_status status = check_evaluation(p, data, err);
    if (status != QN_OK)
        return status;
    if (p->kind->predicted == QN_PREDICTS_CLUSTERS)
        return qn__evaluation_of_clusters(p->predicted, p->classes_known, p->inertia, out, err);
    if (p->several)
        return evaluate_several(p, data, out, err);
    if (p->next)
        return evaluate_next(p, data, out, err);
    const qn__answer_naming names = qn__names_of(p->table);
    const qn__joined_items own = {data->items,   data->labels, p->output,
                                  data->targets, p->scores,    0};
    const qn__joined_items *of = p->joined ? p->joined : &own;
    const qn_evaluation_input in = {.size = sizeof in,
                                    .items = of->items,
                                    .classes = p->real ? 0 : p->classes_known,
                                    .outputs = p->outputs,
                                    .probabilities = p->probabilities,
                                    .labels = of->labels,
                                    .output = of->output,
                                    .targets = of->targets,
                                    .predictions = of->predictions,
                                    .names = names.name,
                                    .named = names.named};
    return qn_evaluation_make(&in, out, err);
}

void qn_predictions_free(qn_predictions *p) {
    if (!p)
        return;
    qn__free(p->classes);
    qn__free(p->scores);
    qn__free(p->output);
    qn__free(p->squares);
    qn__joined_free(p->joined);
    qn__free(p->answers);
    qn__free(p->counts.of);
    qn__free(p->tokens.item);
    qn__free(p->tokens.logprob);
    qn__free(p->tokens.token);
    qn__free(p->written);
    qn_tokenizer_free(p->tokenizer);
    qn_data_close(p->made);
    qn__free(p);
}

qn_status qn_predict_csv(const qn_model *model, const qn_data *data, const qn_compute *compute,
                         const char *path, int all_outputs, uint64_t *correct, qn_error *err) {
    QN__OWN_FLOATS;
    qn_predictions *p = NULL;
    if (correct)
        *correct = 0;
    QN__NEED(model, err);
    QN__NEED(data, err);
    QN__NEED(path, err);
    qn_status status = qn_predictions_make(model, data, compute, all_outputs, &p, err);
    if (p && correct)
        *correct = p->score.correct;
    if (p && qn_cluster_is_writer(compute ? compute->cluster : NULL))
        status = qn_predictions_write(p, path, err);
    qn_predictions_free(p);
    return status;
}
