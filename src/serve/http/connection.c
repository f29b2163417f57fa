/* Connections and how long each may take. The library closes those without traffic; a client that
 * sends a byte now and then is closed here. */
#include "base/memory.h"
#include "base/system/clock.h"
#include "serve/http/http_state.h"

#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>

/* Seconds for the whole answer to a client that reads slowly, and for a first request after the
 * server has begun to end. */
static const double WRITE_SECONDS = 300, LAST_SECONDS = 1;
/* From the sight of a client that has left to the end of its connection: the library may have read
 * a request as a whole, and not have said so yet. */
static const double LEFT_SECONDS = 1;

/* How long the thread of the only connection looks for its next request. Beside an answer that took
 * longer than that, the time to be woken is small. */
static const double LOOK_SECONDS = 200e-6;
/* Looking pays where the request comes while the thread looks, and no other program waits for the
 * core. MISSES looks without a request, or a core that was taken TAKEN times, within CHECK
 * requests: the thread sleeps for the next REST of them. */
enum { CHECK = 128, MISSES = 8, TAKEN = 24, REST = 1024 };

static double limit_of(const qn__http *http, qn__phase phase) {
    switch (phase) {
    case QN__PHASE_FRESH:
        return atomic_load(&http->closing) ? LAST_SECONDS : http->options.read_seconds;
    case QN__PHASE_BODY:
        return http->options.read_seconds;
    case QN__PHASE_WRITING:
        return WRITE_SECONDS;
    case QN__PHASE_IDLE:
        return http->options.idle_seconds + http->options.read_seconds;
    case QN__PHASE_BUSY:
        break;
    }
    return 0;
}

static void set(qn__http *http, qn__connection *c, qn__phase phase) {
    const double limit = limit_of(http, phase);
    c->phase = phase;
    c->until = limit > 0 ? qn__now() + limit : 0;
    c->left = 0;
}

qn__connection *qn__connection_open(qn__http *http, int descriptor) {
    qn__connection *c = qn__alloc(1, sizeof *c, NULL);
    if (!c)
        return NULL;
    c->descriptor = descriptor;
    pthread_mutex_lock(&http->lock);
    set(http, c, QN__PHASE_FRESH);
    c->next = http->connections;
    if (c->next)
        c->next->before = c;
    http->connections = c;
    atomic_fetch_add(&http->open, 1);
    pthread_mutex_unlock(&http->lock);
    return c;
}

void qn__connection_close(qn__http *http, qn__connection *c) {
    if (!c)
        return;
    pthread_mutex_lock(&http->lock);
    if (c->next)
        c->next->before = c->before;
    if (c->before)
        c->before->next = c->next;
    else
        http->connections = c->next;
    atomic_fetch_sub(&http->open, 1);
    pthread_cond_broadcast(&http->quiet);
    pthread_mutex_unlock(&http->lock);
    qn__free(c);
}

void qn__connection_set(qn__http *http, qn__connection *c, qn__phase phase) {
    if (!c)
        return;
    pthread_mutex_lock(&http->lock);
    set(http, c, phase);
    pthread_mutex_unlock(&http->lock);
}

/* Until the next request comes, or the end of the connection: then 1. */
static int look(qn__http *http, const qn__connection *c) {
    const double until = qn__now() + LOOK_SECONDS;
    char byte;
    do
        if (recv(c->descriptor, &byte, 1, MSG_PEEK | MSG_DONTWAIT) >= 0)
            return 1;
    while (atomic_load(&http->open) == 1 && qn__now() < until);
    return 0;
}

/* How often other programs took the core of this thread. */
static long times_taken(void) {
    struct rusage use;
    return getrusage(RUSAGE_THREAD, &use) == 0 ? use.ru_nivcsw : 0;
}

void qn__connection_answered(qn__http *http, qn__connection *c, double seconds) {
    if (!c || !http->several_cores || atomic_load(&http->open) != 1 || seconds > LOOK_SECONDS)
        return;
    if (c->rest > 0) {
        c->rest--;
        return;
    }
    if (c->looks++ % CHECK == 0) {
        c->rest = c->looks > 1 && times_taken() - c->taken >= TAKEN ? REST : 0;
        c->taken = times_taken();
        c->misses = 0;
    }
    c->misses += !look(http, c);
    if (c->misses == MISSES)
        c->rest = REST, c->looks = 0;
}

unsigned qn__connections_fresh(const qn__http *http) {
    unsigned count = 0;
    for (const qn__connection *c = http->connections; c; c = c->next)
        count += c->phase == QN__PHASE_FRESH;
    return count;
}

/* The library, whose thread sleeps on the descriptor, sees the end and closes it. Nothing else is
 * being written then. */
static void end(const qn__http *http, const qn__connection *c) {
    static const char late[] = "HTTP/1.1 408 Request Timeout\r\nConnection: close\r\n"
                               "Content-Length: 0\r\n\r\n";
    if (c->phase != QN__PHASE_WRITING && !http->options.certificate) {
        const ssize_t sent =
            send(c->descriptor, late, sizeof late - 1, MSG_DONTWAIT | MSG_NOSIGNAL);
        (void)sent; /* the client may have left */
    }
    shutdown(c->descriptor, SHUT_RDWR);
}

/* Whether the client, whose request is not here as a whole, has said that nothing follows. The
 * library does not look again at a connection whose end came together with other bytes. */
static int has_left(qn__connection *c, double now) {
    char byte;
    if (c->phase == QN__PHASE_BUSY || c->phase == QN__PHASE_WRITING ||
        recv(c->descriptor, &byte, 1, MSG_PEEK | MSG_DONTWAIT) != 0)
        return 0;
    c->left = c->left > 0 ? c->left : now;
    return c->phase == QN__PHASE_IDLE || now - c->left >= LEFT_SECONDS;
}

static void tend_connection(const qn__http *http, qn__connection *c, double now) {
    if (c->until > 0 && has_left(c, now))
        shutdown(c->descriptor, SHUT_RDWR);
    else if (c->until > 0 && c->until < now)
        end(http, c);
    else
        return;
    c->until = 0;
}

void qn__connections_tend(const qn__http *http, double now) {
    for (qn__connection *c = http->connections; c; c = c->next)
        tend_connection(http, c, now);
}
