/* What the public functions tell of a model of any kind, and its file. */
#include "model/formats/model_kind.h"

#include "base/argument.h"
#include "base/binary/little_endian.h"
#include "base/digest/sha256.h"
#include "base/system/float_state.h"
#include "cluster/cluster.h"
#include <math.h>
#include <stdio.h>
#include <string.h>

#define DAMAGED "the file was changed or damaged: copy or make it again"

/* ---------------------------------------------------------------------------------------- reading
 */

qn_status qn__model_refuse_file(qn_error *err, const char *path, const char *what,
                                const char *remedy) {
    qn__fail(err, QN_FORMAT, "%s", what);
    qn__at(err, "%s", path);
    return qn__remedy(err, QN_FORMAT, "%s", remedy);
}

void qn__model_name_file(qn_error *err, const char *path) {
    if (err == NULL)
        return;
    char inner[256];
    snprintf(inner, sizeof inner, "%.255s", err->where);
    qn__at(err, "%.250s%s%s", path, inner[0] != '\0' ? ", " : "", inner);
}

static qn_status check_number(const qn__tensor *tensor, uint64_t i, qn_status status,
                              qn_error *err) {
    const double number = tensor->real ? tensor->real[i] : (double)tensor->data[i];
    if (isfinite(number))
        return QN_OK;
    qn__fail(err, status, "a number of the model is %s", isnan(number) ? "NaN" : "infinite");
    qn__at(err, "tensor \"%s\", element %llu", tensor->name, (unsigned long long)i);
    return qn__remedy(err, status, "%s",
                      status != QN_NUMERIC ? DAMAGED
                      : tensor->real       ? "the values of the data are too large: scale them"
                                     : "train with a lower learning rate (`train.learning_rate`)");
}

qn_status qn__model_check_numbers(const qn_model *model, qn_status status, qn_error *err) {
    qn_status found = QN_OK;
    for (uint32_t t = 0; t < model->tensors; ++t) {
        const uint64_t count = qn__tensor_count(&model->tensor[t]);
        for (uint64_t i = 0; i < count && found == QN_OK; ++i)
            found = check_number(&model->tensor[t], i, status, err);
    }
    return found;
}

qn_status qn__model_copy_tensors(const qn__tensors *file, const char *path, const qn_model *model,
                                 qn_error *err) {
    for (uint32_t t = 0; t < model->tensors; ++t) {
        const qn__tensor *want = &model->tensor[t];
        const qn__tensor_view *have = qn__tensors_find(file, want->name);
        const qn__tensor_type type = want->real ? QN__TENSOR_F64 : QN__TENSOR_F32;
        if (have == NULL || have->rows != want->rows || have->columns != want->columns ||
            have->taps[0] != want->taps[0] || have->taps[1] != want->taps[1] ||
            have->type != type) {
            qn__fail(err, QN_FORMAT,
                     !have                ? "a tensor of the recipe's model is missing"
                     : have->type == type ? "a tensor has another shape than the recipe's model"
                     : want->real         ? "the elements are not of the type F64"
                                          : "the elements are not of the type F32");
            qn__at(err, "%.300s, tensor \"%s\"", path, want->name);
            return qn__remedy(err, QN_FORMAT, DAMAGED);
        }
        /* The list has constant numbers, because writing needs no more; the arrays are the model's
         * own. */
        if (want->real)
            qn__copy_little_reals((double *)(uintptr_t)want->real, have->bytes,
                                  (size_t)have->count);
        else
            qn__copy_little((float *)(uintptr_t)want->data, have->bytes, (size_t)have->count);
    }
    return QN_OK;
}

qn_status qn__model_check_features(const qn_model *model, const qn_data *data, qn_error *err) {
    if (data->features == model->features)
        return QN_OK;
    qn__fail(err, QN_MISMATCH, "the data has %u features, the model takes %u", data->features,
             model->features);
    return qn__remedy(err, QN_MISMATCH,
                      "give data with the columns of the training; `data.label_column` or "
                      "`data.unlabelled` say whether one of them is a label");
}

