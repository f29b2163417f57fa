/* A network applied to the items of a table: its inputs, forward, and what stands for items that
 * lack a value. */
#include "predict/model_kinds.h"

#include "cluster/cluster.h"
#include "device/notes.h"
#include "job/agree.h"
#include "job/apply.h"
#include "job/prepare.h"
#include "job/targets.h"
#include "model/formats/model.h"
#include "model/recipe/several_targets.h"
#include "predict/kept_team.h"
#include "predict/fitting.h"
#include "predict/flips.h"
#include "predict/item_batches.h"
#include "predict/layer_values.h"
#include <math.h>

static qn_status check_fit(const qn_model *model, const qn_data *data, qn_error *err) {
    const qn__recipe *recipe = qn__model_recipe_of(model);
    const qn_status status = qn__shape_check(recipe, data, "the data", err);
    if (status != QN_OK)
        return status;
    if (qn__model_check_features(model, data, err) != QN_OK)
        return QN_MISMATCH;
    if (data->type != QN_U8 && qn__recipe_needs_bytes(recipe)) {
        qn__fail(err, QN_MISMATCH, "the model was trained on bytes, the data holds other numbers");
        return qn__remedy(err, QN_MISMATCH, "give whole numbers from 0 to 255");
    }
    return qn__recipe_check_tokens(recipe, data, "the data", err);
}

/* A model that tells which token comes next has no answer to an item as a whole, and others have no
 * tokens. */
static qn_status check_task(const qn_model *model, const qn__model_results *results,
                            qn_error *err) {
    if (results->cut || model->next == (results->tokens != NULL))
        return QN_OK;
    qn__fail(err, QN_UNSUPPORTED,
             model->next ? "the model tells which token comes next, and has no answer to an item"
                         : "the model does not tell which token comes next");
    return qn__remedy(err, QN_UNSUPPORTED,
                      model->next ? "take log-probabilities and tokens from qn_predict_next"
                                  : "take what it predicts from qn_predict");
}

/* Which results a call requests, for ranks to compare. */
static const char *wanted(const qn__model_results *results) {
    return results->cut       ? "outputs of a layer"
           : results->tokens  ? "next tokens"
           : results->counts  ? "answers and what is counted of them"
           : results->answers ? "answers"
           : results->flips   ? "classes, scores and outputs of flips"
           : results->outputs ? "classes, scores and outputs"
                              : "classes and scores";
}

/* The inputs of the data. */
static qn_status make_inputs(const qn_model *model, const qn_data *data, qn_note_fn tell,
                             qn__prepared *made, qn_error *err) {
    const qn__encoding how = qn__model_encoding(model);
    const qn__encoding_notes notes = {
        .what = "the data", .dropped = "have no prediction", .tell = tell};
    return qn__prepare(&how, data, &notes, made, err);
}

/* What has to be right before anybody computes; ranks compare what they hold. `status` is how it
 * went so far. */
static qn_status check(const qn_model *model, const qn_data *data, const qn_compute *compute,
                       const qn__model_results *results, qn__prepared *made, qn_status status,
                       qn_error *err) {
    /* What there is to tell is the same on all ranks. */
    const qn_note_fn tell = qn_cluster_is_writer(compute->cluster) ? qn__device_tell_note : NULL;
    if (status == QN_OK)
        status = check_task(model, results, err);
    if (status == QN_OK)
        status = check_fit(model, data, err);
    if (status == QN_OK && results->counts)
        status = qn__recipe_check_targets(qn__model_recipe_of(model), data, "the data", err);
    if (status == QN_OK && results->flips)
        status = qn__flips_check(qn__model_recipe_of(model), data, err);
    if (status == QN_OK)
        status = qn_compute_check(compute, err);
    if (status == QN_OK)
        status = make_inputs(model, data, tell, made, err);
    return qn__agree_to_predict(compute->cluster, qn_model_digest(model), data, wanted(results),
                                status, err);
}

/* Outputs for real labels become predictions; there is one for each item. */
static qn_status scale_back(const qn_model *model, uint64_t items, const qn__model_results *results,
                            qn_error *err) {
    float mean, deviation;
    qn_status status = QN_OK;
    qn__model_target_scale(model, &mean, &deviation);
    if (results->scores)
        status = qn__targets_predict(results->scores, items, mean, deviation, err);
    if (status == QN_OK && results->outputs)
        status = qn__targets_predict(results->outputs, items, mean, deviation, err);
    return status;
}

void qn__results_spread(const qn_data *complete, uint64_t items, uint32_t outputs, uint32_t answers,
                        const qn__model_results *results) {
    uint64_t left = complete->items;
    for (uint64_t i = items; i-- > 0;) {
        const int has = left > 0 && complete->index[left - 1] == i;
        left -= (uint64_t)has;
        if (results->classes)
            results->classes[i] = has ? results->classes[left] : -1;
        if (results->scores)
            results->scores[i] = has ? results->scores[left] : NAN;
        for (uint32_t o = outputs; results->outputs && o-- > 0;)
            results->outputs[i * outputs + o] = has ? results->outputs[left * outputs + o] : NAN;
        for (uint32_t a = answers; results->answers && a-- > 0;)
            results->answers[i * answers + a] =
                has ? results->answers[left * answers + a] : QN__NO_TARGET;
    }
}

