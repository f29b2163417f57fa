/* Reconnection of TCP connections that are lost or silent.
 *
 * After an outage of some seconds a TCP connection resumes much later than the network, because TCP
 * doubles its retransmission timeout. So after several unanswered pings a second connection is
 * tried, repeatedly, until one of them works or rank_timeout is over. The higher rank dials, as at
 * the start. Both sides prove that they hold the run's key. Each then sends what it has received,
 * and the rest is sent again.
 *
 * If the peer's system closed the connection, its process has ended, or a middlebox closed it. So
 * the peer's listener is tried at once: if the connection is refused, the rank is dead. Without
 * that answer the loss is uncertain and is handled as any other. */
#include "cluster/transport/socket_state.h"

#include "base/memory.h"
#include "base/system/clock.h"

#include <errno.h>
#include <math.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <unistd.h>

/* Seconds of one attempt: a part of rank_timeout, and at least this or half of rank_timeout.
 * Attempts are short, because packets sent during an outage are lost and TCP repeats them too
 * late. */
static const double ATTEMPT_PART = 1.0 / 80, ATTEMPT_LEAST = 0.05;
/* Seconds between two calls that serve pending peers. */
static const double PENDING_PAUSE = 0.005;
/* Seconds before the next attempt, if a process that may be ending closed the last one. */
static const double AGAIN_PAUSE = 0.0005;
/* The refusal that an evicted rank receives. */
static const char EVICTED[] = "the other ranks go on without this one";
/* A peer is given up after so many damaged frames. */
enum { DAMAGED_MOST = 3 };
/* Estimated descriptors of a run beside its connections; the minimum number of slots for pending
 * peers. */
enum { FILES = 32, SLOTS_LEAST = 2 };

/* ------------------------------------------------------------------------------------- attempts */

static void end_attempt(qn__peer *peer) {
    if (peer->reconnection.shake.file >= 0)
        close(peer->reconnection.shake.file);
    peer->reconnection.shake.file = -1;
}

static void settle(qn__peer *peer) {
    end_attempt(peer);
    peer->reconnection.closed = peer->reconnection.damaged = 0;
}

static void has_ended(qn__socket_transport *transport, qn__peer *peer) {
    settle(peer);
    qn__peer_close(transport, peer);
    qn__watch_gone(transport, peer, peer->reconnection.ended_as);
}

/* The peer closed this attempt, possibly a process that was ending when it accepted. */
static void try_again(qn__socket_transport *transport, qn__peer *peer, double now) {
    end_attempt(peer);
    if (peer->reconnection.closed) {
        peer->reconnection.next = now + AGAIN_PAUSE;
        qn__reconnect_wanted(transport, peer->reconnection.next);
    }
}

/* Handles a refused or reset attempt. Only together with the end of the connection does a refusal
 * mean that the rank has ended: a firewall may refuse too. */
static void failed(qn__socket_transport *transport, qn__peer *peer, int error, double now) {
    end_attempt(peer);
    if (peer->reconnection.closed && error == ECONNREFUSED)
        has_ended(transport, peer);
    else if (peer->reconnection.closed && error == ECONNRESET)
        try_again(transport, peer, now);
}

static void watch_attempt(qn__socket_transport *transport, const qn__peer *peer, int operation) {
    const int writes = peer->reconnection.shake.state == QN__HANDSHAKE_WRITE;
    struct epoll_event event = {.events = writes ? EPOLLOUT : EPOLLIN,
                                .data.u64 = QN__EPOLL_ATTEMPT | peer->rank};
    epoll_ctl(transport->poll_file, operation, peer->reconnection.shake.file, &event);
}

static void begin_attempt(qn__socket_transport *transport, qn__peer *peer, double now) {
    qn__reconnection *d = &peer->reconnection;
    const double half = transport->rank_timeout / 2, trip = 4 * peer->best;
    const double least = ATTEMPT_LEAST < half ? ATTEMPT_LEAST : half;
    const double part = fmax(ATTEMPT_PART * transport->rank_timeout, least);
    qn__hello hello;
    d->next = now + (trip > part ? trip : part);
    const int file = qn__socket_dial_address(&d->to, d->size);
    if (file < 0) {
        failed(transport, peer, errno, now);
        return;
    }
    d->probe = transport->rank < peer->rank;
    qn__hello_fill(&hello, QN__FOR_RESUME, transport->rank, peer->rank, transport->ranks);
    qn__handshake_begin(&d->shake, file, 1, &hello, transport->key);
    watch_attempt(transport, peer, EPOLL_CTL_ADD);
}

/* Replaces the lost connection by the new one. */
static void restored(qn__socket_transport *transport, qn__peer *peer, int file, double now) {
    const double silent = now - peer->heard;
    const int damaged = peer->reconnection.damaged;
    settle(peer);
    qn__buffer_drop(peer->body);
    peer->body = NULL;
    peer->stage_have = peer->body_have = 0;
    qn__socket_set_options(file, 0, transport->rank_timeout);
    if (!qn__peer_link(transport, peer, file)) {
        qn__reconnect_lost(transport, peer, 0, QN__GONE_SILENT, now);
        return;
    }
    peer->heard = now;
    if (transport->events.restored && !atomic_load(&transport->ending))
        transport->events.restored(transport->events.user, peer->rank, silent, damaged);
}

