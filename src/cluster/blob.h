/* Bytes that many ranks read and few make: the content of a file, say.
 *
 * One rank of each machine makes them, or one rank of all, which sends them; on each machine they
 * then lie once in memory that its ranks share. */
#ifndef QN_CLUSTER_BLOB_H
#define QN_CLUSTER_BLOB_H

#include "cluster/cluster.h"

/* How a rank that was chosen makes the bytes. */
typedef struct qn__blob_maker {
    void *user;
    /* Gets them ready and tells how many there are: at least one. Called once at most. */
    qn_status (*make)(void *user, uint64_t *bytes, qn_error *err);
    /* Writes them; the address is a multiple of 64. After `make`, perhaps several times. */
    void (*write)(void *user, void *memory);
} qn__blob_maker;

/* All ranks together. The bytes stay until qn_cluster_leave. With `from_first` only the lowest rank
 * makes them. Whoever dies meanwhile is replaced. When one cannot make them all ranks fail alike,
 * with a message that names it. `c` is not NULL. */
qn_status qn__cluster_blob(qn_cluster *c, int from_first, const qn__blob_maker *maker,
                           const void **memory, uint64_t *bytes, qn_error *err);

/* Puts "rank 2 on host-b: " before what the error says. */
void qn__cluster_name_error(const qn_cluster *c, uint32_t rank, qn_error *err);

#endif
