/* One model for all ranks of a cluster: read on some ranks and sent to the others. */
#include "base/argument.h"
#include "base/files/file.h"
#include "base/system/float_state.h"
#include "cluster/blob.h"
#include "predict/model_kinds.h"
#include <string.h>

typedef struct sharing {
    const char *path;
    const qn_model *base;
    qn__bytes file;
} sharing;

/* A malformed file is refused by the rank that reads it, so that the message names the file. */
static qn_status make(void *user, uint64_t *bytes, qn_error *err) {
    sharing *s = user;
    qn_model *model;
    qn_status status = qn__file_read(s->path, &s->file, err);
    if (status == QN_OK)
        status = qn__model_from_bytes(s->file.data, s->file.size, s->path, s->base, &model, err);
    if (status != QN_OK)
        return status;
    qn_model_free(model);
    *bytes = s->file.size;
    return QN_OK;
}

static void write_bytes(void *user, void *memory) {
    const sharing *s = user;
    memcpy(memory, s->file.data, s->file.size);
}

static qn_status alone(const sharing *s, qn_model **out, qn_error *err) {
    qn__bytes file = {0};
    qn_status status = qn__file_read(s->path, &file, err);
    if (status == QN_OK)
        status = qn__model_from_bytes(file.data, file.size, s->path, s->base, out, err);
    qn__bytes_release(&file);
    return status;
}

static qn_status among(qn_cluster *cluster, int from_first, sharing *s, qn_model **out,
                       qn_error *err) {
    const qn__blob_maker maker = {.user = s, .make = make, .write = write_bytes};
    const void *file;
    uint64_t bytes;
    qn_error why = {0};
    qn_status status = qn__cluster_blob(cluster, from_first, &maker, &file, &bytes, &why);
    qn__bytes_release(&s->file);
    if (status == QN_OK &&
        (status = qn__model_from_bytes(file, (size_t)bytes, s->path, s->base, out, &why)) != QN_OK)
        qn__cluster_fail(cluster, &why);
    if (status != QN_OK && err)
        *err = why;
    return status;
}

qn_status qn_model_share(qn_cluster *cluster, int from_first, const char *path, qn_model **out,
                         qn_error *err) {
    QN__OWN_FLOATS;
    QN__NEED_OUT(out, err);
    QN__NEED(path, err);
    sharing s = {.path = path};
    return cluster ? among(cluster, from_first, &s, out, err) : qn_model_load(path, out, err);
}

qn_status qn_model_adapt(qn_cluster *cluster, int from_first, const char *adapter,
                         const qn_model *base, qn_model **out, qn_error *err) {
    QN__OWN_FLOATS;
    QN__NEED_OUT(out, err);
    QN__NEED(adapter, err);
    QN__NEED(base, err);
    sharing s = {.path = adapter, .base = base};
    return cluster ? among(cluster, from_first, &s, out, err) : alone(&s, out, err);
}
