#include "cluster/transport/socket_transport.h"

#include "base/clock.h"
#include "base/encoding.h"
#include "base/float_state.h"
#include "base/memory.h"
#include "cluster/transport/socket_state.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { EVENTS_AT_ONCE = 64 };

/* Between the first two looks at the others, twice as long between the next two, and so on: several
 * pings tell early how clocks differ, the quickest of them best. */
static const double FIRST_PAUSE = 0.01;

/* Pings in a rank_timeout, and the most seconds between two: an outage of the network counts from
 * the last ping before it. */
static const double PINGS = 40, PERIOD_MOST = 0.5;

/* After the last byte has left: for the others to close their ends as well. */
static const double LINGER = 0.25;

/* -------------------------------------------------------------------------------- the thread */

static void tick(qn__sockets_post *post, double now) {
    if (!atomic_load(&post->ending) && post->events.tick)
        post->events.tick(post->events.user, now);
}

static void handle(qn__sockets_post *post, const struct epoll_event *event, double now) {
    const uint64_t what = event->data.u64 >> 32 << 32;
    qn__peer *peer = &post->peer[(uint32_t)event->data.u64];
    if (what == QN__EPOLL_ATTEMPT) {
        qn__reconnect_attempt(post, peer, now);
    } else if (what == QN__EPOLL_LISTENER) {
        qn__reconnect_accept(post, now);
    } else {
        if (event->events & EPOLLOUT)
            qn__mail_push(post, peer);
        if (event->events & ~(uint32_t)EPOLLOUT)
            qn__mail_read(post, peer, now);
    }
}

/* Waits for at most `seconds`. Returns 1 when somebody called qn__post_calls.wake. */
static int serve(qn__sockets_post *post, double seconds) {
    struct epoll_event event[EVENTS_AT_ONCE];
    const double soon = post->next_try - qn__now();
    const double pause = soon < seconds ? (soon > 0 ? soon : 0) : seconds;
    const int most = pause > 0 ? (int)(pause * 1e3) + 1 : 0;
    const int count = epoll_wait(post->poll_file, event, EVENTS_AT_ONCE, most);
    const double now = qn__now();
    int woken = 0;
    qn__watch_self(post, now);
    for (int i = 0; i < count; ++i) {
        if (event[i].data.u64 == QN__EPOLL_WAKE) {
            uint64_t number;
            atomic_store(&post->woken, 0);
            (void)!read(post->wake_file, &number, sizeof number);
            woken = 1;
            continue;
        }
        handle(post, &event[i], now);
    }
    qn__reconnect_tick(post, now);
    return woken;
}

/* 1 while something has not arrived at ranks that were not given up. */
static int unsent(qn__sockets_post *post) {
    for (uint32_t r = 0; r < post->ranks; ++r)
        if (r != post->rank && !post->peer[r].gone && !qn__mail_is_there(&post->peer[r]))
            return 1;
    return 0;
}

static int open_ends(const qn__sockets_post *post) {
    for (uint32_t r = 0; r < post->ranks; ++r)
        if (post->peer[r].file >= 0 && !post->peer[r].gone)
            return 1;
    return 0;
}

/* The others learn that this rank has left: nobody has to guess whether it died. */
static void say_goodbye(qn__sockets_post *post) {
    for (uint32_t r = 0; r < post->ranks; ++r)
        if (r != post->rank && !post->peer[r].gone)
            qn__mail_last(post, r, QN__MAIL_BYE, "");
    const double until = qn__now() + post->rank_timeout;
    while (unsent(post) && qn__now() < until)
        serve(post, post->period);
    for (uint32_t r = 0; r < post->ranks; ++r)
        if (post->peer[r].file >= 0)
            shutdown(post->peer[r].file, SHUT_WR);
    const double end = qn__now() + LINGER;
    while (open_ends(post) && qn__now() < end)
        serve(post, LINGER / 10);
}

static void *post_main(void *argument) {
    qn__sockets_post *post = argument;
    double next = 0, pause = FIRST_PAUSE;
    qn__float_state_set();
    while (!atomic_load(&post->ending)) {
        double now = qn__now();
        qn__watch_self(post, now); /* before others are judged by how long they were not heard */
        if (now >= next) {
            qn__watch_others(post, now);
            tick(post, now);
            next = now + (pause < post->period ? pause : post->period);
            pause = pause < post->period ? 2 * pause : pause;
        }
        if (serve(post, next - now)) {
            now = qn__now();
            qn__watch_others(post, now);
            tick(post, now);
        }
    }
    say_goodbye(post);
    return NULL;
}

/* --------------------------------------------------------------------------------- the calls */

