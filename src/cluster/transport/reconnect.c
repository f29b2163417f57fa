/* TCP connections that are lost or silent, made again.
 *
 * A network that is away for some seconds leaves connections behind that come back much later than
 * it does: TCP doubles its pauses. So when a rank was not heard for some pings, a second connection
 * to it is tried, over and over, until one of them works or rank_timeout is over. Of two ranks the
 * higher one dials, as when all met. Both prove that they hold the run's key; then each says what
 * it has received, and the rest is sent again.
 *
 * When the system of the other side has closed a connection, its process has ended, or a box on the
 * way lied. So its listener is tried at once: where nobody listens any more, the rank is dead. As
 * long as there is no such answer nothing is certain, and all goes on as after any other loss. */
#include "cluster/transport/socket_state.h"

#include "base/clock.h"
#include "base/memory.h"

#include <errno.h>
#include <math.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <unistd.h>

/* Seconds of one attempt: a part of rank_timeout, and at least so many unless that is half of it.
 * Attempts are short: what is sent while the network is away is lost, and its next repetition comes
 * too late. */
static const double ATTEMPT_PART = 1.0 / 80, ATTEMPT_LEAST = 0.05;
/* Seconds between two looks at those who came to the listener. */
static const double GUEST_PAUSE = 0.005;
/* Seconds before the next attempt, when one was closed by a process that may be ending. */
static const double AGAIN_PAUSE = 0.0005;
/* What a rank hears that was expelled. */
static const char EXPELLED[] = "the other ranks go on without this one";
/* Damaged frames of one rank after which it is given up. */
enum { DAMAGED_MOST = 3 };
/* Descriptors that a run needs beside its connections, about; the fewest places for who dials. */
enum { FILES = 32, PLACES_LEAST = 2 };

/* ------------------------------------------------------------------------------------ attempts */

static void end_attempt(qn__peer *peer) {
    if (peer->redial.shake.file >= 0)
        close(peer->redial.shake.file);
    peer->redial.shake.file = -1;
}

static void settle(qn__peer *peer) {
    end_attempt(peer);
    peer->redial.closed = peer->redial.damaged = 0;
}

static void has_ended(qn__sockets_post *post, qn__peer *peer) {
    settle(peer);
    qn__mail_close(post, peer);
    qn__watch_gone(post, peer, peer->redial.ended_as);
}

/* The other side closed this attempt. A process that is ending may have taken it just before. */
static void try_again(qn__sockets_post *post, qn__peer *peer, double now) {
    end_attempt(peer);
    if (peer->redial.closed) {
        peer->redial.next = now + AGAIN_PAUSE;
        qn__reconnect_wanted(post, peer->redial.next);
    }
}

/* Nobody listens where that rank did. Only together with the end of its connection does this tell
 * that it has ended: a firewall may say the same. */
static void failed(qn__sockets_post *post, qn__peer *peer, int error, double now) {
    end_attempt(peer);
    if (peer->redial.closed && error == ECONNREFUSED)
        has_ended(post, peer);
    else if (peer->redial.closed && error == ECONNRESET)
        try_again(post, peer, now);
}

static void watch_attempt(qn__sockets_post *post, const qn__peer *peer, int operation) {
    const int writes = peer->redial.shake.state == QN__SHAKE_WRITE;
    struct epoll_event event = {.events = writes ? EPOLLOUT : EPOLLIN,
                                .data.u64 = QN__EPOLL_ATTEMPT | peer->rank};
    epoll_ctl(post->poll_file, operation, peer->redial.shake.file, &event);
}

static void begin_attempt(qn__sockets_post *post, qn__peer *peer, double now) {
    qn__redial *d = &peer->redial;
    const double half = post->rank_timeout / 2, trip = 4 * peer->best;
    const double least = ATTEMPT_LEAST < half ? ATTEMPT_LEAST : half;
    const double part = fmax(ATTEMPT_PART * post->rank_timeout, least);
    qn__hello hello;
    d->next = now + (trip > part ? trip : part);
    const int file = qn__meet_dial_socket(&d->to, d->size);
    if (file < 0) {
        failed(post, peer, errno, now);
        return;
    }
    d->probe = post->rank < peer->rank;
    qn__hello_fill(&hello, QN__FOR_RESUME, post->rank, peer->rank, post->ranks);
    qn__shake_begin(&d->shake, file, 1, &hello, post->key);
    watch_attempt(post, peer, EPOLL_CTL_ADD);
}

