/* The public evaluation: checks the caller's arrays, and turns sums into the numbers of the API. */
#include "predict/evaluate.h"

#include "base/argument.h"
#include "base/memory.h"
#include "base/sized.h"
#include "base/system/float_state.h"
#include "data/tokens/token_lengths.h"
#include "job/evaluation.h"
#include "job/targets.h"
#include "kernels/runtime/elementary_functions.h"
#include "num/ratio.h"
#include <inttypes.h>
#include <math.h>

/* What a qn_evaluation points to, with the evaluation itself in front. */
typedef struct evaluation {
    qn_evaluation open;
    qn_class_evaluation *of;
    const qn_class_evaluation **of_at;
    qn_calibration_bin bin[QN__CALIBRATION_BINS];
    const qn_calibration_bin *bin_at[QN__CALIBRATION_BINS];
    char *json;
} evaluation;

int qn__evaluation_fits(uint64_t items, uint32_t outputs) {
    return outputs > 0 && items <= QN__EVALUATED_OUTPUTS / outputs && items <= UINT32_MAX;
}

/* ------------------------------------------------------------------------------------- checks */

static qn_status refuse_member(qn_error *err, const char *what) {
    qn__fail(err, QN_USAGE, "qn_evaluation_make: %s", what);
    return qn__remedy(err, QN_USAGE, "fill the input as quern/evaluate.h describes it");
}

static qn_status check_members(const qn_evaluation_input *in, qn_error *err) {
    if (in->items == 0 || in->items > UINT32_MAX)
        return refuse_member(err, "`items` is from 1 to 2^32 - 1");
    if (in->classes == 0 && (!in->targets || !in->predictions))
        return refuse_member(err, "real labels need `targets` and `predictions`");
    if (in->classes == 0)
        return QN_OK;
    if (in->classes == 1)
        return refuse_member(err, "`classes` is 0, for real labels, or at least 2");
    if (!in->labels || !in->output)
        return refuse_member(err, "classes need `labels` and `output`");
    if (in->outputs != in->classes && (in->outputs != 1 || in->classes != 2))
        return refuse_member(err, "`outputs` is `classes`, or 1 for two classes");
    return in->named > 0 && !in->names ? refuse_member(err, "`named` classes need `names`") : QN_OK;
}

static qn_status refuse_item(qn_error *err, const char *what, uint64_t item) {
    qn__fail(err, QN_INPUT, "qn_evaluation_make: %s", what);
    qn__at(err, "item %" PRIu64, item);
    return QN_INPUT;
}

/* Of an item with a prediction every output must be a number. */
static qn_status check_outputs(const qn_evaluation_input *in, qn_error *err) {
    for (uint64_t i = 0; i < in->items; i++) {
        const float *y = in->output + i * in->outputs;
        for (uint32_t j = 0; j < in->outputs && !isnan(y[0]); j++)
            if (!isfinite(y[j]) || (in->probabilities && !(y[j] >= 0 && y[j] <= 1)))
                return refuse_item(err,
                                   in->probabilities ? "an output is not a probability"
                                                     : "an output is not a number",
                                   i);
    }
    return QN_OK;
}

static qn_status check_targets(const qn_evaluation_input *in, qn_error *err) {
    for (uint64_t i = 0; i < in->items; i++)
        if (!isfinite(in->targets[i]) || isinf(in->predictions[i]))
            return refuse_item(err, "a target or a prediction is not a number", i);
    return QN_OK;
}

static qn_status check_weights(const qn_evaluation_input *in, qn_error *err) {
    int any = !in->weights;
    for (uint64_t i = 0; in->weights && i < in->items; i++) {
        if (!(in->weights[i] >= 0) || isinf(in->weights[i]))
            return refuse_item(err, "a weight is not a number from 0", i);
        any |= in->weights[i] > 0;
    }
    return any ? QN_OK : refuse_member(err, "all weights are 0");
}

static qn_status check(const qn_evaluation_input *in, qn_error *err) {
    qn_status status = check_members(in, err);
    if (status == QN_OK)
        status = in->classes > 0 ? check_outputs(in, err) : check_targets(in, err);
    return status == QN_OK ? check_weights(in, err) : status;
}

/* ------------------------------------------------------------------------------------ numbers */

static double part(uint64_t a, uint64_t b) { return b > 0 ? qn__ratio_of(a, b) : 0.0; }

static void fill_class(qn_class_evaluation *to, const qn__class_tally *t, const char *name) {
    const int known = t->labelled + t->predicted > 0;
    const double none = (double)NAN;
    *to =
        (qn_class_evaluation){.size = sizeof *to,
                              .name = name,
                              .items = t->items,
                              .predicted = t->taken,
                              .correct = t->right,
                              .precision = known ? part(t->correct, t->predicted) : none,
                              .recall = known ? part(t->correct, t->labelled) : none,
                              .f1 = known ? part(2 * t->correct, t->labelled + t->predicted) : none,
                              .auc = t->auc,
                              .iou = none};
}