static void wake(qn__post *base) {
    qn__sockets_post *post = qn__sockets_of(base);
    const uint64_t one = 1;
    if (!atomic_exchange(&post->woken, 1))
        (void)!write(post->wake_file, &one, sizeof one);
}

static void expel(qn__post *base, uint32_t rank, const char *why) {
    qn__sockets_post *post = qn__sockets_of(base);
    if (rank >= post->ranks || rank == post->rank)
        return;
    atomic_store(&post->peer[rank].expelled, 1);
    qn__mail_last(post, rank, QN__MAIL_EXPEL, why);
    wake(base);
}

static double post_now(qn__post *base) {
    (void)base;
    return qn__now();
}

static const qn__post_calls CALLS = {.parcel = qn__pool_parcel,
                                     .send = qn__mail_send,
                                     .expel = expel,
                                     .wake = wake,
                                     .now = post_now,
                                     .recycle = qn__pool_recycle};

/* ----------------------------------------------------------------------- opening and closing */

static qn_status prepare(qn__sockets_post *post, const qn__post_setup *setup, qn_error *err) {
    struct epoll_event event = {.events = EPOLLIN, .data.u64 = QN__EPOLL_WAKE};
    post->poll_file = epoll_create1(EPOLL_CLOEXEC);
    post->wake_file = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (post->poll_file < 0 || post->wake_file < 0 ||
        epoll_ctl(post->poll_file, EPOLL_CTL_ADD, post->wake_file, &event) != 0)
        return qn__fail_errno(err, "watch", "the connections to the other ranks");
    for (uint32_t r = 0; r < post->ranks; ++r) {
        qn__peer *peer = &post->peer[r];
        if (peer->file < 0)
            continue;
        peer->stage = qn__alloc(QN__STAGE_BYTES, 1, err);
        if (!peer->stage)
            return QN_MEMORY;
        qn__post_set_options(peer->file, peer->local, post->rank_timeout);
        event = (struct epoll_event){.events = EPOLLIN | EPOLLRDHUP, .data.u64 = r};
        if (epoll_ctl(post->poll_file, EPOLL_CTL_ADD, peer->file, &event) != 0)
            return qn__fail_errno(err, "watch", "the connections to the other ranks");
    }
    return qn__reconnect_open(post, setup, err);
}

static void destroy(qn__sockets_post *post) {
    qn__reconnect_close(post);
    for (uint32_t r = 0; r < post->ranks; ++r) {
        qn__peer *peer = &post->peer[r];
        qn__mail_close(post, peer);
        qn__parcel_drop(peer->body);
        while (peer->loose_count > 0)
            close(peer->loose[--peer->loose_count]);
        while (post->taken[r].count > 0)
            close(post->taken[r].file[--post->taken[r].count]);
        qn__free(peer->stage);
        pthread_mutex_destroy(&peer->lock);
    }
    if (post->poll_file >= 0)
        close(post->poll_file);
    if (post->wake_file >= 0)
        close(post->wake_file);
    qn__pool_release(post);
    pthread_mutex_destroy(&post->pool_lock);
    pthread_mutex_destroy(&post->taken_lock);
    pthread_cond_destroy(&post->taken_more);
    qn__free(post->taken);
    qn__free(post->peer);
    qn__free(post);
}

/* Memory for it all; the sockets are not its yet. */
static qn__sockets_post *create(uint32_t ranks, qn_error *err) {
    qn__sockets_post *post = qn__alloc(1, sizeof *post, err);
    if (!post)
        return NULL;
    post->peer = qn__alloc(ranks, sizeof *post->peer, err);
    post->taken = post->peer ? qn__alloc(ranks, sizeof *post->taken, err) : NULL;
    if (!post->taken) {
        qn__free(post->peer);
        qn__free(post);
        return NULL;
    }
    post->base.calls = &CALLS;
    post->ranks = ranks;
    post->poll_file = post->wake_file = -1;
    pthread_condattr_t monotonic;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&post->taken_more, &monotonic);
    pthread_condattr_destroy(&monotonic);
    pthread_mutex_init(&post->pool_lock, NULL);
    pthread_mutex_init(&post->taken_lock, NULL);
    return post;
}

static void open_peer(qn__sockets_post *post, uint32_t r, const qn__post_setup *setup) {
    qn__peer *peer = &post->peer[r];
    peer->rank = r;
    peer->file = setup->link[r].file;
    peer->local = setup->link[r].local;
    peer->gone = setup->link[r].file < 0;
    peer->redial.shake.file = -1;
    qn__frame_keys(setup->key, post->rank, r, &peer->key);
    qn__frame_keys(setup->key, r, post->rank, &peer->their_key);
    pthread_mutex_init(&peer->lock, NULL);
}

