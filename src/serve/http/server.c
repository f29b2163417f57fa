/* The server: the library's event loop, and the steps of a request. */
#include "serve/http/server.h"

#include "base/memory.h"
#include "base/system/clock.h"
#include "base/system/float_state.h"
#include "base/system/threads.h"
#include "serve/http/http_state.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

enum { YES = 1, NO = 0 };

/* ---------------------------------------------------------------------------- a request's steps */

/* A target may be a whole address: RFC 9112, section 3.2.2. */
static const char *path_of(const char *target) {
    const size_t scheme = strncasecmp(target, "http://", 7) == 0    ? 7
                          : strncasecmp(target, "https://", 8) == 0 ? 8
                                                                    : 0;
    const char *path = scheme ? strchr(target + scheme, '/') : target;
    return path ? path : "/";
}

static int begin(qn__http *http, void *connection, const char *method, const char *target,
                 const char *version, void **slot) {
    const char *path = path_of(target);
    qn__request *r = qn__request_make(http, connection, method, path);
    *slot = r;
    if (!r)
        return NO;
    if (qn__request_refuse_early(r, method, path, version) && r->brings_body)
        return qn__answer_queue(r); /* which ends the connection: the body is not read */
    qn__connection_set(http, r->place, QN__PHASE_BODY);
    return YES;
}

static void handle(qn__request *r) {
    const double limit = r->http->options.answer_seconds;
    r->due = limit > 0 ? qn__now() + limit : 0;
    atomic_store(&r->handled, 1);
    qn__connection_set(r->http, r->place, QN__PHASE_BUSY);
    atomic_fetch_add(&r->references, 1);
    if (!qn__request_decode(r))
        qn__answer_refusal(r, 400,
                           "the body is not what its Content-Encoding says: send what gzip or "
                           "zlib writes, or leave the header out");
    else if (r->too_large)
        qn__request_refuse_size(r);
    else if (r->out_of_memory) {
        qn__answer_header(r, "Retry-After", "1");
        qn__answer_refusal(r, 429, "there are too many large bodies at once");
    } else
        r->route->handle(r, r->user);
}

/* The answer, or sleep until there is one. */
static int conclude(qn__request *r) {
    pthread_mutex_lock(&r->lock);
    const int there = r->answered;
    if (!there) {
        r->suspended = 1;
        qn__mhd_functions.suspend(r->connection);
    }
    pthread_mutex_unlock(&r->lock);
    if (!there && atomic_load(&r->http->stopping))
        qn__answer_cancel(r);
    return there ? qn__answer_queue(r) : YES;
}

/* Called for the head, for each piece of the body, after the body, and after a sleep. */
static int on_request(void *user, void *connection, const char *path, const char *method,
                      const char *version, const char *bytes, size_t *size, void **slot) {
    qn__request *r = *slot;
    qn__float_state_set();
    if (!r)
        return begin(user, connection, method, path, version, slot);
    if (r->queued)
        return YES;
    if (*size > 0) {
        qn__request_add(r, bytes, *size);
        r->received += *size;
        *size = 0;
        return YES;
    }
    if (!atomic_load(&r->handled) && !r->answered)
        handle(r);
    return conclude(r);
}

static void tell(const qn__request *r, int whole, double seconds) {
    const qn__http_options *o = &r->http->options;
    const qn__http_done done = {.method = r->method,
                                .path = r->path,
                                .route = r->route ? r->route->path : "",
                                .client = r->client,
                                .model = r->model,
                                .version = r->version,
                                .received = r->received,
                                .sent = r->queued && !r->is_head ? r->sent : 0,
                                .seconds = seconds,
                                .status = r->queued ? r->status : 0,
                                .whole = whole};
    if (o->done)
        o->done(o->user, &done);
}