/* One number of each class. */
static void gather(const evaluation *e, size_t member, double *buffer) {
    for (uint32_t c = 0; c < e->open.classes; c++)
        buffer[c] = *(const double *)(const void *)((const char *)&e->of[c] + member);
}

/* The means over the classes of one number of each, and weighted by their items. */
static void fill_mean(const evaluation *e, const qn__evaluated *sums, size_t member, double *buffer,
                      uint64_t *weight, double *mean, double *weighted) {
    const uint32_t classes = e->open.classes;
    gather(e, member, buffer);
    for (uint32_t c = 0; c < classes; c++)
        weight[c] = sums->of[c].labelled;
    *mean = qn__evaluation_mean(classes, buffer, NULL);
    *weighted = qn__evaluation_mean(classes, buffer, weight);
}

static qn_status fill_means(evaluation *e, const qn__evaluated *sums, qn_error *err) {
    qn_evaluation *o = &e->open;
    double *buffer = qn__alloc(o->classes, sizeof *buffer, err);
    uint64_t *weight = buffer ? qn__alloc(o->classes, sizeof *weight, err) : NULL;
    if (weight) {
        fill_mean(e, sums, offsetof(qn_class_evaluation, precision), buffer, weight, &o->precision,
                  &o->weighted_precision);
        fill_mean(e, sums, offsetof(qn_class_evaluation, recall), buffer, weight, &o->recall,
                  &o->weighted_recall);
        fill_mean(e, sums, offsetof(qn_class_evaluation, f1), buffer, weight, &o->f1,
                  &o->weighted_f1);
    }
    qn__free(buffer);
    qn__free(weight);
    return weight ? QN_OK : QN_MEMORY;
}

static void fill_bins(evaluation *e, const qn__evaluated *sums) {
    e->open.bins = QN__CALIBRATION_BINS;
    e->open.bin = e->bin_at;
    for (uint32_t b = 0; b < QN__CALIBRATION_BINS; b++) {
        const qn__bin_tally *t = &sums->bin[b];
        e->bin_at[b] = &e->bin[b];
        e->bin[b] = (qn_calibration_bin){
            .size = sizeof e->bin[b],
            .low = (double)b / QN__CALIBRATION_BINS,
            .high = (double)(b + 1) / QN__CALIBRATION_BINS,
            .items = t->items,
            .confidence = t->confidence,
            .accuracy = t->count > 0 ? qn__ratio_of(t->correct, t->count) : (double)NAN};
    }
}

static qn_status fill_classes(evaluation *e, const qn_evaluation_input *in,
                              const qn__evaluated *sums, qn_error *err) {
    qn_evaluation *o = &e->open;
    o->items = sums->items;
    o->correct = sums->right;
    o->accuracy = sums->count > 0 ? qn__ratio_of(sums->correct, sums->count) : (double)NAN;
    o->top5_accuracy = sums->count > 0 && in->outputs > QN__NEAR
                           ? qn__ratio_of(sums->near, sums->count)
                           : (double)NAN;
    o->auc = sums->auc;
    o->log_loss = sums->log_loss;
    o->calibration_error = sums->calibration_error;
    o->by_class = e->of_at;
    for (uint32_t c = 0; c < o->classes; c++) {
        e->of_at[c] = &e->of[c];
        fill_class(&e->of[c], &sums->of[c], c < in->named ? in->names[c] : NULL);
    }
    if (in->probabilities)
        fill_bins(e, sums);
    return fill_means(e, sums, err);
}

static qn_status evaluate_classes(evaluation *e, const qn_evaluation_input *in,
                                  const uint64_t *counts, qn_error *err) {
    const qn__judged judged = {.items = in->items,
                               .classes = in->classes,
                               .outputs = in->outputs,
                               .probabilities = in->probabilities,
                               .labels = in->labels,
                               .output = in->output,
                               .counts = counts};
    qn__evaluated sums = {.of = qn__alloc(in->classes, sizeof *sums.of, err)};
    e->of = sums.of ? qn__alloc(in->classes, sizeof *e->of, err) : NULL;
    e->of_at = e->of ? qn__alloc(in->classes, sizeof *e->of_at, err) : NULL;
    qn_status status = e->of_at ? QN_OK : QN_MEMORY;
    if (status == QN_OK) {
        qn__evaluation_classes(&judged, &sums);
        status = qn__evaluation_auc(&judged, &sums, err);
    }
    if (status == QN_OK)
        status = fill_classes(e, in, &sums, err);
    qn__free(sums.of);
    return status;
}

