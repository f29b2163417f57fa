/* From the cards of all ranks to a connection between every two of them. */
#ifndef QN_CLUSTER_RENDEZVOUS_MESH_H
#define QN_CLUSTER_RENDEZVOUS_MESH_H

#include "cluster/rendezvous/card.h"
#include "cluster/transport/socket_transport.h"

typedef struct qn__mesh {
    uint32_t ranks, rank;
    const qn__card *card;           /* of each rank */
    const qn__listeners *listeners; /* of this one */
    const unsigned char *key;       /* 32 bytes, of this run */
    double until;                   /* by qn__now */
    int rank0; /* a connection to rank 0 that only its end closes meanwhile; -1: none */
} qn__mesh;

/* Fills link[0 .. ranks-1]; returns when all ranks have all their connections. Rank r dials those
 * before it. QN_CLUSTER, with who could not be reached, and all links closed, otherwise: all ranks
 * fail then, with the message of the first. QN_BUSY: the same, because rank 0 has ended. */
qn_status qn__mesh_connect(const qn__mesh *mesh, qn__link *link, qn_error *err);

/* Says which rank runs another version than rank 0, whose card that is. */
qn_status qn__mesh_other_version(uint32_t rank, const char *host, const char *version,
                                 uint32_t contract, uint32_t wire, const qn__card *first,
                                 qn_error *err);

/* Compares the versions of all ranks with those of rank 0. */
qn_status qn__mesh_versions(const qn__card *card, uint32_t ranks, qn_error *err);

#endif
