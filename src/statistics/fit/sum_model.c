/* Models by sums: made from data, and read from a file. */
#include "statistics/fit/sum_model.h"

#include "base/memory.h"
#include "data/table/rules.h"
#include "statistics/fit/sum_recipe.h"
#include <quern/predict.h>
#include <string.h>

void qn__sum_release(qn_model *model) {
    qn__sum_model *m = qn__sum_model_of(model);
    qn__free(m->recipe);
    qn__free(m->rules);
    qn__free(m->parameters);
    qn__schema_free(m->schema);
    qn__free(m->number);
    qn__free(m);
}

static qn__sum_model *begin(const qn__model_kind *kind, qn_error *err) {
    qn__sum_model *m = qn__alloc(1, sizeof *m, err);
    if (m)
        m->open.kind = kind;
    return m;
}

void qn__sum_tensor(qn__sum_model *m, const char *name, uint64_t rows, uint64_t columns) {
    qn__tensor *to = &m->tensor[m->open.tensors++];
    *to = (qn__tensor){.name = name, .rows = rows, .columns = columns};
    m->open.parameters += qn__tensor_count(to);
}

static qn_status allocate(qn__sum_model *m, qn_error *err) {
    m->number = qn__alloc(m->open.parameters, sizeof *m->number, err);
    double *at = m->number;
    for (uint32_t t = 0; at && t < m->open.tensors; ++t) {
        m->tensor[t].real = at;
        at += qn__tensor_count(&m->tensor[t]);
    }
    return m->number ? QN_OK : QN_MEMORY;
}

/* What the model tells of itself as any other does. */
static void describe(qn__sum_model *m) {
    m->open.recipe = m->recipe;
    m->open.table = m->schema;
    m->open.rules = *m->rules ? m->rules : NULL;
    m->open.data = m->data;
    m->open.parameter_text = m->parameters;
    m->open.tensor = m->tensor;
}

/* -------------------------------------------------------------------------------------------- fit
 */

/* The table's columns of numbers with their names, and its label where the model predicts it. */
static qn_status take_schema(qn__sum_model *m, const qn_data *data, qn_error *err) {
    const int labelled = m->open.kind->predicted == QN_PREDICTS_LABELS;
    qn__schema *s =
        qn__schema_join(labelled ? data->schema : NULL, data->schema, NULL, data->features, err);
    if (!s)
        return QN_MEMORY;
    for (uint32_t k = 0; k < s->features; ++k)
        s->feature[k].exact = QN__EXACT_NONE;
    if (!labelled)
        s->target = QN__TARGET_NONE;
    if (!qn__schema_is_trivial(s))
        m->schema = s;
    else
        qn__schema_free(s);
    return QN_OK;
}

static qn_status refuse_dates(const qn_data *data, qn_error *err) {
    char name[160];
    uint32_t k = 0;
    while (data->schema && k < data->features && !data->schema->feature[k].dates)
        ++k;
    if (!data->schema || k == data->features)
        return QN_OK;
    qn__fail(err, QN_USAGE, "%s has dates, and this model needs numbers",
             qn__column_name(data->schema, k, name, sizeof name));
    return qn__remedy(err, QN_USAGE, "leave the column out with `data.drop`");
}

static qn_status take_data(qn__sum_model *m, const qn_data *data, qn_error *err) {
    char rules[QN_RULES_TEXT];
    qn_status status = refuse_dates(data, err);
    if (status != QN_OK)
        return status;
    qn__rules_text(data->rules & ~(uint32_t)QN__RULE_EXACT, rules);
    memcpy(m->data, qn_data_digest(data), sizeof m->data);
    m->items = data->items;
    m->open.features = data->features;
    m->rules = qn__copy_text(rules, err);
    return m->rules ? take_schema(m, data, err) : QN_MEMORY;
}

