/* One data set for all ranks of a cluster: read on some ranks, mapped on the others. */
#include "base/argument.h"
#include "base/system/float_state.h"
#include "cluster/blob.h"
#include "data/open/data_snapshot.h"
#include "data/open/same_files.h"
#include "data/open/same_options.h"
#include "base/memory.h"
#include <stdio.h>
#include <string.h>

typedef struct sharing {
    qn_data_opener open;
    void *user;
    qn_data *data; /* on a rank that opened it */
} sharing;

static qn_status make(void *user, uint64_t *bytes, qn_error *err) {
    sharing *s = user;
    const qn_status status = s->open(s->user, &s->data, err);
    qn__float_state_set();
    if (status != QN_OK)
        return status;
    *bytes = qn__data_snapshot_bytes(s->data);
    if (*bytes > 0)
        return QN_OK;
    return qn__fail(err, QN_MEMORY, "the data is more than can be addressed");
}

static void write_snapshot(void *user, void *memory) {
    const sharing *s = user;
    qn__data_snapshot_write(s->data, memory);
}

qn_status qn_data_share(qn_cluster *cluster, int from_first, qn_data_opener open, void *user,
                        qn_data **out, qn_error *err) {
    QN__OWN_FLOATS;
    QN__NEED_OUT(out, err);
    QN__NEED(open, err);
    if (!cluster)
        return open(user, out, err);
    sharing s = {.open = open, .user = user};
    const qn__blob_maker maker = {.user = &s, .make = make, .write = write_snapshot};
    const void *snapshot;
    uint64_t bytes;
    qn_error why = {0};
    qn_status status = qn__cluster_blob(cluster, from_first, &maker, &snapshot, &bytes, &why);
    if (status == QN_OK && (status = qn__data_snapshot_map(snapshot, bytes, out, &why)) != QN_OK)
        qn__cluster_fail(cluster, &why);
    qn_data_close(s.data);
    if (status != QN_OK && err)
        *err = why;
    return status;
}

/* ------------------------------------------------------------------ files */

typedef struct files {
    const char *const *paths;
    size_t count;
    const qn_data_options *options;
} files;

static qn_status open_them(void *user, qn_data **out, qn_error *err) {
    const files *f = user;
    const qn_status status = qn_data_open_files(f->paths, f->count, f->options, out, err);
    if (status != QN_OK && !*err->where && f->count > 0 && f->paths[0]) /* such as out of memory */
        qn__at_of(err, f->paths[0]);
    return status;
}

/* Files of items, and those of labels. */
static qn_status compare_files(qn_cluster *cluster, const files *f, const qn_data_options *o,
                               qn_error *err) {
    const size_t more = o->labels_path ? 1 + o->labels_more_count : 0;
    const char **name = (const char **)qn__alloc(f->count + more + 1, sizeof *name, err);
    if (!name) {
        qn__cluster_fail(cluster, err);
        return QN_MEMORY;
    }
    memcpy((void *)name, (const void *)f->paths, f->count * sizeof *name);
    for (size_t i = 0; i < more; i++)
        name[f->count + i] = i == 0 ? o->labels_path : o->labels_more[i - 1];
    const qn_status status = qn__same_files(cluster, name, f->count + more, err);
    qn__free((void *)name);
    return status;
}

qn_status qn_data_share_files(qn_cluster *cluster, int from_first, const char *const *paths,
                              size_t count, const qn_data_options *options, qn_data **out,
                              qn_error *err) {
    QN__OWN_FLOATS;
    QN__NEED_OUT(out, err);
    QN__NEED(paths, err);
    qn_data_options own;
    qn_error unwanted;
    err = err ? err : &unwanted;
    files f = {paths, count, options};
    qn_status status = qn__same_options(cluster, __func__, options, 0, &own, err);
    if (status == QN_OK && cluster)
        status = compare_files(cluster, &f, &own, err);
    return status == QN_OK ? qn_data_share(cluster, from_first, open_them, &f, out, err) : status;
}
