/* What the ranks of a run do together beside their rounds of work. Without other ranks each of
 * these is what its name says, done by this process. */
#ifndef QN_RUN_TOGETHER_H
#define QN_RUN_TOGETHER_H

#include "base/error.h"
#include "cluster/cluster.h"

/* Calls write(context, err) on the writer rank; returns when it is done, its status there and
 * QN_OK on the others. When that rank fails in the meantime, the next one does it, so it may be
 * done twice. A failure that is to be all ranks' is reported to them by `write` itself. */
qn_status qn__by_writer(qn_cluster *cluster, qn_status (*write)(void *context, qn_error *err),
                        void *context, qn_error *err);

/* Bytes of every rank, each as many as it likes. */
typedef struct qn__parts {
    uint32_t ranks;
    struct {
        unsigned char *bytes; /* aligned to 8; NULL where a rank is lost or has none */
        uint64_t size;
    } * part; /* of each rank */
    unsigned char *all;
} qn__parts;

/* Hands the bytes of every rank to all, in rounds of some megabytes. The parts belong to the
 * caller, who releases them after a failure as well. */
qn_status qn__parts_gather(qn_cluster *cluster, const void *own, uint64_t size, qn__parts *parts,
                           qn_error *err);
void qn__parts_release(qn__parts *parts);

#endif