static void evaluate_targets(evaluation *e, const qn_evaluation_input *in, const uint64_t *counts) {
    const qn__target_errors errors =
        qn__targets_compare(in->targets, in->predictions, counts, in->items);
    for (uint64_t i = 0; i < in->items; i++)
        e->open.items += isnan(in->predictions[i]) ? 0 : 1;
    e->open.mae = errors.mae;
    e->open.rmse = errors.rmse;
    e->open.r2 = errors.r2;
}

static qn_evaluation nothing(const qn_evaluation_input *in) {
    const double none = (double)NAN;
    return (qn_evaluation){.size = sizeof(qn_evaluation),
                           .real = in->classes == 0,
                           .weighted = in->weights != NULL,
                           .accuracy = none,
                           .precision = none,
                           .recall = none,
                           .f1 = none,
                           .weighted_precision = none,
                           .weighted_recall = none,
                           .weighted_f1 = none,
                           .auc = none,
                           .log_loss = none,
                           .calibration_error = none,
                           .mae = none,
                           .rmse = none,
                           .r2 = none,
                           .inertia = none,
                           .top5_accuracy = none,
                           .mean_iou = none,
                           .exact_match = none,
                           .micro_precision = none,
                           .micro_recall = none,
                           .micro_f1 = none,
                           .loss = none,
                           .perplexity = none,
                           .bits_per_byte = none,
                           .classes = in->classes};
}

/* Takes what is complete, or frees it. */
static qn_status finish(evaluation *e, qn_status status, qn_evaluation **out, qn_error *err) {
    if (status == QN_OK) {
        e->open.json = e->json = qn__evaluation_json(&e->open, err);
        status = e->json ? QN_OK : QN_MEMORY;
    }
    if (status == QN_OK)
        *out = &e->open;
    else
        qn_evaluation_free(&e->open);
    return status;
}

qn_status qn__evaluation_of_clusters(uint64_t items, uint32_t clusters, double inertia,
                                     qn_evaluation **out, qn_error *err) {
    evaluation *e = qn__alloc(1, sizeof *e, err);
    if (!e)
        return QN_MEMORY;
    e->open = nothing(&(qn_evaluation_input){.size = sizeof(qn_evaluation_input), .classes = 1});
    e->open.classes = 0;
    e->open.items = items;
    e->open.clusters = clusters;
    e->open.inertia = inertia;
    return finish(e, QN_OK, out, err);
}

/* 24.77: one class or label of several answers. */
static void fill_answer(qn_class_evaluation *to, const qn__answer_class *of, int mask,
                        const char *name) {
    const qn__class_tally same = {.labelled = of->labelled,
                                  .predicted = of->answered,
                                  .correct = of->right,
                                  .items = of->labelled,
                                  .taken = of->answered,
                                  .right = of->right,
                                  .auc = (double)NAN};
    const uint64_t either = of->labelled + of->answered - of->right;
    fill_class(to, &same, name);
    if (mask && either > 0)
        to->iou = qn__ratio_of(of->right, either);
}

static double mean_of(const evaluation *e, size_t member, double *buffer) {
    gather(e, member, buffer);
    return qn__evaluation_mean(e->open.classes, buffer, NULL);
}

/* `buffer` has a number for each class. */
static void fill_answers(evaluation *e, const qn__answer_counts *counts, double *buffer) {
    qn_evaluation *o = &e->open;
    qn__answer_class all = {.labelled = 0};
    for (uint32_t c = 0; c < o->classes; c++) {
        all.labelled += counts->of[c].labelled;
        all.answered += counts->of[c].answered;
        all.right += counts->of[c].right;
    }
    o->items = counts->items;
    o->correct = counts->right;
    o->targets = counts->targets;
    if (counts->targets > 0)
        o->accuracy = qn__ratio_of(counts->right, counts->targets);
    o->precision = mean_of(e, offsetof(qn_class_evaluation, precision), buffer);
    o->recall = mean_of(e, offsetof(qn_class_evaluation, recall), buffer);
    o->f1 = mean_of(e, offsetof(qn_class_evaluation, f1), buffer);
    o->mean_iou = mean_of(e, offsetof(qn_class_evaluation, iou), buffer);
    if (o->mask || counts->items == 0)
        return;
    o->exact_match = qn__ratio_of(counts->exact, counts->items);
    o->micro_precision = part(all.right, all.answered);
    o->micro_recall = part(all.right, all.labelled);
    o->micro_f1 = part(2 * all.right, all.labelled + all.answered);
}

