#include "cluster/transport/socket_transport.h"

#include "base/encoding.h"
#include "base/memory.h"
#include "base/system/clock.h"
#include "base/system/float_state.h"
#include "base/system/threads.h"
#include "cluster/transport/socket_state.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { EVENTS_AT_ONCE = 64 };

/* Seconds between the first two pings; the interval doubles each time. Several early pings measure
 * the clock offset, which is most exact in the fastest of them. */
static const double FIRST_PAUSE = 0.01;

/* Pings in a rank_timeout, and the maximum interval in seconds: an outage is noticed from the last
 * ping before it. */
static const double PINGS = 40, PERIOD_MOST = 0.5;

/* Seconds after the last byte was sent, in which peers can close their ends. */
static const double LINGER = 0.25;

/* ----------------------------------------------------------------------------------- the thread */

static void tick(qn__socket_transport *transport, double now) {
    if (!atomic_load(&transport->ending) && transport->events.tick)
        transport->events.tick(transport->events.user, now);
}

static void handle(qn__socket_transport *transport, const struct epoll_event *event, double now) {
    const uint64_t what = event->data.u64 >> 32 << 32;
    qn__peer *peer = &transport->peer[(uint32_t)event->data.u64];
    if (what == QN__EPOLL_ATTEMPT) {
        qn__reconnect_attempt(transport, peer, now);
    } else if (what == QN__EPOLL_LISTENER) {
        qn__reconnect_accept(transport, now);
    } else {
        if (event->events & EPOLLOUT)
            qn__peer_push(transport, peer);
        if (event->events & ~(uint32_t)EPOLLOUT)
            qn__peer_read(transport, peer, now);
    }
}

/* Waits for at most `seconds`. Returns 1 if qn__transport_calls.wake was called. */
static int serve(qn__socket_transport *transport, double seconds) {
    struct epoll_event event[EVENTS_AT_ONCE];
    const double soon = transport->next_try - qn__now();
    const double pause = soon < seconds ? (soon > 0 ? soon : 0) : seconds;
    const int most = pause > 0 ? (int)(pause * 1e3) + 1 : 0;
    const int count = epoll_wait(transport->poll_file, event, EVENTS_AT_ONCE, most);
    const double now = qn__now();
    int woken = 0;
    qn__watch_self(transport, now);
    for (int i = 0; i < count; ++i) {
        if (event[i].data.u64 == QN__EPOLL_WAKE) {
            uint64_t number;
            atomic_store(&transport->woken, 0);
            (void)!read(transport->wake_file, &number, sizeof number);
            woken = 1;
            continue;
        }
        handle(transport, &event[i], now);
    }
    qn__reconnect_tick(transport, now);
    return woken;
}

/* 1 while messages to live ranks are not acknowledged. */
static int unsent(qn__socket_transport *transport) {
    for (uint32_t r = 0; r < transport->ranks; ++r)
        if (r != transport->rank && !transport->peer[r].gone &&
            !qn__peer_all_arrived(&transport->peer[r]))
            return 1;
    return 0;
}

static int open_ends(const qn__socket_transport *transport) {
    for (uint32_t r = 0; r < transport->ranks; ++r)
        if (transport->peer[r].file >= 0 && !transport->peer[r].gone)
            return 1;
    return 0;
}

/* Notifies the others that this rank leaves, so that they need not detect it. */
static void say_goodbye(qn__socket_transport *transport) {
    for (uint32_t r = 0; r < transport->ranks; ++r)
        if (r != transport->rank && !transport->peer[r].gone)
            qn__transport_send_last(transport, r, QN__MESSAGE_BYE, "");
    const double until = qn__now() + transport->rank_timeout;
    while (unsent(transport) && qn__now() < until)
        serve(transport, transport->period);
    for (uint32_t r = 0; r < transport->ranks; ++r)
        if (transport->peer[r].file >= 0)
            shutdown(transport->peer[r].file, SHUT_WR);
    const double end = qn__now() + LINGER;
    while (open_ends(transport) && qn__now() < end)
        serve(transport, LINGER / 10);
}

static void *transport_main(void *argument) {
    qn__socket_transport *transport = argument;
    double next = 0, pause = FIRST_PAUSE;
    qn__float_state_set();
    while (!atomic_load(&transport->ending)) {
        double now = qn__now();
        qn__watch_self(transport, now); /* before the silence of other ranks is measured */
        if (now >= next) {
            qn__watch_others(transport, now);
            tick(transport, now);
            next = now + (pause < transport->period ? pause : transport->period);
            pause = pause < transport->period ? 2 * pause : pause;
        }
        if (serve(transport, next - now)) {
            now = qn__now();
            qn__watch_others(transport, now);
            tick(transport, now);
        }
    }
    say_goodbye(transport);
    return NULL;
}

/* ---------------------------------------------------------------------------------------- calls */