/* The listener accepted, so the peer, which has the higher rank, must dial. This connection stays
 * open to detect the end of the peer's process. */
static void probe_connected(qn__socket_transport *transport, qn__peer *peer, double now) {
    char byte;
    qn__reconnection *d = &peer->reconnection;
    const ssize_t got = recv(d->shake.file, &byte, 1, MSG_DONTWAIT);
    if (got == 0 || (got < 0 && errno != EAGAIN && errno != EWOULDBLOCK)) {
        try_again(transport, peer, now);
        return;
    }
    d->next = INFINITY;
    d->shake.state = QN__HANDSHAKE_READ;
    watch_attempt(transport, peer, EPOLL_CTL_MOD);
}

/* The peer has given up or evicted this rank. */
static void refused_by_peer(qn__socket_transport *transport, qn__peer *peer) {
    const int evicted = strcmp(peer->reconnection.shake.why, EVICTED) == 0;
    settle(peer);
    if (evicted && !atomic_load(&transport->ending) && !atomic_load(&peer->evicted))
        transport->events.evicted(transport->events.user, peer->rank, EVICTED);
    qn__watch_gone(transport, peer, QN__GONE_SILENT);
}

void qn__reconnect_attempt(qn__socket_transport *transport, qn__peer *peer, double now) {
    qn__reconnection *d = &peer->reconnection;
    int error = 0;
    socklen_t size = sizeof error;
    if (d->shake.file < 0)
        return;
    if (getsockopt(d->shake.file, SOL_SOCKET, SO_ERROR, &error, &size) == 0 && error) {
        failed(transport, peer, error, now);
        return;
    }
    if (d->probe) {
        probe_connected(transport, peer, now);
        return;
    }
    const qn__handshake_state state = qn__handshake_go(&d->shake);
    const int file = d->shake.file;
    if (state == QN__HANDSHAKE_DONE && d->shake.other.from == peer->rank) {
        epoll_ctl(transport->poll_file, EPOLL_CTL_DEL, file, NULL);
        d->shake.file = -1;
        restored(transport, peer, file, now);
    } else if (state == QN__HANDSHAKE_REFUSED) {
        refused_by_peer(transport, peer);
    } else if (state >= QN__HANDSHAKE_ASK) {
        try_again(transport, peer, now);
    } else {
        watch_attempt(transport, peer, EPOLL_CTL_MOD);
    }
}

/* --------------------------------------------------------------------------------------- accept */

static const char *decide(void *user, const qn__hello *other) {
    const qn__socket_transport *transport = user;
    if (other->purpose != QN__FOR_RESUME || other->to != transport->rank ||
        other->ranks != transport->ranks || other->from <= transport->rank ||
        other->from >= transport->ranks)
        return "another rank was meant";
    const qn__peer *peer = &transport->peer[other->from];
    if (atomic_load(&peer->evicted))
        return EVICTED;
    if (peer->local || peer->gone || peer->ended)
        return "this rank goes on without that one";
    return NULL;
}

static void joined(void *user, const qn__hello *other, int file, int local) {
    (void)local;
    restored(user, &((qn__socket_transport *)user)->peer[other->from], file, qn__now());
}

/* Whether the connection comes from the address of a rank; these take precedence. */
static int is_rank_address(void *user, int file) {
    const qn__socket_transport *transport = user;
    qn__address from, rank;
    qn__address_of_peer(file, &from);
    for (uint32_t r = 0; r < transport->ranks; ++r) {
        const qn__reconnection *d = &transport->peer[r].reconnection;
        if (d->size > 0 && qn__address_of_socket(&d->to, &rank) &&
            memcmp(&from, &rank, sizeof from) == 0)
            return 1;
    }
    return 0;
}

static void watch_listener(qn__socket_transport *transport, int watched) {
    struct epoll_event event = {.events = watched ? EPOLLIN : 0u, .data.u64 = QN__EPOLL_LISTENER};
    epoll_ctl(transport->poll_file, EPOLL_CTL_MOD, transport->listeners.tcp, &event);
    transport->muted = !watched;
}

/* While peers are pending, the listener is polled periodically: with all slots in use or no
 * descriptor left, a level-triggered event would wake the thread without end. */
void qn__reconnect_accept(qn__socket_transport *transport, double now) {
    if (!transport->acceptor)
        return;
    qn__acceptor_serve(transport->acceptor, now);
    if (!transport->muted)
        watch_listener(transport, 0);
    qn__reconnect_wanted(transport, now + PENDING_PAUSE);
}

/* Serves pending peers, and watches the listener again when none is left. */
static void serve_pending(qn__socket_transport *transport, double now) {
    qn__acceptor_serve(transport->acceptor, now);
    if (qn__acceptor_pending(transport->acceptor) == 0 && !transport->acceptor->refused)
        watch_listener(transport, 1);
    else
        qn__reconnect_wanted(transport, now + PENDING_PAUSE);
}

