/* Collective operations beside the reductions of work. Without other ranks this process does them
 * alone. */
#ifndef QN_TEAM_TOGETHER_H
#define QN_TEAM_TOGETHER_H

#include "base/error.h"
#include "base/files/folder_lock.h"
#include "cluster/cluster.h"

/* Calls write(context, err) on the writer rank. Returns its status there and QN_OK on the others,
 * when it is done. If that rank fails meanwhile, the next one calls it, so it may run twice.
 * `write` itself reports a failure that concerns all ranks. */
qn_status qn__by_writer(qn_cluster *cluster, qn_status (*write)(void *context, qn_error *err),
                        void *context, qn_error *err);

/* The ranks of the cluster as the owner of a lock; without one this process alone. */
qn__owner qn__owner_of(qn_cluster *cluster);

/* Bytes of every rank, of different sizes. */
typedef struct qn__parts {
    uint32_t ranks;
    struct {
        unsigned char *bytes; /* aligned to 8; NULL if the rank is lost or has none */
        uint64_t size;
    } * part; /* of each rank */
    unsigned char *all;
} qn__parts;

/* An all-gather of bytes, in reductions of some megabytes. The parts belong to the caller, who
 * releases them also after a failure. */
qn_status qn__parts_gather(qn_cluster *cluster, const void *own, uint64_t size, qn__parts *parts,
                           qn_error *err);
void qn__parts_release(qn__parts *parts);

#endif
