/* One data set for all ranks of a cluster: read on some ranks, mapped on the others. */
#include "base/argument.h"
#include "base/system/float_state.h"
#include "cluster/blob.h"
#include "data/open/data_snapshot.h"

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
