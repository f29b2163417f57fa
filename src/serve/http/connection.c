/* Connections and how long each may take. The library closes those without traffic; a client that
 * sends a byte now and then is closed here. */
#include "base/memory.h"
#include "base/system/clock.h"
#include "serve/http/http_state.h"

#include <string.h>
#include <sys/socket.h>

/* Seconds for the whole answer to a client that reads slowly, and for a first request after the
 * server has begun to end. */
static const double WRITE_SECONDS = 300, LAST_SECONDS = 1;

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

/* Whether the client of an idle connection has said that nothing follows. The library does not look
 * again at a connection whose end came together with its last request. */
static int has_left(const qn__connection *c) {
    char byte;
    return c->phase == QN__PHASE_IDLE &&
           recv(c->descriptor, &byte, 1, MSG_PEEK | MSG_DONTWAIT) == 0;
}

void qn__http_tend(qn__http *http) {
    const double now = qn__now();
    pthread_mutex_lock(&http->lock);
    for (qn__connection *c = http->connections; c; c = c->next)
        if (c->until > 0 && has_left(c)) {
            shutdown(c->descriptor, SHUT_RDWR);
            c->until = 0;
        } else if (c->until > 0 && c->until < now) {
            end(http, c);
            c->until = 0;
        }
    pthread_mutex_unlock(&http->lock);
}
