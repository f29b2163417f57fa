/* Connects every pair of ranks, from the endpoints of all. */
#ifndef QN_CLUSTER_RENDEZVOUS_MESH_H
#define QN_CLUSTER_RENDEZVOUS_MESH_H

#include "cluster/rendezvous/endpoint.h"
#include "cluster/transport/handshake.h"
#include "cluster/transport/ranks.h"
#include "cluster/transport/socket_transport.h"

typedef struct qn__mesh {
    uint32_t ranks, rank;
    const qn__ranks *present;       /* the ranks that are connected, with rank 0; NULL: all */
    const qn__endpoint *endpoint;   /* of each of them */
    const qn__listeners *listeners; /* of this one */
    const unsigned char *key;       /* 32 bytes, of this run */
    double until;                   /* deadline by qn__now */
    int rank0; /* a connection to rank 0 on which nothing is sent; it closes if rank 0 ends; -1:
                  none */
    const int *held; /* on rank 0: such connections to all ranks, -1 for none; NULL elsewhere */
    int (*ends)(void *user); /* 1: it is known that a rank will not come; NULL: nothing is */
    void *user;
} qn__mesh;

/* Fills link[0 .. ranks-1]. Returns when all ranks have all their connections; rank r connects to
 * the ranks below it. QN_CLUSTER: a rank was not reachable. All links are closed, and all ranks
 * fail with the message of the first failure. QN_BUSY: the same, because a rank has ended. */
qn_status qn__mesh_connect(const qn__mesh *mesh, qn__link *link, qn_error *err);

/* Whether a peer at the rendezvous address cannot be a rank of this run, of which rank 0 has the
 * endpoint `first`; *why then says what is wrong. QN__PEER_IS_OTHER: it was started otherwise, so
 * that the run cannot be as it was meant. */
typedef enum qn__peer_fault { QN__PEER_FITS, QN__PEER_IS_OTHER, QN__PEER_IS_WRONG } qn__peer_fault;
qn__peer_fault qn__mesh_peer(const qn__endpoint *first, uint32_t ranks, const qn__hello *peer,
                             qn_error *why);

/* Compares the versions of all ranks with that of rank 0. */
qn_status qn__mesh_versions(const qn__endpoint *endpoint, uint32_t ranks, qn_error *err);

#endif
