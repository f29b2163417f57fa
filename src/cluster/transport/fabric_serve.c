/* The thread of a carrier: begins transfers, and asks until they have ended. */
#include "base/memory.h"
#include "base/system/clock.h"
#include "cluster/transport/fabric_state.h"

#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <time.h>

enum { TAGS = 32768, POLLS = 200 /* without a pause */, PAUSE = 20000 /* nanoseconds */ };

/* Seconds within which sockets find the death of a rank. */
static const double GRACE = 1;

typedef struct serving {
    qn__fabric *fabric;
    const qn__carrier *carrier;
    uint32_t idle; /* polls that found nothing */
} serving;

static void leave_with(const serving *s, const char *what, int code) {
    char why[160];
    snprintf(why, sizeof why, "%s of %.80s failed with code %d", what, s->carrier->name, code);
    qn__fabric_leave(s->fabric, why);
}

/* The library has ended the transfer. */
static void give_back(qn__fabric *f, qn__fabric_job *job) {
    pthread_mutex_lock(&f->lock);
    job->with_thread = 0;
    --f->transfers;
    qn__fabric_free(job);
    pthread_cond_broadcast(&f->changed);
    pthread_mutex_unlock(&f->lock);
}

/* A body has come: delivered, unless its rank is gone or a socket has brought it. */
static void arrived(const serving *s, qn__fabric_job *job) {
    qn__fabric *f = s->fabric;
    const qn__head head = job->head;
    qn__message_buffer *body = qn__buffer_hold(job->body);
    const uint32_t from = job->peer, number = job->number;
    if (qn__siphash_lanes(&f->peer[from].theirs, body->data, body->bytes) != job->mac) {
        qn__buffer_drop(body);
        give_back(f, job);
        qn__fabric_leave(f, "a message was damaged on its way");
        return;
    }
    pthread_mutex_lock(&f->delivering);
    pthread_mutex_lock(&f->lock);
    const int due = qn__fabric_unlist(&f->peer[from].due, job);
    pthread_mutex_unlock(&f->lock);
    give_back(f, job);
    if (due) {
        const qn__head answer = {.type = QN__FABRIC_ARRIVED, .number = {number}};
        f->base->calls->send(f->base, from, &answer, NULL);
        qn__fabric_deliver(f, from, &head, body);
    } else {
        qn__buffer_drop(body);
    }
    pthread_mutex_unlock(&f->delivering);
}

/* The library may still write to its memory. Under the lock. */
static void keep_stuck(qn__fabric *f, qn__fabric_job *job) {
    job->queued = f->stuck;
    f->stuck = job;
    --f->transfers;
}

/* A transfer that failed stays listed: its rank is dead, or its body comes by a socket. Where the
 * library survives a death, sockets have a while to find it. Its memory is not used again. */
static void failed(const serving *s, qn__fabric_job *job, int code) {
    qn__fabric *f = s->fabric;
    const char *what = job->receives ? "a receipt" : "a transmission";
    pthread_mutex_lock(&f->lock);
    job->since -= f->patience - (f->patience < GRACE ? f->patience : GRACE);
    keep_stuck(f, job);
    pthread_cond_broadcast(&f->changed);
    pthread_mutex_unlock(&f->lock);
    if (!s->carrier->survives)
        leave_with(s, what, code);
}

static void begin(serving *s, qn__fabric_job *job) {
    const qn__carrier *c = s->carrier;
    const uint32_t tag = job->number % TAGS;
    const int code =
        job->receives
            ? c->receive(c->user, job->body->data, job->body->bytes, job->peer, tag, &job->transfer)
            : c->send(c->user, job->body->data, job->body->bytes, job->peer, tag, &job->transfer);
    s->idle = 0;
    if (code != 0) {
        failed(s, job, code);
        return;
    }
    job->queued = s->fabric->begun;
    s->fabric->begun = job;
}

/* Asks for each transfer. */
static void poll_all(serving *s) {
    ++s->idle;
    for (qn__fabric_job **at = &s->fabric->begun; *at;) {
        qn__fabric_job *job = *at;
        int done = 0;
        const int code = s->carrier->test(s->carrier->user, &job->transfer, &done);
        if (code == 0 && !done) {
            at = &job->queued;
            continue;
        }
        *at = job->queued;
        s->idle = 0;
        if (code != 0)
            failed(s, job, code);
        else if (job->receives)
            arrived(s, job);
        else
            give_back(s->fabric, job);
    }
}

