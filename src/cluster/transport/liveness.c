/* Liveness of the peers: which ranks are gone, and with what certainty. */
#include "cluster/transport/socket_state.h"

#include "base/system/clock.h"

#include <errno.h>
#include <sys/socket.h>
#include <time.h>

uint64_t qn__watch_nanoseconds(double seconds) { return (uint64_t)(seconds * 1e9); }

/* Discards a message of which only a part was received. */
static void drop_begun(qn__peer *peer) {
    qn__buffer_drop(peer->body);
    peer->body = NULL;
    peer->body_have = 0;
    peer->stage_have = 0;
}

void qn__watch_ended(qn__socket_transport *transport, qn__peer *peer, int error, double now) {
    pthread_mutex_lock(&peer->lock);
    /* A failed send has consumed the error of the socket. */
    const int what = error ? error : peer->broken;
    pthread_mutex_unlock(&peer->lock);
    /* A closed connection means that the peer's system is alive. But if the peer was unreachable
     * shortly before, or this process has not read for a while, the cause may be this rank's own
     * silence. */
    const double half = transport->rank_timeout / 2;
    const int closed = what == 0 || what == ECONNRESET || what == EPIPE;
    const int sure = closed && now - peer->heard <= half && now - transport->slept > half;
    drop_begun(peer);
    peer->damaged += what == EBADMSG;
    if (qn__reconnect_possible(transport, peer, what)) {
        peer->reconnection.damaged |= what == EBADMSG;
        qn__reconnect_lost(transport, peer, closed, sure ? QN__GONE_DEAD : QN__GONE_SILENT, now);
        return;
    }
    if (what == EBADMSG &&
        !peer->gone) { /* the peer must not take this close for the end of this process */
        peer->discards = 1;
        qn__watch_gone(transport, peer, QN__GONE_SILENT);
        return;
    }
    qn__peer_close(transport, peer);
    qn__watch_gone(transport, peer, sure ? QN__GONE_DEAD : QN__GONE_SILENT);
}

/* Seconds of a clock that includes suspend. */
static double boot_clock(void) {
    struct timespec t;
    clock_gettime(CLOCK_BOOTTIME, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

void qn__watch_self(qn__socket_transport *transport, double now) {
    const double awake = boot_clock(), half = transport->rank_timeout / 2;
    if (awake - transport->looked > half) {
        transport->slept = now;
        /* Data that arrived meanwhile is still unread, so no peer counts as silent yet. */
        for (uint32_t r = 0; r < transport->ranks; ++r)
            if (transport->peer[r].heard < now - half)
                transport->peer[r].heard = now - half;
    }
    transport->looked = awake;
}

static void ping(qn__socket_transport *transport, const qn__peer *peer) {
    const qn__head head = {.type = QN__MESSAGE_PING, .number = {qn__watch_nanoseconds(qn__now())}};
    qn__transport_queue(transport, peer->rank, &head, NULL, -1);
}

/* Closes the connection to an evicted rank after the notice has been sent. */
static void show_out(qn__socket_transport *transport, qn__peer *peer) {
    if (!peer->gone)
        qn__watch_give_up(transport, peer);
    if (peer->file >= 0 && qn__peer_queue_empty(peer))
        shutdown(peer->file, SHUT_WR);
}

void qn__watch_others(qn__socket_transport *transport, double now) {
    for (uint32_t r = 0; r < transport->ranks; ++r) {
        qn__peer *peer = &transport->peer[r];
        if (r == transport->rank)
            continue;
        if (atomic_load(&peer->evicted))
            show_out(transport, peer);
        if (peer->gone)
            continue;
        if (now - peer->heard > transport->rank_timeout)
            qn__watch_gone(transport, peer, QN__GONE_SILENT);
        else if (peer->file >= 0 &&
                 qn__peer_queue_empty(peer)) /* queued data serves as well as a ping */
            ping(transport, peer);
        if (!peer->gone && !peer->local && now - peer->heard > qn__watch_patience(transport))
            qn__reconnect_wanted(transport, now);
    }
}

void qn__watch_pong(qn__peer *peer, const qn__head *head) {
    const double now = qn__now(), sent = 1e-9 * (double)head->number[0];
    const double there = 1e-9 * (double)head->number[1], trip = now - sent;
    if (trip < 0)
        return;
    peer->best *= 1.01; /* clocks drift, so old measurements lose weight */
    if (peer->best > 0 && trip > peer->best)
        return;
    peer->best = trip;
    atomic_store_explicit(&peer->ahead, there - (sent + now) / 2, memory_order_relaxed);
}