static void unlist(qn__request *r) {
    qn__http *http = r->http;
    pthread_mutex_lock(&http->lock);
    if (r->next)
        r->next->before = r->before;
    if (r->before)
        r->before->next = r->next;
    else
        http->requests = r->next;
    http->active--;
    pthread_cond_broadcast(&http->quiet);
    pthread_mutex_unlock(&http->lock);
}

static void on_completed(void *user, void *connection, void **slot, int how) {
    qn__http *http = user;
    qn__request *r = *slot;
    (void)connection;
    *slot = NULL;
    if (!r)
        return;
    pthread_mutex_lock(&r->lock);
    atomic_store(&r->lost, 1);
    const int whole = r->queued && how == QN__MHD_IS_WHOLE &&
                      (!r->streams || (r->ended && !atomic_load(&r->late)));
    pthread_mutex_unlock(&r->lock);
    qn__connection *place = r->place;
    qn__connection_set(http, place, QN__PHASE_IDLE);
    const double seconds = qn__now() - r->begun;
    tell(r, whole, seconds);
    unlist(r);
    qn__request_release(r);
    if (whole)
        qn__connection_answered(http, place, seconds);
}

static void on_connection(void *user, void *connection, void **slot, int closed) {
    if (closed) {
        qn__connection_close(user, *slot);
        *slot = NULL;
        return;
    }
    const int *descriptor = qn__mhd_functions.fact(connection, QN__MHD_SOCKET);
    *slot = descriptor ? qn__connection_open(user, *descriptor) : NULL;
}

/* ------------------------------------------------------------------------------------ the server
 */

static void set_up_locks(qn__http *http) {
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&http->quiet, &attributes);
    pthread_condattr_destroy(&attributes);
    pthread_mutex_init(&http->lock, NULL);
}

const char *qn__http_library(void) { return qn__optional_about(&qn__mhd_library); }

qn_status qn__http_make(const qn__http_options *options, qn__http **out, qn_error *err) {
    *out = NULL;
    const qn_status status =
        qn__optional_need(&qn__mhd_library, "serving over HTTP needs libmicrohttpd",
                          "apply the model with \"predict\" to files", err);
    qn__http *http = status == QN_OK ? qn__alloc(1, sizeof *http, err) : NULL;
    if (!http)
        return status != QN_OK ? status : QN_MEMORY;
    http->options = *options;
    http->listener = -1;
    http->several_cores = qn__cores() > 1;
    set_up_locks(http);
    *out = http;
    return QN_OK;
}

void qn__http_add(qn__http *http, const qn__route *routes, void *user) {
    if (http->tables < QN__ROUTE_TABLES)
        http->table[http->tables++] = (qn__route_table){routes, user};
}

/* Of "%41" the library makes "A". A NUL would end the path, and a slash make another one: these
 * stay as they are, so that nothing has such a name. */
static size_t unescape(void *user, void *connection, char *text) {
    char *to = text;
    (void)user, (void)connection;
    for (const char *from = text; *from; from++) {
        const int high = *from == '%' ? qn__hex_digit(from[1]) : -1;
        const int low = high >= 0 ? qn__hex_digit(from[2]) : -1;
        const int byte = high * 16 + low;
        if (low < 0 || byte == '\0' || byte == '/') {
            *to++ = *from;
            continue;
        }
        *to++ = (char)byte;
        from += 2;
    }
    *to = '\0';
    return (size_t)(to - text);
}

/* The texts of TLS are the last options; without them the first one ends the list. What the
 * library would refuse when it is strict is refused here, in words of JSON. */