qn_status qn__model_need_network(const qn_model *model, const char *what, qn_error *err) {
    if (!model || model->layers > 0)
        return QN_OK;
    qn__fail(err, QN_UNSUPPORTED, "%s needs a network, and this is %s", what, model->kind->title);
    return qn__remedy(err, QN_UNSUPPORTED, "give a model that quern train has written");
}

/* ---------------------------------------------------------------------------------------- writing
 */

static qn__tensor_list list_of(const qn_model *m, qn__tensor_note note[3]) {
    note[0] = (qn__tensor_note){"format", m->kind->format};
    note[1] = (qn__tensor_note){"recipe", m->recipe};
    note[2] = (qn__tensor_note){"tokenizer", m->tokenizer};
    return (qn__tensor_list){
        .notes = m->tokenizer ? 3 : 2, .note = note, .tensors = m->tensors, .tensor = m->tensor};
}

qn_status qn__model_seal(qn_model *model, qn_error *err) {
    qn__tensor_note note[3];
    uint8_t digest[32];
    const qn__tensor_list list = list_of(model, note);
    const qn_status status = qn__tensors_digest(&list, digest, err);
    if (status == QN_OK)
        qn__hex(digest, model->digest);
    return status;
}

qn_status qn_model_save(const qn_model *model, const char *path, qn_error *err) {
    QN__OWN_FLOATS;
    QN__NEED(model, err);
    QN__NEED(path, err);
    return qn_model_save_among(model, path, NULL, err);
}

qn_status qn__model_save_asking(const qn_model *model, const char *path, int (*may)(void *user),
                                void *user, qn_error *err) {
    qn__tensor_note note[3];
    qn__tensor_list list = list_of(model, note);
    list.may = may;
    list.user = user;
    return qn__tensors_write(path, &list, NULL, err);
}

qn_status qn_model_save_among(const qn_model *model, const char *path, qn_cluster *cluster,
                              qn_error *err) {
    QN__OWN_FLOATS;
    QN__NEED(model, err);
    QN__NEED(path, err);
    const qn_status status =
        qn__model_save_asking(model, path, qn__cluster_may_write, cluster, err);
    return status == QN_BUSY && cluster ? qn__cluster_refuse(cluster, err) : status;
}

/* -------------------------------------------------------------------------------------- its life
 */

qn__model_extra *qn__model_exchange(const qn_model *model, qn__model_extra *extra) {
    /* The model itself does not change by what is kept with it. */
    return atomic_exchange(&((qn_model *)(uintptr_t)model)->extra, extra);
}

void qn_model_free(qn_model *model) {
    if (model == NULL)
        return;
    qn__model_extra *const extra = qn__model_exchange(model, NULL);
    if (extra)
        extra->release(extra);
    model->kind->release(model);
}

/* ------------------------------------------------------------------------------------ accessors */

const char *qn_model_kind(const qn_model *model) {
    QN__OWN_FLOATS;
    return model ? model->kind->name : "";
}

const char *qn_model_title(const qn_model *model) {
    QN__OWN_FLOATS;
    return model ? model->kind->title : "";
}

qn_predicted qn_model_predicts(const qn_model *model) {
    QN__OWN_FLOATS;

    return !model ? QN_PREDICTS_LABELS : model->next ? QN_PREDICTS_NEXT : model->kind->predicted;
}

qn__fitting qn__model_fitting(const qn_model *model, const char *what) {
    return (qn__fitting){.schema = model->table,
                         .features = model->features,
                         .outputs = model->outputs,
                         .weight = model->weight,
                         .what = what};
}

const char *qn_model_recipe(const qn_model *model) { return model ? model->recipe : ""; }

const char *qn_model_adapts(const qn_model *model) { return model ? model->base : NULL; }

const char *qn_model_digest(const qn_model *model) { return model ? model->digest : ""; }

uint32_t qn_model_inputs(const qn_model *model) { return model ? model->features : 0; }

uint32_t qn_model_outputs(const qn_model *model) { return model ? model->outputs : 0; }

uint32_t qn_model_classes(const qn_model *model) {
    QN__OWN_FLOATS;
    return model ? model->classes : 0;
}