/* Asks no more for transfers with ranks that were lost: they may never end. Under the lock. */
static void sweep(qn__fabric *f) {
    for (qn__fabric_job **at = &f->begun; *at;) {
        qn__fabric_job *job = *at;
        if (!f->peer[job->peer].gone) {
            at = &job->queued;
            continue;
        }
        *at = job->queued;
        keep_stuck(f, job);
    }
    f->swept = f->lost;
    pthread_cond_broadcast(&f->changed);
}

/* New jobs; waits for them if nothing is under way. NULL at the end: *ends is set. */
static qn__fabric_job *next_jobs(qn__fabric *f, int *ends) {
    pthread_mutex_lock(&f->lock);
    if (f->swept != f->lost)
        sweep(f);
    while (!f->left && !f->queue && !f->begun && f->stopping < 2)
        pthread_cond_wait(&f->more, &f->lock);
    *ends = f->left || f->stopping > 1;
    qn__fabric_job *jobs = *ends ? NULL : f->queue;
    if (!*ends) {
        f->queue = NULL;
        f->queue_end = &f->queue;
    }
    pthread_mutex_unlock(&f->lock);
    return jobs;
}

static void pause_after(uint32_t idle) {
    const struct timespec pause = {0, PAUSE};
    if (idle > POLLS)
        nanosleep(&pause, NULL);
    else if (idle > 0)
        sched_yield();
}

void qn__fabric_serve(void *fabric, const qn__carrier *carrier) {
    serving s = {.fabric = fabric, .carrier = carrier};
    int ends = 0;
    pthread_mutex_lock(&s.fabric->lock);
    s.fabric->survives = carrier->survives;
    pthread_mutex_unlock(&s.fabric->lock);
    while (!ends) {
        qn__fabric_job *jobs = next_jobs(s.fabric, &ends);
        while (jobs) {
            qn__fabric_job *job = jobs;
            jobs = job->queued;
            begin(&s, job);
        }
        if (!ends) {
            poll_all(&s);
            pause_after(s.idle);
        }
    }
}

/* ------------------------------------------------------------------------------- trials, the end
 */

/* One trial of `count` messages. */
static double try_once(qn__fabric *f, uint32_t to, int carried, uint64_t count, double most) {
    const qn__head head = {
        .type = QN__FABRIC_PROBE, .number = {++f->trial, count}, .bytes = QN__FABRIC_TRIAL};
    const double begun = qn__now();
    int late = 0;
    for (uint64_t i = 0; i < count; ++i) {
        qn__message_buffer *body = f->base->calls->buffer(f->base, QN__FABRIC_TRIAL);
        if (!body)
            return most;
        if (!carried)
            f->base->calls->send(f->base, to, &head, body);
        else if (!qn__fabric_carry(f, to, &head, body)) {
            qn__buffer_drop(body);
            return most;
        }
    }
    const struct timespec until = qn__after(most);
    pthread_mutex_lock(&f->lock);
    while (f->answered != head.number[0] && !f->peer[to].gone && !(carried && f->left) && !late)
        late = pthread_cond_timedwait(&f->changed, &f->lock, &until) == ETIMEDOUT;
    const int fine = f->answered == head.number[0];
    pthread_mutex_unlock(&f->lock);
    return fine ? qn__now() - begun : most;
}

double qn__fabric_try(qn__fabric *f, uint32_t rank, int carried) {
    enum { COUNT = 8, TRIALS = 3 };
    static const double LATE = 1e3, MOST = 5, LONG = 0.1;
    double least = LATE;
    /* the first message makes the connection */
    double seconds = try_once(f, rank, carried, 1, MOST);
    for (int i = 0; i < TRIALS && seconds < MOST; ++i) {
        seconds = try_once(f, rank, carried, COUNT, MOST);
        if (seconds < least && seconds < MOST)
            least = seconds;
        if (seconds > LONG)
            break;
    }
    return least;
}

/* Bodies that ranks have not received, or transfers that have not ended. Under the lock. */
static int under_way(const qn__fabric *f) {
    int some = f->transfers > 0;
    for (uint32_t r = 0; r < f->ranks; ++r)
        some |= f->peer[r].leaving != NULL;
    return some && !f->left;
}

int qn__fabric_stop(qn__fabric *f, double seconds) {
    const struct timespec until = qn__after(seconds);
    int late = 0;
    pthread_mutex_lock(&f->lock);
    f->stopping = 1;
    pthread_cond_broadcast(&f->more);
    while (under_way(f) && !late)
        late = pthread_cond_timedwait(&f->changed, &f->lock, &until) == ETIMEDOUT;
    f->stopping = 2;
    qn__fabric_say_stop(f);
    pthread_cond_broadcast(&f->more);
    const int in_order = f->lost == 0;
    pthread_mutex_unlock(&f->lock);
    return in_order;
}