static void wake(qn__transport *base) {
    qn__socket_transport *transport = qn__socket_transport_of(base);
    const uint64_t one = 1;
    if (!atomic_exchange(&transport->woken, 1))
        (void)!write(transport->wake_file, &one, sizeof one);
}

static void evict(qn__transport *base, uint32_t rank, const char *why) {
    qn__socket_transport *transport = qn__socket_transport_of(base);
    if (rank >= transport->ranks || rank == transport->rank)
        return;
    atomic_store(&transport->peer[rank].evicted, 1);
    qn__transport_send_last(transport, rank, QN__MESSAGE_EVICT, why);
    wake(base);
}

static double transport_now(qn__transport *base) {
    (void)base;
    return qn__now();
}

static const qn__transport_calls CALLS = {.buffer = qn__pool_buffer,
                                          .send = qn__transport_send,
                                          .evict = evict,
                                          .wake = wake,
                                          .now = transport_now,
                                          .recycle = qn__pool_recycle};

/* ------------------------------------------------------------------------------- open and close */

static qn_status prepare(qn__socket_transport *transport, const qn__transport_setup *setup,
                         qn_error *err) {
    struct epoll_event event = {.events = EPOLLIN, .data.u64 = QN__EPOLL_WAKE};
    transport->poll_file = epoll_create1(EPOLL_CLOEXEC);
    transport->wake_file = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (transport->poll_file < 0 || transport->wake_file < 0 ||
        epoll_ctl(transport->poll_file, EPOLL_CTL_ADD, transport->wake_file, &event) != 0)
        return qn__fail_errno(err, "watch", "the connections to the other ranks");
    for (uint32_t r = 0; r < transport->ranks; ++r) {
        qn__peer *peer = &transport->peer[r];
        if (peer->file < 0)
            continue;
        peer->stage = qn__alloc(QN__STAGE_BYTES, 1, err);
        if (!peer->stage)
            return QN_MEMORY;
        qn__socket_set_options(peer->file, peer->local, transport->rank_timeout);
        event = (struct epoll_event){.events = EPOLLIN | EPOLLRDHUP, .data.u64 = r};
        if (epoll_ctl(transport->poll_file, EPOLL_CTL_ADD, peer->file, &event) != 0)
            return qn__fail_errno(err, "watch", "the connections to the other ranks");
    }
    return qn__reconnect_open(transport, setup, err);
}

static void destroy(qn__socket_transport *transport) {
    qn__reconnect_close(transport);
    for (uint32_t r = 0; r < transport->ranks; ++r) {
        qn__peer *peer = &transport->peer[r];
        qn__peer_close(transport, peer);
        qn__buffer_drop(peer->body);
        while (peer->loose_count > 0)
            close(peer->loose[--peer->loose_count]);
        while (transport->taken[r].count > 0)
            close(transport->taken[r].file[--transport->taken[r].count]);
        qn__free(peer->stage);
        pthread_mutex_destroy(&peer->lock);
    }
    if (transport->poll_file >= 0)
        close(transport->poll_file);
    if (transport->wake_file >= 0)
        close(transport->wake_file);
    qn__pool_release(transport);
    pthread_mutex_destroy(&transport->pool_lock);
    pthread_mutex_destroy(&transport->taken_lock);
    pthread_cond_destroy(&transport->taken_more);
    qn__free(transport->taken);
    qn__free(transport->peer);
    qn__free(transport);
}

/* Allocates the transport; it does not own the sockets yet. */
static qn__socket_transport *create(uint32_t ranks, qn_error *err) {
    qn__socket_transport *transport = qn__alloc(1, sizeof *transport, err);
    if (!transport)
        return NULL;
    transport->peer = qn__alloc(ranks, sizeof *transport->peer, err);
    transport->taken = transport->peer ? qn__alloc(ranks, sizeof *transport->taken, err) : NULL;
    if (!transport->taken) {
        qn__free(transport->peer);
        qn__free(transport);
        return NULL;
    }
    transport->base.calls = &CALLS;
    transport->ranks = ranks;
    transport->poll_file = transport->wake_file = -1;
    pthread_condattr_t monotonic;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&transport->taken_more, &monotonic);
    pthread_condattr_destroy(&monotonic);
    pthread_mutex_init(&transport->pool_lock, NULL);
    pthread_mutex_init(&transport->taken_lock, NULL);
    return transport;
}

static void open_peer(qn__socket_transport *transport, uint32_t r,
                      const qn__transport_setup *setup) {
    qn__peer *peer = &transport->peer[r];
    peer->rank = r;
    peer->file = setup->link[r].file;
    peer->local = setup->link[r].local;
    peer->gone = setup->link[r].file < 0;
    peer->reconnection.shake.file = -1;
    qn__frame_keys(setup->key, transport->rank, r, &peer->key);
    qn__frame_keys(setup->key, r, transport->rank, &peer->their_key);
    pthread_mutex_init(&peer->lock, NULL);
}