static qn_status refuse_shape(const qn__sum_model *m, qn_error *err) {
    qn__fail(err, QN_USAGE, "the parameters do not fit %llu items of %u features",
             (unsigned long long)m->items, m->open.features);
    return qn__remedy(err, QN_USAGE,
                      "there are at most as many clusters as items, and as many components as "
                      "features");
}

static qn_status find(qn__sum_model *m, const qn_data *data, const qn_compute *compute,
                      qn_fit_report *report, qn_error *err) {
    const qn__sum_kind *kind = qn__sum_kind_of(m);
    if (kind->settle)
        kind->settle(m);
    if (!kind->shape(m))
        return refuse_shape(m, err);
    qn_status status = allocate(m, err);
    if (status == QN_OK)
        status = kind->find(m, data, compute, report, err);
    if (status == QN_OK)
        status = qn__sum_texts(m, err);
    if (status != QN_OK)
        return status;
    describe(m);
    return qn__model_check_numbers(&m->open, QN_NUMERIC, err);
}

qn_status qn__sum_fit(const qn__model_kind *kind, const qn_data *data, const char *parameters,
                      const qn_compute *compute, qn_model **out, qn_fit_report *report,
                      qn_error *err) {
    qn__sum_model *m = begin(kind, err);
    if (!m)
        return QN_MEMORY;
    report->converged = 1;
    qn_status status = qn__sum_take(m, parameters, err);
    if (status != QN_OK)
        qn__at(err, "`fit.parameters`");
    else
        status = take_data(m, data, err);
    if (status == QN_OK)
        status = find(m, data, compute, report, err);
    if (status == QN_OK)
        status = qn__model_seal(&m->open, err);
    if (status == QN_OK)
        *out = &m->open;
    else
        qn__sum_release(&m->open);
    return status;
}

/* ------------------------------------------------------------------------------------------- read
 */

/* The tensors must be those of the recipe, before memory is asked for. */
static qn_status check_count(const qn__sum_model *m, const qn__tensors *file, const char *path,
                             qn_error *err) {
    uint64_t numbers = 0;
    for (size_t i = 0; i < qn__tensors_count(file); ++i)
        numbers += qn__tensors_at(file, i)->count;
    if (qn__tensors_count(file) == m->open.tensors && numbers == m->open.parameters)
        return QN_OK;
    return qn__model_refuse_file(err, path,
                                 "the tensors in the file are not those of the recipe's model",
                                 "the file was changed or damaged: copy or make it again");
}

static qn_status read_numbers(qn__sum_model *m, const qn__tensors *file, const char *path,
                              qn_error *err) {
    if (!qn__sum_kind_of(m)->shape(m))
        return qn__model_refuse_file(err, path, "the recipe's parameters do not fit its columns",
                                     "the file was changed or damaged: copy or make it again");
    qn_status status = check_count(m, file, path, err);
    if (status == QN_OK)
        status = allocate(m, err);
    describe(m);
    if (status == QN_OK)
        status = qn__model_copy_tensors(file, path, &m->open, err);
    if (status != QN_OK)
        return status;
    status = qn__model_check_numbers(&m->open, QN_FORMAT, err);
    if (status != QN_OK)
        qn__model_name_file(err, path);
    return status;
}

qn_status qn__sum_read(const qn__model_kind *kind, const qn__tensors *file, const char *path,
                       qn_model **out, qn_error *err) {
    const char *json = qn__tensors_note(file, "recipe");
    qn__sum_model *m = begin(kind, err);
    *out = NULL;
    if (!m)
        return QN_MEMORY;
    qn_status status = QN_OK;
    if (!json)
        status = qn__model_refuse_file(err, path, "the model has no recipe",
                                       "copy or make the file again");
    else if ((status = qn__sum_parse(m, json, err)) == QN_FORMAT)
        qn__model_name_file(err, path);
    if (status == QN_OK)
        status = read_numbers(m, file, path, err);
    if (status == QN_OK)
        *out = &m->open;
    else
        qn__sum_release(&m->open);
    return status;
}
