/* The public fit: any kind of model that needs no training. */
#include <quern/fit.h>

#include "base/argument.h"
#include "base/sized.h"
#include "base/system/float_state.h"
#include "data/prepare/encode.h"
#include "data/table/rules.h"
#include "predict/model_kinds.h"
#include <stdio.h>
#include <string.h>

/* ------------------------------------------------------------------------------------------ kinds
 */

/* The kind `index` of those that can be fitted; NULL: there are fewer. */
static const qn__model_kind *kind_at(uint32_t index) {
    const qn__model_kind *kind;
    uint32_t found = 0;
    for (uint32_t i = 0; (kind = qn__model_kind_at(i)); ++i)
        if (kind->fit && found++ == index)
            return kind;
    return NULL;
}

uint32_t qn_fit_kind_count(void) {
    QN__OWN_FLOATS;

    uint32_t count = 0;
    while (kind_at(count))
        ++count;
    return count;
}

static uint32_t parameters_of(const qn__model_kind *kind) {
    uint32_t count = 0;
    while (kind->parameter[count].name)
        ++count;
    return count;
}

qn_status qn_fit_kind_get(uint32_t index, qn_fit_kind *out, qn_error *err) {
    QN__OWN_FLOATS;

    QN__NEED(out, err);
    const qn__model_kind *kind = kind_at(index);
    const qn_status status = qn__sized_check(QN__SIZED("out", qn_fit_kind), out, err);
    if (status != QN_OK)
        return status;
    if (!kind)
        return qn__fail(err, QN_USAGE, "there is no kind %u of models to fit", index);
    const qn_fit_kind own = {.size = sizeof own,
                             .name = kind->name,
                             .help = kind->help,
                             .labelled = kind->predicted == QN_PREDICTS_LABELS,
                             .parameters = parameters_of(kind)};
    qn__sized_give(QN__SIZED("out", qn_fit_kind), &own, out, qn__sized_of(out));
    return QN_OK;
}

qn_status qn_fit_parameter_get(uint32_t index, uint32_t k, qn_fit_parameter *out, qn_error *err) {
    QN__OWN_FLOATS;

    QN__NEED(out, err);
    const qn__model_kind *kind = kind_at(index);
    const qn_status status = qn__sized_check(QN__SIZED("out", qn_fit_parameter), out, err);
    if (status != QN_OK)
        return status;
    if (!kind || k >= parameters_of(kind))
        return qn__fail(err, QN_USAGE, "there is no parameter %u of kind %u", k, index);
    const qn__fit_parameter *p = &kind->parameter[k];
    const qn_fit_parameter own = {
        .size = sizeof own, .name = p->name, .usual = p->usual, .help = p->help};
    qn__sized_give(QN__SIZED("out", qn_fit_parameter), &own, out, qn__sized_of(out));
    return QN_OK;
}

static qn_status find_kind(const char *name, const qn__model_kind **out, qn_error *err) {
    char known[200] = "";
    for (uint32_t i = 0; (*out = kind_at(i)); ++i) {
        if (name && strcmp((*out)->name, name) == 0)
            return QN_OK;
        snprintf(known + strlen(known), sizeof known - strlen(known), "%s%s", i > 0 ? ", " : "",
                 (*out)->name);
    }
    qn__fail(err, QN_USAGE, "unknown kind of model \"%.40s\"", name ? name : "");
    return qn__remedy(err, QN_USAGE, "name one of these: %s", known);
}

/* -------------------------------------------------------------------------------------------- fit
 */

/* Ranks that would fit different models, of which one might be refused, fail together. */
static qn_status agree(qn_cluster *cluster, const qn__model_kind *kind, const char *parameters,
                       qn_error *err) {
    const qn_agreement items[] = {
        {sizeof *items, "the kind of the model", kind->name,
         "start all ranks with the same options"},
        {sizeof *items, "its parameters", parameters, "start all ranks with the same options"}};
    return cluster ? qn_cluster_agree(cluster, NULL, items, 2, err) : QN_OK;
}

/* What a kind takes of a table (docs/exactness.md 20.7): float32 values, and labels only where it
 * predicts them. Both are the caller's. */