/* ---------------------------------------------------------------------------------------- state */

int qn__reconnect_possible(const qn__socket_transport *transport, qn__peer *peer, int error) {
    const int closed = error == 0 || error == ECONNRESET || error == EPIPE;
    return !peer->local && peer->reconnection.size > 0 && !peer->gone && !peer->ended &&
           !atomic_load(&peer->evicted) && peer->damaged <= DAMAGED_MOST &&
           !(closed && atomic_load(&transport->ending) && qn__peer_all_arrived(peer));
}

void qn__reconnect_lost(qn__socket_transport *transport, qn__peer *peer, int closed,
                        qn__loss_kind as, double now) {
    qn__reconnection *d = &peer->reconnection;
    qn__peer_unlink(transport, peer);
    end_attempt(peer);
    d->ended_as = as;
    d->closed = closed;
    d->next = now;
    qn__reconnect_wanted(transport, now);
}

void qn__reconnect_wanted(qn__socket_transport *transport, double now) {
    if (now < transport->next_try)
        transport->next_try = now;
}

/* Handles one peer. Returns the time of its next check; INFINITY: none. */
static double look_after(qn__socket_transport *transport, qn__peer *peer, double now) {
    qn__reconnection *d = &peer->reconnection;
    const int wanted = !peer->local && d->size > 0 && !peer->gone && !peer->ended &&
                       !atomic_load(&peer->evicted) &&
                       (peer->file < 0 || now - peer->heard > qn__watch_patience(transport));
    const int dials = transport->rank > peer->rank || d->closed;
    if (!wanted) {
        end_attempt(peer);
        return INFINITY;
    }
    if (dials && now >= d->next) {
        end_attempt(peer);
        begin_attempt(transport, peer, now);
    }
    return dials ? d->next : INFINITY;
}

void qn__reconnect_tick(qn__socket_transport *transport, double now) {
    if (now < transport->next_try)
        return;
    double next = INFINITY;
    for (uint32_t r = 0; r < transport->ranks; ++r)
        if (r != transport->rank) {
            const double at = look_after(transport, &transport->peer[r], now);
            next = at < next ? at : next;
        }
    transport->next_try = next;
    if (transport->muted)
        serve_pending(transport, now);
}

/* Half of the free descriptors; the other half is for files. */
static uint32_t slots(uint32_t ranks) {
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0)
        return QN__PENDING_PEERS;
    const uint64_t used = ranks + FILES;
    const uint64_t some = limit.rlim_cur > used ? (limit.rlim_cur - used) / 2 : 0;
    return some < SLOTS_LEAST         ? SLOTS_LEAST
           : some > QN__PENDING_PEERS ? QN__PENDING_PEERS
                                      : (uint32_t)some;
}

qn_status qn__reconnect_open(qn__socket_transport *transport, const qn__transport_setup *setup,
                             qn_error *err) {
    transport->next_try = INFINITY;
    memcpy(transport->key, setup->key, sizeof transport->key);
    for (uint32_t r = 0; r < transport->ranks; ++r) {
        qn__reconnection *d = &transport->peer[r].reconnection;
        socklen_t size = sizeof d->to;
        d->shake.file = -1;
        if (setup->link[r].local || setup->link[r].file < 0 || setup->link[r].port == 0 ||
            getpeername(setup->link[r].file, (struct sockaddr *)&d->to, &size) != 0)
            continue;
        d->size = size;
        if (d->to.ss_family == AF_INET)
            ((struct sockaddr_in *)&d->to)->sin_port = htons(setup->link[r].port);
        else
            ((struct sockaddr_in6 *)&d->to)->sin6_port = htons(setup->link[r].port);
    }
    if (transport->listeners.tcp < 0)
        return QN_OK;
    transport->acceptor = qn__alloc(1, sizeof *transport->acceptor, err);
    if (!transport->acceptor)
        return QN_MEMORY;
    transport->acceptor->listeners = &transport->listeners;
    transport->acceptor->key = transport->key;
    transport->acceptor->user = transport;
    transport->acceptor->decide = decide;
    transport->acceptor->joined = joined;
    transport->acceptor->is_rank_address = is_rank_address;
    transport->acceptor->slots = slots(transport->ranks);
    qn__hello_fill(&transport->acceptor->own, QN__FOR_RESUME, transport->rank, UINT32_MAX,
                   transport->ranks);
    qn__acceptor_open(transport->acceptor);
    struct epoll_event event = {.events = EPOLLIN, .data.u64 = QN__EPOLL_LISTENER};
    if (epoll_ctl(transport->poll_file, EPOLL_CTL_ADD, transport->listeners.tcp, &event) != 0)
        return qn__fail_errno(err, "watch", "the listener for the other ranks");
    return QN_OK;
}

void qn__reconnect_close(qn__socket_transport *transport) {
    for (uint32_t r = 0; r < transport->ranks; ++r)
        if (r != transport->rank)
            end_attempt(&transport->peer[r]);
    if (transport->acceptor)
        qn__acceptor_close(transport->acceptor);
    qn__free(transport->acceptor);
    qn__listeners_close(&transport->listeners);
}