/* The connection is there: all goes on over it. */
static void restored(qn__sockets_post *post, qn__peer *peer, int file, double now) {
    const double silent = now - peer->heard;
    const int damaged = peer->redial.damaged;
    settle(peer);
    qn__parcel_drop(peer->body);
    peer->body = NULL;
    peer->stage_have = peer->body_have = 0;
    qn__post_set_options(file, 0, post->rank_timeout);
    if (!qn__mail_link(post, peer, file)) {
        qn__reconnect_lost(post, peer, 0, QN__GONE_SILENT, now);
        return;
    }
    peer->heard = now;
    if (post->events.restored && !atomic_load(&post->ending))
        post->events.restored(post->events.user, peer->rank, silent, damaged);
}

/* Somebody listens, so it is that one's turn to dial. This connection stays open: its end tells of
 * the process there, which may have been about to end. */
static void probe_connected(qn__sockets_post *post, qn__peer *peer, double now) {
    char byte;
    qn__redial *d = &peer->redial;
    const ssize_t got = recv(d->shake.file, &byte, 1, MSG_DONTWAIT);
    if (got == 0 || (got < 0 && errno != EAGAIN && errno != EWOULDBLOCK)) {
        try_again(post, peer, now);
        return;
    }
    d->next = INFINITY;
    d->shake.state = QN__SHAKE_READ;
    watch_attempt(post, peer, EPOLL_CTL_MOD);
}

/* It goes on without this rank, for itself or with the others. */
static void refused_by_peer(qn__sockets_post *post, qn__peer *peer) {
    const int expelled = strcmp(peer->redial.shake.why, EXPELLED) == 0;
    settle(peer);
    if (expelled && !atomic_load(&post->ending) && !atomic_load(&peer->expelled))
        post->events.expelled(post->events.user, peer->rank, EXPELLED);
    qn__watch_gone(post, peer, QN__GONE_SILENT);
}

void qn__reconnect_attempt(qn__sockets_post *post, qn__peer *peer, double now) {
    qn__redial *d = &peer->redial;
    int error = 0;
    socklen_t size = sizeof error;
    if (d->shake.file < 0)
        return;
    if (getsockopt(d->shake.file, SOL_SOCKET, SO_ERROR, &error, &size) == 0 && error) {
        failed(post, peer, error, now);
        return;
    }
    if (d->probe) {
        probe_connected(post, peer, now);
        return;
    }
    const qn__shake_state state = qn__shake_go(&d->shake);
    const int file = d->shake.file;
    if (state == QN__SHAKE_DONE && d->shake.other.from == peer->rank) {
        epoll_ctl(post->poll_file, EPOLL_CTL_DEL, file, NULL);
        d->shake.file = -1;
        restored(post, peer, file, now);
    } else if (state == QN__SHAKE_REFUSED) {
        refused_by_peer(post, peer);
    } else if (state >= QN__SHAKE_ASK) {
        try_again(post, peer, now);
    } else {
        watch_attempt(post, peer, EPOLL_CTL_MOD);
    }
}

/* -------------------------------------------------------------------------- those who dial here */

static const char *decide(void *user, const qn__hello *other) {
    const qn__sockets_post *post = user;
    if (other->purpose != QN__FOR_RESUME || other->to != post->rank ||
        other->ranks != post->ranks || other->from <= post->rank || other->from >= post->ranks)
        return "another rank was meant";
    const qn__peer *peer = &post->peer[other->from];
    if (atomic_load(&peer->expelled))
        return EXPELLED;
    if (peer->local || peer->gone || peer->ended)
        return "this rank goes on without that one";
    return NULL;
}

static void joined(void *user, const qn__hello *other, int file, int local) {
    (void)local;
    restored(user, &((qn__sockets_post *)user)->peer[other->from], file, qn__now());
}

/* Whether it comes from the address of a rank: such a one goes before strangers. */
static int knows(void *user, int file) {
    const qn__sockets_post *post = user;
    qn__address from, rank;
    qn__address_of_peer(file, &from);
    for (uint32_t r = 0; r < post->ranks; ++r) {
        const qn__redial *d = &post->peer[r].redial;
        if (d->size > 0 && qn__address_of_socket(&d->to, &rank) &&
            memcmp(&from, &rank, sizeof from) == 0)
            return 1;
    }
    return 0;
}

static void watch_listener(qn__sockets_post *post, int watched) {
    struct epoll_event event = {.events = watched ? EPOLLIN : 0u, .data.u64 = QN__EPOLL_LISTENER};
    epoll_ctl(post->poll_file, EPOLL_CTL_MOD, post->ears.tcp, &event);
    post->muted = !watched;
}

/* The listener is looked at only now and then while somebody is there: with all places taken, or no
 * descriptor left, it would wake the thread without end. */