qn_status qn__evaluation_of_answers(const qn__answer_counts *counts, const qn_data *data,
                                    const qn__program *program, const qn__answer_naming *names,
                                    qn_evaluation **out, qn_error *err) {
    const uint32_t classes = qn__answer_classes(data, program);
    evaluation *e = qn__alloc(1, sizeof *e, err);
    if (!e)
        return QN_MEMORY;
    e->open = nothing(&(qn_evaluation_input){.size = sizeof(qn_evaluation_input), .classes = 1});
    e->open.classes = classes;
    e->open.answers = program->answers;
    e->open.mask = data->several->height > 0;
    e->open.tags = e->open.mask && qn__element_is_token(data->type);
    e->of = qn__alloc(classes, sizeof *e->of, err);
    e->of_at = e->of ? qn__alloc(classes, sizeof *e->of_at, err) : NULL;
    double *buffer = e->of_at ? qn__alloc(classes, sizeof *buffer, err) : NULL;
    for (uint32_t c = 0; buffer && c < classes; c++) {
        e->of_at[c] = &e->of[c];
        fill_answer(&e->of[c], &counts->of[c], e->open.mask,
                    c < names->named ? names->name[c] : NULL);
    }
    e->open.by_class = e->of_at;
    if (buffer)
        fill_answers(e, counts, buffer);
    const qn_status status = buffer ? QN_OK : QN_MEMORY;
    qn__free(buffer);
    return finish(e, status, out, err);
}

qn_status qn__next_bytes(const qn_data *data, const qn_model *model, uint64_t *bytes, int *known,
                         qn_error *err) {
    qn__token_lengths lengths;
    *bytes = 0;
    *known = 0;
    if (!model->tokenizer || !*model->tokenizer)
        return QN_OK;
    const qn_status status = qn__token_lengths_of(model->tokenizer, &lengths, err);
    int all = status == QN_OK && lengths.bytes != NULL;
    for (uint64_t i = 0; all && i < data->items; ++i)
        for (uint32_t k = qn__data_first_target(data, i); all && k < data->features; ++k) {
            const double token = qn__element_number(data->type, qn__data_item(data, i), k);
            all = token != lengths.unknown;
            *bytes += token < lengths.count ? lengths.bytes[(uint32_t)token] : 0;
        }
    *bytes = all ? *bytes : 0;
    *known = all;
    qn__token_lengths_release(&lengths);
    return status;
}

qn_status qn__evaluation_of_next(const qn__next_counts *counts, uint64_t bytes, qn_evaluation **out,
                                 qn_error *err) {
    evaluation *e = qn__alloc(1, sizeof *e, err);
    if (!e)
        return QN_MEMORY;
    qn__exact_sum loss = counts->loss;
    e->open = nothing(&(qn_evaluation_input){.size = sizeof(qn_evaluation_input), .classes = 1});
    e->open.classes = 0;
    e->open.next = 1;
    e->open.items = counts->items;
    e->open.targets = counts->targets;
    e->open.correct = counts->right;
    e->open.accuracy = qn__ratio_of(counts->right, counts->targets);
    e->open.loss = qn__ratio_of_sum(&loss, counts->targets);
    e->open.perplexity = qn__f64_exp(e->open.loss);
    e->open.bytes = bytes;
    if (bytes > 0)
        e->open.bits_per_byte = qn__ratio_of_sum(&loss, bytes) / 0x1.62e42fefa39efp-1;
    return finish(e, QN_OK, out, err);
}

qn_status qn_evaluation_make(const qn_evaluation_input *input, qn_evaluation **out, qn_error *err) {
    QN__OWN_FLOATS;
    QN__NEED_OUT(out, err);
    QN__NEED(input, err);
    qn_evaluation_input in = {.size = sizeof in};
    uint64_t *counts = NULL;
    qn_status status = qn__sized_take(QN__SIZED("input", qn_evaluation_input), input, &in, err);
    if (status == QN_OK)
        status = check(&in, err);
    if (status == QN_OK && in.weights)
        status = qn__evaluation_counts(in.weights, in.items, &counts, err);
    if (status != QN_OK)
        return status;
    evaluation *e = qn__alloc(1, sizeof *e, err);
    if (e)
        e->open = nothing(&in);
    if (e && in.classes > 0)
        status = evaluate_classes(e, &in, counts, err);
    else if (e)
        evaluate_targets(e, &in, counts);
    qn__free(counts);
    return e ? finish(e, status, out, err) : QN_MEMORY;
}

void qn_evaluation_free(qn_evaluation *open) {
    evaluation *e = (evaluation *)(void *)open;
    if (!e)
        return;
    qn__free(e->of);
    qn__free(e->of_at);
    qn__free(e->json);
    qn__free(e);
}