static void *start(qn__http *http, int listener) {
    const qn__http_options *o = &http->options;
    const int tls = o->certificate != NULL;
    const unsigned flags =
        QN__MHD_AUTO | QN__MHD_OWN_THREADS | QN__MHD_SUSPEND | (tls ? (unsigned)QN__MHD_TLS : 0);
    return qn__mhd_functions.start(
        flags, 0, NULL, NULL, on_request, http, QN__MHD_LISTENER, listener, QN__MHD_COMPLETED,
        on_completed, (void *)http, QN__MHD_CONNECTED, on_connection, (void *)http,
        QN__MHD_CONNECTIONS, o->connections, QN__MHD_TIMEOUT, o->idle_seconds, QN__MHD_MEMORY,
        (size_t)QN__CONNECTION_BYTES, QN__MHD_STRICT, 0, QN__MHD_UNESCAPE, unescape, NULL,
        QN__MHD_POOL, o->threads > 1 ? (unsigned)o->threads : 0u,
        tls ? QN__MHD_CERTIFICATE : QN__MHD_END, o->certificate, QN__MHD_KEY, o->key, QN__MHD_END);
}

qn_status qn__http_start(qn__http *http, int listener, qn_error *err) {
    sigset_t all, before;
    sigfillset(&all); /* signals are for threads of the program */
    sigdelset(&all, SIGBUS);
    sigdelset(&all, SIGSEGV);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    http->daemon = start(http, listener);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (http->daemon)
        return QN_OK;
    close(listener);
    if (http->options.certificate)
        return qn__tls_refuse(http->options.certificate, http->options.key, err);
    qn__fail(err, QN_IO, "libmicrohttpd cannot begin to serve");
    return qn__remedy(err, QN_IO, "look at the limit of open files with \"ulimit -n\"");
}

void qn__http_tend(qn__http *http) {
    const double now = qn__now();
    pthread_mutex_lock(&http->lock);
    qn__connections_tend(http, now);
    for (qn__request *r = http->requests; r; r = r->next)
        if (atomic_load(&r->handled) && r->due > 0 && r->due < now)
            qn__answer_late(r);
    pthread_mutex_unlock(&http->lock);
}

void qn__http_close(qn__http *http) {
    if (!http->daemon || atomic_exchange(&http->closing, 1))
        return;
    http->listener = qn__mhd_functions.quiesce(http->daemon);
    if (!http->options.shared_listener) /* clients that wait are refused now, not at the end */
        shutdown(http->listener, SHUT_RDWR);
    pthread_mutex_lock(&http->lock);
    const double last = qn__now() + 1;
    for (qn__connection *c = http->connections; c; c = c->next)
        if (c->phase == QN__PHASE_FRESH && c->until > last)
            c->until = last;
    pthread_mutex_unlock(&http->lock);
}

uint64_t qn__http_late(const qn__http *http) { return atomic_load(&http->late); }

unsigned qn__http_active(qn__http *http) {
    pthread_mutex_lock(&http->lock);
    const unsigned active = http->active + qn__connections_fresh(http);
    pthread_mutex_unlock(&http->lock);
    return active;
}

void qn__http_wait(qn__http *http, double seconds) {
    const struct timespec until = qn__after(seconds);
    pthread_mutex_lock(&http->lock);
    while (http->active + qn__connections_fresh(http) > 0 &&
           pthread_cond_timedwait(&http->quiet, &http->lock, &until) == 0)
        continue;
    pthread_mutex_unlock(&http->lock);
}

void qn__http_stop(qn__http *http) {
    if (!http || !http->daemon)
        return;
    qn__http_close(http);
    atomic_store(&http->stopping, 1);
    pthread_mutex_lock(&http->lock);
    for (qn__request *r = http->requests; r; r = r->next)
        if (atomic_load(&r->handled))
            qn__answer_cancel(r);
    pthread_mutex_unlock(&http->lock);
    qn__http_wait(http, 1); /* the answers are sent */
    qn__mhd_functions.stop(http->daemon);
    http->daemon = NULL;
    if (http->listener >= 0)
        close(http->listener);
    http->listener = -1;
}

void qn__http_free(qn__http *http) {
    if (!http)
        return;
    qn__http_stop(http);
    pthread_cond_destroy(&http->quiet);
    pthread_mutex_destroy(&http->lock);
    qn__free(http);
}