static qn_data taken_of(const qn__model_kind *kind, const qn_data *data) {
    const int labelled = kind->predicted == QN_PREDICTS_LABELS;
    qn_data taken = *data;
    if (!data->wide && (labelled || (!data->labels && !data->targets)))
        return taken;
    taken.wide = NULL;
    taken.late = NULL;
    if (!labelled) {
        taken.labels = NULL;
        taken.targets = NULL;
        taken.classes = 0;
    }
    qn__data_digest_now(&taken, taken.digest);
    return taken;
}

static qn_status fit(const qn__model_kind *kind, const qn_data *data, const char *parameters,
                     const qn_compute *compute, qn_model **out, qn_fit_report *report,
                     qn_error *err) {
    qn_compute own = {.size = sizeof own};
    const qn__sized what = {"qn_fit", "options->compute", "qn_compute", sizeof own};
    qn_status status = compute ? qn__sized_take(&what, compute, &own, err) : QN_OK;
    parameters = parameters ? parameters : "";
    if (status == QN_OK)
        status = agree(own.cluster, kind, parameters, err);
    if (status == QN_OK)
        status = kind->fit(kind, data, parameters, &own, out, report, err);
    return status;
}

qn_status qn_fit(const qn_data *data, const qn_fit_options *options, qn_model **out,
                 qn_fit_report *report, qn_error *err) {
    QN__OWN_FLOATS;
    QN__NEED_OUT(out, err);
    QN__NEED(data, err);
    QN__NEED(options, err);
    qn_fit_options o = {.size = sizeof o};
    qn_fit_report own = {.size = sizeof own};
    const qn__model_kind *kind;
    qn_error unwanted;
    err = err ? err : &unwanted;
    qn_status status = qn__sized_take(QN__SIZED("options", qn_fit_options), options, &o, err);
    if (status == QN_OK && report)
        status = qn__sized_check(QN__SIZED("report", qn_fit_report), report, err);
    if (status == QN_OK)
        status = find_kind(o.kind, &kind, err);
    if (status == QN_OK) {
        const qn_data taken = taken_of(kind, data);
        status = fit(kind, &taken, o.parameters, o.compute, out, &own, err);
    }
    if (status == QN_OK && report)
        qn__sized_give(QN__SIZED("report", qn_fit_report), &own, report, qn__sized_of(report));
    return status;
}

static qn_status check_digest(const qn_model *model, const qn_data *data, qn_error *err) {
    if (strcmp(model->data, qn_data_digest(data)) == 0)
        return QN_OK;
    qn__fail(err, QN_MISMATCH, "this is not the data that the model was fitted to");
    qn__at(err, "%.64s in the recipe, %.64s of the data", model->data, qn_data_digest(data));
    return qn__remedy(err, QN_MISMATCH,
                      "give the data of the fit, with the same options of reading");
}

qn_status qn_fit_again(const qn_model *model, const qn_data *data, const qn_compute *compute,
                       qn_model **out, qn_error *err) {
    QN__OWN_FLOATS;
    QN__NEED_OUT(out, err);
    QN__NEED(model, err);
    QN__NEED(data, err);
    qn_fit_report report = {.size = sizeof report};
    qn_data *made = NULL;
    qn_error unwanted;
    err = err ? err : &unwanted;
    if (!model->kind->fit) {
        qn__fail(err, QN_UNSUPPORTED, "%s is trained, not fitted", model->kind->title);
        return qn__remedy(err, QN_UNSUPPORTED, "train it again: qn_train_options_from_model");
    }
    const qn__fitting to = qn__model_fitting(model, "the data");
    const qn_data taken = taken_of(model->kind, data);
    qn_status status = qn__encode(&to, &taken, QN__UNKNOWN_REFUSED, &made, err);
    /* Names and rules are the recipe's: the same values may come from a file that has others. */
    qn_data found = made ? *made : taken;
    found.schema = (qn__schema *)(uintptr_t)model->table;
    if (status == QN_OK)
        status = qn__rules_parse(model->rules ? model->rules : "", &found.rules, err);
    if (status == QN_OK)
        status = check_digest(model, &found, err);
    if (status == QN_OK)
        status = fit(model->kind, &found, model->parameter_text, compute, out, &report, err);
    qn_data_close(made);
    return status;
}