static qn_status apply(const qn_model *model, const qn_data *data, qn__kept_team *kept,
                       const qn_data *inputs, const qn__model_results *results, qn_error *err) {
    const qn__apply_results places = {.classes = results->classes,
                                      .scores = results->scores,
                                      .outputs = results->outputs,
                                      .answers = results->answers,
                                      .counts = results->counts,
                                      .next = results->tokens};
    const qn__shape shape = qn__flips_shape(qn__model_recipe_of(model), data);
    return results->flips ? qn__flips_apply(kept->team, &kept->program, shape, inputs, results, err)
                          : qn__apply_all(kept->team, &kept->program, inputs, &places, err);
}

/* The same, in units of the labels where these are real. */
static qn_status apply_scaled(const qn_model *model, const qn_data *data, qn__kept_team *kept,
                              const qn_data *inputs, const qn__model_results *results,
                              qn_error *err) {
    const qn_status status = apply(model, data, kept, inputs, results, err);
    return status == QN_OK && kept->program.real ? scale_back(model, inputs->items, results, err)
                                                 : status;
}

static qn_status apply_cut(const qn__layer_cut *cut, const qn_compute *compute,
                           const qn_data *inputs, float *values, qn_error *err) {
    qn__layer_team *team;
    qn_status status = qn__layer_team_open(cut, compute, inputs->items, &team, err);
    if (status == QN_OK)
        status = qn__layer_team_apply(team, inputs, values, err);
    qn__layer_team_close(team);
    return status;
}

static qn_status apply_whole(const qn_model *model, const qn_data *data, const qn_compute *compute,
                             const qn_data *inputs, qn__kept_team **kept,
                             const qn__model_results *results, qn_error *err) {
    const qn_status status =
        qn__kept_team_take(model, compute, inputs->items, qn__device_tell_note, kept, err);
    return status == QN_OK ? apply_scaled(model, data, *kept, inputs, results, err) : status;
}

qn_status qn__network_apply(const qn_model *model, const qn_data *data, const qn_compute *compute,
                            const qn__model_results *results, qn_status status, qn_error *err) {
    qn__kept_team *kept = NULL;
    qn__prepared made = {0};
    status = check(model, data, compute, results, &made, status, err);
    if (status != QN_OK || !made.inputs) {
        qn__prepared_release(&made);
        return status;
    }
    if (results->cut)
        status = apply_cut(results->cut, compute, made.inputs, results->outputs, err);
    else
        status = apply_whole(model, data, compute, made.inputs, &kept, results, err);
    if (status == QN_OK && made.complete)
        qn__results_spread(made.complete, data->items,
                           results->cut ? qn__layer_cut_values(results->cut)
                                        : qn_model_outputs(model),
                           model->answers, results);
    if (status == QN_OK && made.complete && results->tokens)
        qn__next_spread(made.complete, data->items, model->answers, results->tokens);
    /* Where one rank fails, all fail. Not so where a rank loses its devices: the others continue.
     * An item that is wrong is known to all ranks already. */
    if (status == QN_DEVICE && qn__cluster_withdraw(compute->cluster))
        qn__remedy(err, QN_DEVICE, "the other ranks continue without this one");
    else if (status != QN_OK && status != QN_CLUSTER && status != QN_DEVICE &&
             status != QN_NUMERIC && compute->cluster)
        qn__cluster_fail(compute->cluster, err);
    qn__kept_team_give(model, kept, status);
    qn__prepared_release(&made);
    return status;
}

/* ------------------------------------------------------------------- items of several callers */

static qn_status batch_prepare(const qn_model *model, const qn_data *matched, qn__prepared *out,
                               qn_error *err) {
    const qn_status status = check_fit(model, matched, err);
    return status == QN_OK ? make_inputs(model, matched, NULL, out, err) : status;
}

static qn_status batch_open(const qn_model *model, const qn_compute *compute, uint64_t most,
                            void **team, qn_error *err) {
    qn__kept_team *kept;
    const qn_status status =
        qn__kept_team_take(model, compute, most, qn__device_tell_note, &kept, err);
    *team = kept;
    return status;
}

static qn_status batch_run(const qn_model *model, void *team, const qn_data *inputs,
                           const qn__model_results *results, qn_error *err) {
    return apply_scaled(model, inputs, team, inputs, results, err);
}

static void batch_close(void *team) {
    qn__kept_team *kept = team;
    if (kept)
        kept->extra.release(&kept->extra);
}

const qn__batch_kind qn__network_batches = {check_fit, batch_prepare, batch_open, batch_run,
                                            batch_close};