uint32_t qn_model_answers(const qn_model *model, uint32_t *rows, uint32_t *columns) {
    QN__OWN_FLOATS;
    if (rows)
        *rows = model ? model->mask.height : 0;
    if (columns)
        *columns = model ? model->mask.width : 0;
    return model ? model->answers : 0;
}

uint32_t qn_model_layers(const qn_model *model) { return model ? model->layers : 0; }

uint64_t qn_model_parameters(const qn_model *model) { return model ? model->parameters : 0; }

static const qn__tensor *find_tensor(const qn_model *model, const char *name, int real,
                                     uint64_t *rows, uint64_t *columns) {
    for (uint32_t t = 0; model && name && t < model->tensors + model->left_out; ++t) {
        const qn__tensor *tensor = &model->tensor[t];
        if (strcmp(tensor->name, name) != 0 || (tensor->real != NULL) != real)
            continue;
        if (rows != NULL)
            *rows = tensor->rows;
        if (columns != NULL)
            *columns = tensor->taps[0] ? qn__tensor_count(tensor) / tensor->rows : tensor->columns;
        return tensor;
    }
    return NULL;
}

const float *qn_model_tensor(const qn_model *model, const char *name, uint64_t *rows,
                             uint64_t *columns) {
    const qn__tensor *tensor = find_tensor(model, name, 0, rows, columns);
    return tensor ? tensor->data : NULL;
}

const double *qn_model_real_tensor(const qn_model *model, const char *name, uint64_t *rows,
                                   uint64_t *columns) {
    QN__OWN_FLOATS;

    const qn__tensor *tensor = find_tensor(model, name, 1, rows, columns);
    return tensor ? tensor->real : NULL;
}

static const qn__schema *table_of(const qn_model *model) { return model ? model->table : NULL; }

const char *qn_model_feature_name(const qn_model *model, uint32_t k) {
    const qn__schema *table = table_of(model);
    return table && k < table->features ? table->feature[k].name : NULL;
}

uint32_t qn_model_categories(const qn_model *model, uint32_t k) {
    const qn__schema *table = table_of(model);
    return table && k < table->features ? table->feature[k].categories : 0;
}

uint32_t qn_model_text_inputs(const qn_model *model, uint32_t k) {
    QN__OWN_FLOATS;
    const qn__schema *table = table_of(model);
    return table && k < table->features && table->feature[k].text
               ? qn__feature_inputs(&table->feature[k])
               : 0;
}

void qn_model_text_features(const qn_model *model, uint32_t k, char *text, size_t size) {
    QN__OWN_FLOATS;
    char own[QN__GRAMS_TEXT] = "";
    const qn__schema *table = table_of(model);
    if (table && k < table->features)
        qn__grams_text(table->feature[k].grams, table->feature[k].text, own);
    if (text && size > 0)
        snprintf(text, size, "%s", own);
}

const char *qn_model_label_name(const qn_model *model) {
    const qn__schema *table = table_of(model);
    return table ? table->label : NULL;
}

const char *qn_model_weight_name(const qn_model *model) { return model ? model->weight : NULL; }

const char *qn_model_resize(const qn_model *model) { return model ? model->resize : NULL; }

const char *qn_model_date_format(const qn_model *model) {
    QN__OWN_FLOATS;

    return model ? model->date_format : NULL;
}

const char *qn_model_tokens(const qn_model *model) {
    QN__OWN_FLOATS;

    return model ? model->tokens : NULL;
}

const char *qn_model_tokenizer(const qn_model *model) {
    QN__OWN_FLOATS;

    return model ? model->tokenizer : NULL;
}

uint32_t qn_model_context(const qn_model *model) { return model ? model->context : 0; }

const char *qn_model_rules(const qn_model *model) {
    QN__OWN_FLOATS;

    const char *rules = model ? model->rules : NULL;
    return rules ? rules : "";
}

const char *qn_model_class_name(const qn_model *model, uint32_t k) {
    const qn__schema *table = table_of(model);
    return table && k < table->classes ? table->class_name[k] : NULL;
}
