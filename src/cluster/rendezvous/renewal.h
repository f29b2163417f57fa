/* New connections between the ranks of a run, when a rank joins it. */
#ifndef QN_CLUSTER_RENDEZVOUS_RENEWAL_H
#define QN_CLUSTER_RENDEZVOUS_RENEWAL_H

#include "cluster/rendezvous/door.h"
#include "cluster/transport/socket_transport.h"

typedef struct qn__renewal {
    qn__invitation invitation;
    qn__endpoint *endpoint; /* of each rank */
    qn__listeners listeners;
    int held;     /* rank 0: the connection to the rank that joins; that rank: the one to rank 0;
                     else -1 */
    uint32_t who; /* the rank that joins */
    int (*ends)(void *user); /* as in qn__mesh */
    void *user;
    qn__transport *transport; /* over the new connections; NULL: there are none */
    unsigned char key[32];
} qn__renewal;

/* Memory for the endpoints. */
qn_status qn__renewal_open(qn__renewal *renewal, const qn__rendezvous *rendezvous, qn_error *err);
/* Listeners, and the endpoint of this rank in the table. */
qn_status qn__renewal_listen(qn__renewal *renewal, const qn__rendezvous *rendezvous, qn_error *err);
/* Connects, within `seconds`. All ranks that succeed have the same connections; the caller finds
 * out whether all have. */
qn_status qn__renewal_connect(qn__renewal *renewal, const qn__rendezvous *rendezvous,
                              double seconds, qn_error *err);
/* Ends the transport of the rendezvous, and puts the new one in its place. Nothing is received
 * before qn__rendezvous_listen. */
void qn__renewal_take(qn__renewal *renewal, qn__rendezvous *rendezvous);
/* Closes what was not taken. */
void qn__renewal_close(qn__renewal *renewal);

#endif
