/* One peer of the socket transport: the options of its socket, its timeouts, and its end. */
#include "cluster/transport/socket_state.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>

/* After so many pings without an answer a second connection is tried, */
enum { SILENT_PERIODS = 4 };
/* but not before this time, or half of rank_timeout if that is less: a busy machine may be silent
 * for as long. */
static const double SILENT_LEAST = 0.25;

void qn__socket_set_options(int file, int local, double rank_timeout) {
    const int flags = fcntl(file, F_GETFL);
    fcntl(file, F_SETFL, flags | O_NONBLOCK);
    fcntl(file, F_SETFD, FD_CLOEXEC);
    if (local) { /* TCP tunes its own buffers unless they are set */
        const int capacity = 4 << 20;
        setsockopt(file, SOL_SOCKET, SO_SNDBUF, &capacity, sizeof capacity);
        return;
    }
    const int one = 1;
    /* Longer than this rank waits before it gives up the peer and notifies it. */
    const unsigned silent =
        rank_timeout < 1e6 ? (unsigned)(rank_timeout * 2000) + 1000 : 2000000000;
    setsockopt(file, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    setsockopt(file, IPPROTO_TCP, TCP_USER_TIMEOUT, &silent, sizeof silent);
}

double qn__watch_patience(const qn__socket_transport *transport) {
    const double half = transport->rank_timeout / 2, pings = SILENT_PERIODS * transport->period;
    const double least = SILENT_LEAST < half ? SILENT_LEAST : half;
    return pings > least ? pings : least;
}

/* Messages of that rank are ignored from now on. */
void qn__watch_give_up(qn__socket_transport *transport, qn__peer *peer) {
    peer->gone = 1;
    pthread_mutex_lock(&transport->taken_lock);
    transport->taken[peer->rank].gone = 1;
    pthread_cond_broadcast(&transport->taken_more);
    pthread_mutex_unlock(&transport->taken_lock);
}

void qn__watch_gone(qn__socket_transport *transport, qn__peer *peer, qn__loss_kind how) {
    if (peer->gone)
        return;
    qn__watch_give_up(transport, peer);
    /* That rank must not take the close of this connection for the death of this process: both may
     * be alive, and this rank continue without the other. */
    if (how == QN__GONE_SILENT && !peer->ended)
        qn__transport_send_last(transport, peer->rank, QN__MESSAGE_TIMEOUT, "");
    else
        qn__peer_forget(transport, peer);
    if (!atomic_load(&transport->ending) && !atomic_load(&peer->evicted))
        transport->events.gone(transport->events.user, peer->rank, how);
}