qn_status qn__post_open(const qn__post_setup *setup, qn__post **out, qn_error *err) {
    *out = NULL;
    qn__sockets_post *post = create(setup->ranks, err);
    if (!post) {
        for (uint32_t r = 0; r < setup->ranks; ++r)
            if (setup->link[r].file >= 0)
                close(setup->link[r].file);
        if (setup->listener >= 0)
            close(setup->listener);
        return QN_MEMORY;
    }
    const double part = setup->rank_timeout / PINGS;
    post->rank = setup->rank;
    post->rank_timeout = setup->rank_timeout;
    post->period = part < PERIOD_MOST ? part : PERIOD_MOST;
    post->slept = -1e9;
    post->ears = (qn__ears){.tcp = setup->listener, .local = -1};
    for (uint32_t r = 0; r < setup->ranks; ++r)
        open_peer(post, r, setup);
    const qn_status status = prepare(post, setup, err);
    if (status != QN_OK) {
        destroy(post);
        return status;
    }
    *out = &post->base;
    return QN_OK;
}

qn_status qn__post_listen(qn__post *base, const qn__post_events *events, qn_error *err) {
    qn__sockets_post *post = qn__sockets_of(base);
    const double now = qn__now();
    post->events = *events;
    for (uint32_t r = 0; r < post->ranks; ++r)
        post->peer[r].heard = now;
    qn__watch_self(post, now);
    post->slept = -1e9;
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    const int error = pthread_create(&post->thread, NULL, post_main, post);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (error == 0) {
        post->started = 1;
        return QN_OK;
    }
    qn__fail(err, QN_MEMORY, "cannot start the thread that talks to the other ranks: %s",
             strerror_l(error, qn__c_locale()));
    return qn__remedy(err, QN_MEMORY, "raise the limit of processes (ulimit -u)");
}

void qn__post_close(qn__post *base) {
    if (!base)
        return;
    qn__sockets_post *post = qn__sockets_of(base);
    atomic_store(&post->ending, 1);
    if (post->started) {
        wake(base);
        pthread_join(post->thread, NULL);
    } else {
        say_goodbye(post);
    }
    destroy(post);
}

/* -------------------------------------------------------------------------- file descriptors */

qn_status qn__post_give(qn__post *base, uint32_t to, int file, qn_error *err) {
    qn__sockets_post *post = qn__sockets_of(base);
    if (to >= post->ranks || to == post->rank || !post->peer[to].local)
        return qn__fail(err, QN_UNSUPPORTED, "rank %u is on another machine: no file goes there",
                        to);
    const int copy = fcntl(file, F_DUPFD_CLOEXEC, 0);
    if (copy < 0)
        return qn__fail_errno(err, "duplicate", "a file descriptor");
    const qn__head head = {.type = QN__MAIL_FILE};
    qn__mail_queue(post, to, &head, NULL, copy);
    return QN_OK;
}

int qn__post_taken(qn__post *base, uint32_t from, double seconds) {
    qn__sockets_post *post = qn__sockets_of(base);
    if (from >= post->ranks || from == post->rank)
        return -1;
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    const double whole = (double)until.tv_nsec * 1e-9 + seconds;
    until.tv_sec += (time_t)whole;
    until.tv_nsec = (long)((whole - (double)(time_t)whole) * 1e9);
    int file = -1, late = 0;
    pthread_mutex_lock(&post->taken_lock);
    struct qn__taken *taken = &post->taken[from];
    while (taken->count == 0 && !taken->gone && !late)
        late = pthread_cond_timedwait(&post->taken_more, &post->taken_lock, &until) == ETIMEDOUT;
    if (taken->count > 0) {
        file = taken->file[0];
        taken->count--;
        memmove(taken->file, taken->file + 1, (size_t)taken->count * sizeof(int));
    }
    pthread_mutex_unlock(&post->taken_lock);
    return file;
}

/* ------------------------------------------------------------------------------- for reports */

void qn__post_bytes(const qn__post *base, uint64_t *out, uint64_t *in) {
    const qn__sockets_post *post = (const qn__sockets_post *)base;
    *out = atomic_load_explicit(&post->bytes_out, memory_order_relaxed);
    *in = atomic_load_explicit(&post->bytes_in, memory_order_relaxed);
}

double qn__post_clock(const qn__post *base, uint32_t rank) {
    const qn__sockets_post *post = (const qn__sockets_post *)base;
    if (rank >= post->ranks || rank == post->rank || post->peer[rank].local)
        return 0; /* ranks of one machine look at the same clock */
    return atomic_load_explicit(&post->peer[rank].ahead, memory_order_relaxed);
}
