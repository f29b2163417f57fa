/* Large messages of sums by a carrier, such as MPI; everything else by sockets.
 *
 * The sender tells the receiver by a socket what comes: the head, the length and the MAC of the
 * body. The receiver asks the carrier for the body, and says by a socket that it has it. Until then
 * the sender keeps the body. So sockets find deaths as before, and nothing waits for the carrier
 * alone. When the carrier fails, is too slow to answer or brings wrong bytes, all ranks leave it,
 * and bodies that have not arrived go by sockets.
 *
 * The memory of a transfer that has not ended is never used again: a network card may still write
 * to it. */
#ifndef QN_CLUSTER_TRANSPORT_FABRIC_H
#define QN_CLUSTER_TRANSPORT_FABRIC_H

#include "base/error.h"
#include "cluster/transport/carrier.h"
#include "cluster/transport/transport.h"

typedef struct qn__fabric qn__fabric;

typedef struct qn__fabric_setup {
    qn__transport *base; /* over sockets; closed after qn__fabric_stop, before qn__fabric_close */
    uint32_t ranks, rank;
    const unsigned char *far; /* of each rank: it is on another machine, and there */
    const unsigned char *key; /* 32 bytes, of this run */
    double patience;          /* seconds after which a body is too late */
} qn__fabric_setup;

/* The arrays are copied. */
qn_status qn__fabric_open(const qn__fabric_setup *setup, qn__fabric **out, qn_error *err);

/* The transport over both. Until qn__fabric_use it sends by sockets alone. */
qn__transport *qn__fabric_transport(qn__fabric *fabric);

/* The events that the base is given; `events` come from either thread, one at a time. */
qn__transport_events qn__fabric_events(qn__fabric *fabric, const qn__transport_events *events);

/* Serves until qn__fabric_stop, or until the carrier is left. On the carrier's thread. */
void qn__fabric_serve(void *fabric, const qn__carrier *carrier);

/* From now on large bodies go by the carrier. */
void qn__fabric_use(qn__fabric *fabric);
/* 1 while they do. */
int qn__fabric_is_used(qn__fabric *fabric);

/* Seconds that some messages of QN__FABRIC_TRIAL bytes take to `rank` and an answer back, the least
 * of a few trials; by the carrier or by sockets. When a trial fails or is late, 1e3. Both ranks are
 * served; neither takes other messages of this kind at a time. */
enum { QN__FABRIC_TRIAL = 65536 };
double qn__fabric_try(qn__fabric *fabric, uint32_t rank, int carried);

/* Waits for at most `seconds` until sent bodies have arrived, and ends qn__fabric_serve. Returns 1
 * if no rank was lost, so that the library may be ended in order. */
int qn__fabric_stop(qn__fabric *fabric, double seconds);

/* `served`: qn__fabric_serve has returned or was never called. If it has not, the fabric is not
 * freed. Accepts NULL. */
void qn__fabric_close(qn__fabric *fabric, int served);

#endif
