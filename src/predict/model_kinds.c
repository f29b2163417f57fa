/* The kinds of models, one row each. Rows stand here because the functions of a network need the
 * floors below; a kind's own table is in its folder. */
#include "predict/model_kinds.h"

#include "base/argument.h"
#include "base/digest/sha256.h"
#include "base/system/float_state.h"
#include "model/formats/model.h"
#include "predict/item_batches.h"
#include "statistics/fit/sum_model.h"
#include <string.h>

typedef struct row {
    const qn__model_kind *kind;
    qn__model_apply *apply;
    const qn__batch_kind *batches;
} row;

/* Models by sums take numbers as they are. */
static qn_status sum_prepare(const qn_model *model, const qn_data *matched, qn__prepared *out,
                             qn_error *err) {
    out->inputs = matched;
    return qn__sum_check(model, matched, err);
}

static const qn__batch_kind sum_batches = {NULL, sum_prepare, qn__sum_open, qn__sum_run,
                                           qn__sum_close};

static const row rows[] = {
    {&qn__network_kind, qn__network_apply, &qn__network_batches},
    {&qn__kmeans_kind.open, qn__sum_apply, &sum_batches},
    {&qn__pca_kind.open, qn__sum_apply, &sum_batches},
    {&qn__ridge_kind.open, qn__sum_apply, &sum_batches},
    {&qn__lasso_kind.open, qn__sum_apply, &sum_batches},
};
enum { ROWS = sizeof rows / sizeof *rows };

const qn__model_kind *qn__model_kind_at(uint32_t index) {
    return index < ROWS ? rows[index].kind : NULL;
}

static const row *row_of(const qn_model *model) {
    const row *r = rows;
    while (r->kind != model->kind)
        ++r;
    return r;
}

qn_status qn__model_apply_to(const qn_model *model, const qn_data *data, const qn_compute *compute,
                             const qn__model_results *results, qn_status status, qn_error *err) {
    return row_of(model)->apply(model, data, compute, results, status, err);
}

const qn__batch_kind *qn__batch_kind_of(const qn_model *model) { return row_of(model)->batches; }

/* "quern-model-" of "quern-model-1": what a newer version of the kind has, too. */
static size_t family(const char *format) { return (size_t)(strrchr(format, '-') + 1 - format); }

static qn_status find_kind(const qn__tensors *file, const char *path, const qn__model_kind **out,
                           qn_error *err) {
    const char *format = qn__tensors_note(file, "format"); /* it begins with "quern-" */
    for (size_t i = 0; i < ROWS; ++i) {
        const char *ours = rows[i].kind->format;
        *out = rows[i].kind;
        if (strcmp(format, ours) == 0)
            return QN_OK;
        if (strncmp(format, ours, family(ours)) == 0)
            return qn__model_refuse_file(err, path,
                                         "the model was written by a newer version of Quern",
                                         "use that version to read it");
    }
    if (strncmp(format, "quern-checkpoint-", 17) != 0)
        return qn__model_refuse_file(err, path, "the model is of a kind that this version lacks",
                                     "use the version of Quern that has written it");
    return qn__model_refuse_file(err, path, "the file is a checkpoint, not a model",
                                 "name a model; from a checkpoint, continue with `train.resume`");
}

static qn_status open_file(qn__tensors *file, const char *path, const qn_model *base,
                           qn_model **out, qn_error *err) {
    const qn__model_kind *kind = NULL;
    uint8_t digest[32];
    qn_status status = find_kind(file, path, &kind, err);
    if (status == QN_OK && kind)
        status = kind->read(kind, file, path, out, err);
    if (status == QN_OK && (status = qn__model_complete(*out, base, path, err)) != QN_OK) {
        qn_model_free(*out);
        *out = NULL;
    }
    if (status == QN_OK) {
        qn__tensors_file_digest(file, digest);
        qn__hex(digest, (*out)->digest);
    }
    qn__tensors_free(file);
    return status;
}

qn_status qn_model_load(const char *path, qn_model **out, qn_error *err) {
    QN__OWN_FLOATS;
    QN__NEED_OUT(out, err);
    QN__NEED(path, err);
    qn__tensors *file;
    const qn_status status = qn__tensors_read_model(path, &file, err);
    return status == QN_OK ? open_file(file, path, NULL, out, err) : status;
}

qn_status qn__model_from_bytes(const void *bytes, size_t size, const char *name,
                               const qn_model *base, qn_model **out, qn_error *err) {
    qn__tensors *file;
    *out = NULL;
    const qn_status status = qn__tensors_model_from_bytes(bytes, size, name, &file, err);
    return status == QN_OK ? open_file(file, name, base, out, err) : status;
}
