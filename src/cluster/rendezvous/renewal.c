#include "cluster/rendezvous/renewal.h"

#include "base/memory.h"
#include "base/system/clock.h"
#include "cluster/rendezvous/mesh.h"

#include <string.h>

qn_status qn__renewal_open(qn__renewal *renewal, const qn__rendezvous *rendezvous, qn_error *err) {
    *renewal = (qn__renewal){.listeners = {-1, -1}, .held = -1};
    renewal->endpoint = qn__alloc(rendezvous->ranks, sizeof *renewal->endpoint, err);
    if (!renewal->endpoint)
        return QN_MEMORY;
    memcpy(renewal->endpoint, rendezvous->meeting.endpoint,
           rendezvous->ranks * sizeof *renewal->endpoint);
    return QN_OK;
}

qn_status qn__renewal_listen(qn__renewal *renewal, const qn__rendezvous *rendezvous,
                             qn_error *err) {
    const qn__meeting *m = &rendezvous->meeting;
    return qn__endpoint_own(m->interface, m->loopback, &renewal->endpoint[rendezvous->rank],
                            &renewal->listeners, err);
}

static qn_status connect_all(qn__renewal *renewal, const qn__rendezvous *rendezvous,
                             const int *held, double seconds, qn__link *link, qn_error *err) {
    const int first = rendezvous->rank == 0;
    const qn__mesh mesh = {.ranks = rendezvous->ranks,
                           .rank = rendezvous->rank,
                           .present = &renewal->invitation.present,
                           .endpoint = renewal->endpoint,
                           .listeners = &renewal->listeners,
                           .key = renewal->key,
                           .until = qn__now() + seconds,
                           .rank0 = first ? -1 : renewal->held,
                           .held = first ? held : NULL,
                           .ends = renewal->ends,
                           .user = renewal->user};
    const qn_status status = qn__mesh_connect(&mesh, link, err);
    if (status != QN_OK)
        return status;
    const qn__transport_setup setup = {.ranks = rendezvous->ranks,
                                       .rank = rendezvous->rank,
                                       .link = link,
                                       .rank_timeout = rendezvous->meeting.rank_timeout,
                                       .key = renewal->key,
                                       .listener = renewal->listeners.tcp};
    renewal->listeners.tcp = -1;
    return qn__transport_open(&setup, &renewal->transport, err);
}

qn_status qn__renewal_connect(qn__renewal *renewal, const qn__rendezvous *rendezvous,
                              double seconds, qn_error *err) {
    const uint32_t n = rendezvous->ranks;
    int *held = qn__alloc(n, sizeof *held, err);
    qn__link *link = qn__alloc(n, sizeof *link, err);
    qn_status status = QN_MEMORY;
    for (uint32_t r = 0; r < n && held; ++r)
        held[r] = r == renewal->who ? renewal->held : -1;
    qn__exchange_key(rendezvous->meeting.secret, renewal->invitation.session, renewal->key);
    if (held && link)
        status = connect_all(renewal, rendezvous, held, seconds, link, err);
    qn__free(held);
    qn__free(link);
    return status;
}

void qn__renewal_take(qn__renewal *renewal, qn__rendezvous *rendezvous) {
    qn__meeting *m = &rendezvous->meeting;
    qn__transport_close(rendezvous->transport);
    rendezvous->transport = renewal->transport;
    renewal->transport = NULL;
    memcpy(m->endpoint, renewal->endpoint, rendezvous->ranks * sizeof *m->endpoint);
    qn__rendezvous_number(m->endpoint, rendezvous->ranks, rendezvous->info);
    rendezvous->present = renewal->invitation.present;
}

void qn__renewal_close(qn__renewal *renewal) {
    qn__transport_abandon(renewal->transport);
    qn__free(renewal->endpoint);
    qn__listeners_close(&renewal->listeners);
    renewal->transport = NULL;
    renewal->endpoint = NULL;
}