qn_status qn__transport_open(const qn__transport_setup *setup, qn__transport **out, qn_error *err) {
    *out = NULL;
    qn__socket_transport *transport = create(setup->ranks, err);
    if (!transport) {
        for (uint32_t r = 0; r < setup->ranks; ++r)
            if (setup->link[r].file >= 0)
                close(setup->link[r].file);
        if (setup->listener >= 0)
            close(setup->listener);
        return QN_MEMORY;
    }
    const double part = setup->rank_timeout / PINGS;
    transport->rank = setup->rank;
    transport->rank_timeout = setup->rank_timeout;
    transport->period = part < PERIOD_MOST ? part : PERIOD_MOST;
    transport->slept = -1e9;
    transport->listeners = (qn__listeners){.tcp = setup->listener, .local = -1};
    for (uint32_t r = 0; r < setup->ranks; ++r)
        open_peer(transport, r, setup);
    const qn_status status = prepare(transport, setup, err);
    if (status != QN_OK) {
        destroy(transport);
        return status;
    }
    *out = &transport->base;
    return QN_OK;
}

qn_status qn__transport_listen(qn__transport *base, const qn__transport_events *events,
                               qn_error *err) {
    qn__socket_transport *transport = qn__socket_transport_of(base);
    const double now = qn__now();
    transport->events = *events;
    for (uint32_t r = 0; r < transport->ranks; ++r)
        transport->peer[r].heard = now;
    qn__watch_self(transport, now);
    transport->slept = -1e9;
    const int error = qn__thread_start(&transport->thread, NULL, transport_main, transport);
    if (error == 0) {
        transport->started = 1;
        return QN_OK;
    }
    qn__fail(err, QN_MEMORY, "cannot start the thread that talks to the other ranks: %s",
             strerror_l(error, qn__c_locale()));
    return qn__remedy(err, QN_MEMORY, "raise the limit of processes (ulimit -u)");
}

void qn__transport_close(qn__transport *base) {
    if (!base)
        return;
    qn__socket_transport *transport = qn__socket_transport_of(base);
    atomic_store(&transport->ending, 1);
    if (transport->started) {
        wake(base);
        pthread_join(transport->thread, NULL);
    } else {
        say_goodbye(transport);
    }
    destroy(transport);
}

void qn__transport_abandon(qn__transport *base) {
    if (base)
        destroy(qn__socket_transport_of(base));
}

/* ----------------------------------------------------------------------------- file descriptors */

qn_status qn__transport_send_file(qn__transport *base, uint32_t to, int file, qn_error *err) {
    qn__socket_transport *transport = qn__socket_transport_of(base);
    if (to >= transport->ranks || to == transport->rank || !transport->peer[to].local)
        return qn__fail(err, QN_UNSUPPORTED, "rank %u is on another machine: no file goes there",
                        to);
    const int copy = fcntl(file, F_DUPFD_CLOEXEC, 0);
    if (copy < 0)
        return qn__fail_errno(err, "duplicate", "a file descriptor");
    const qn__head head = {.type = QN__MESSAGE_FILE};
    qn__transport_queue(transport, to, &head, NULL, copy);
    return QN_OK;
}

int qn__transport_receive_file(qn__transport *base, uint32_t from, double seconds) {
    qn__socket_transport *transport = qn__socket_transport_of(base);
    if (from >= transport->ranks || from == transport->rank)
        return -1;
    const struct timespec until = qn__after(seconds);
    int file = -1, late = 0;
    pthread_mutex_lock(&transport->taken_lock);
    struct qn__taken *taken = &transport->taken[from];
    while (taken->count == 0 && !taken->gone && !late)
        late = pthread_cond_timedwait(&transport->taken_more, &transport->taken_lock, &until) ==
               ETIMEDOUT;
    if (taken->count > 0) {
        file = taken->file[0];
        taken->count--;
        memmove(taken->file, taken->file + 1, (size_t)taken->count * sizeof(int));
    }
    pthread_mutex_unlock(&transport->taken_lock);
    return file;
}

/* ---------------------------------------------------------------------------------- for reports */

void qn__transport_bytes(const qn__transport *base, uint64_t *out, uint64_t *in) {
    const qn__socket_transport *transport = (const qn__socket_transport *)base;
    *out = atomic_load_explicit(&transport->bytes_out, memory_order_relaxed);
    *in = atomic_load_explicit(&transport->bytes_in, memory_order_relaxed);
}

double qn__transport_clock(const qn__transport *base, uint32_t rank) {
    const qn__socket_transport *transport = (const qn__socket_transport *)base;
    if (rank >= transport->ranks || rank == transport->rank || transport->peer[rank].local)
        return 0; /* ranks of one machine have the same clock */
    return atomic_load_explicit(&transport->peer[rank].ahead, memory_order_relaxed);
}