void qn__reconnect_accept(qn__sockets_post *post, double now) {
    if (!post->door)
        return;
    qn__door_serve(post->door, now);
    if (!post->muted)
        watch_listener(post, 0);
    qn__reconnect_wanted(post, now + GUEST_PAUSE);
}

/* Goes on with those who came, and watches the listener again when nobody is there. */
static void serve_guests(qn__sockets_post *post, double now) {
    qn__door_serve(post->door, now);
    if (qn__door_guests(post->door) == 0 && !post->door->refused)
        watch_listener(post, 1);
    else
        qn__reconnect_wanted(post, now + GUEST_PAUSE);
}

/* ------------------------------------------------------------------------------------- all along
 */

int qn__reconnect_possible(const qn__sockets_post *post, qn__peer *peer, int error) {
    const int closed = error == 0 || error == ECONNRESET || error == EPIPE;
    return !peer->local && peer->redial.size > 0 && !peer->gone && !peer->ended &&
           !atomic_load(&peer->expelled) && peer->damaged <= DAMAGED_MOST &&
           !(closed && atomic_load(&post->ending) && qn__mail_is_there(peer));
}

void qn__reconnect_lost(qn__sockets_post *post, qn__peer *peer, int closed, qn__going as,
                        double now) {
    qn__redial *d = &peer->redial;
    qn__mail_unlink(post, peer);
    end_attempt(peer);
    d->ended_as = as;
    d->closed = closed;
    d->next = now;
    qn__reconnect_wanted(post, now);
}

void qn__reconnect_wanted(qn__sockets_post *post, double now) {
    if (now < post->next_try)
        post->next_try = now;
}

/* What is to be done about one rank. Returns the moment of the next look; INFINITY: none. */
static double look_after(qn__sockets_post *post, qn__peer *peer, double now) {
    qn__redial *d = &peer->redial;
    const int wanted = !peer->local && d->size > 0 && !peer->gone && !peer->ended &&
                       !atomic_load(&peer->expelled) &&
                       (peer->file < 0 || now - peer->heard > qn__watch_patience(post));
    const int dials = post->rank > peer->rank || d->closed;
    if (!wanted) {
        end_attempt(peer);
        return INFINITY;
    }
    if (dials && now >= d->next) {
        end_attempt(peer);
        begin_attempt(post, peer, now);
    }
    return dials ? d->next : INFINITY;
}

void qn__reconnect_tick(qn__sockets_post *post, double now) {
    if (now < post->next_try)
        return;
    double next = INFINITY;
    for (uint32_t r = 0; r < post->ranks; ++r)
        if (r != post->rank) {
            const double at = look_after(post, &post->peer[r], now);
            next = at < next ? at : next;
        }
    post->next_try = next;
    if (post->muted)
        serve_guests(post, now);
}

/* Half of the descriptors that are left beside the connections: the others are for files. */
static uint32_t places(uint32_t ranks) {
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0)
        return QN__GUESTS;
    const uint64_t used = ranks + FILES;
    const uint64_t some = limit.rlim_cur > used ? (limit.rlim_cur - used) / 2 : 0;
    return some < PLACES_LEAST ? PLACES_LEAST : some > QN__GUESTS ? QN__GUESTS : (uint32_t)some;
}

qn_status qn__reconnect_open(qn__sockets_post *post, const qn__post_setup *setup, qn_error *err) {
    post->next_try = INFINITY;
    memcpy(post->key, setup->key, sizeof post->key);
    for (uint32_t r = 0; r < post->ranks; ++r) {
        qn__redial *d = &post->peer[r].redial;
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
    if (post->ears.tcp < 0)
        return QN_OK;
    post->door = qn__alloc(1, sizeof *post->door, err);
    if (!post->door)
        return QN_MEMORY;
    post->door->ears = &post->ears;
    post->door->key = post->key;
    post->door->user = post;
    post->door->decide = decide;
    post->door->joined = joined;
    post->door->knows = knows;
    post->door->places = places(post->ranks);
    qn__hello_fill(&post->door->own, QN__FOR_RESUME, post->rank, UINT32_MAX, post->ranks);
    qn__door_open(post->door);
    struct epoll_event event = {.events = EPOLLIN, .data.u64 = QN__EPOLL_LISTENER};
    if (epoll_ctl(post->poll_file, EPOLL_CTL_ADD, post->ears.tcp, &event) != 0)
        return qn__fail_errno(err, "watch", "the listener for the other ranks");
    return QN_OK;
}

void qn__reconnect_close(qn__sockets_post *post) {
    for (uint32_t r = 0; r < post->ranks; ++r)
        if (r != post->rank)
            end_attempt(&post->peer[r]);
    if (post->door)
        qn__door_close(post->door);
    qn__free(post->door);
    qn__ears_close(&post->ears);
}
