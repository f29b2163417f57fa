/* A rendezvous through MPI: the launcher knows all ranks and its library introduces them. */
#ifndef QN_CLUSTER_RENDEZVOUS_MPI_EXCHANGE_H
#define QN_CLUSTER_RENDEZVOUS_MPI_EXCHANGE_H

#include "cluster/rendezvous/card.h"
#include "cluster/rendezvous/launcher.h"

/* This rank's part before it knows its number; and what it gets: card (qn__free) of all ranks, and
 * 32 bytes that only they know. */
typedef struct qn__introduction {
    qn__card own;
    uint32_t ranks, rank;
    qn__card *card;
    unsigned char key[32];
} qn__introduction;

/* Brings MPI up, asks, and ends it again (unless the program itself uses it): from then on no MPI
 * is involved. At most `seconds`: an MPI library that waits for a rank that never comes waits for
 * ever, on a thread that is then left to itself. */
qn_status qn__mpi_introduce(const qn__launcher *launcher, qn__introduction *introduction,
                            double seconds, qn_error *err);

#endif
