/* Bytes that one rank or few ranks make and all ranks read, such as the content of a file.
 *
 * One rank of each machine makes them, or one rank makes them and sends them to the others. Each
 * machine then holds one copy, in memory that its ranks share. */
#ifndef QN_CLUSTER_BLOB_H
#define QN_CLUSTER_BLOB_H

#include "cluster/cluster.h"

/* How a chosen rank makes the bytes. */
typedef struct qn__blob_maker {
    void *user;
    /* Prepares the bytes and returns their number, at least one. Called at most once. */
    qn_status (*make)(void *user, uint64_t *bytes, qn_error *err);
    /* Writes them to a 64-byte aligned address. Called after `make`, possibly several times. */
    void (*write)(void *user, void *memory);
} qn__blob_maker;

/* Collective. The bytes stay valid until qn_cluster_leave. With `from_first` only the lowest rank
 * makes them. A rank that dies meanwhile is replaced. If a rank cannot make them, all ranks fail
 * with the same message, which names that rank. `c` is not NULL. */
qn_status qn__cluster_blob(qn_cluster *c, int from_first, const qn__blob_maker *maker,
                           const void **memory, uint64_t *bytes, qn_error *err);

/* Prefixes the message of the error with the name of the rank, as in "rank 2 on host-b: ". A
 * message that begins with it stays as it is. */
void qn__cluster_name_error(const qn_cluster *c, uint32_t rank, qn_error *err);

#endif
