/* The server: the library's event loop, and the steps of a request. */
#include "serve/http/server.h"

#include "base/memory.h"
#include "base/system/clock.h"
#include "base/system/float_state.h"
#include "serve/http/http_state.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

enum { YES = 1, NO = 0, CONNECTION_BYTES = 32 << 10 };

/* ------------------------------------------------------------------------ before a body arrives */

/* Headers that decide where a request ends. A proxy might read several of them in another way. */
typedef struct framing {
    int lengths, encodings, hosts, chunked, unclear;
    uint64_t length;
} framing;

/* Whether a proxy might read a header that the library has not understood: the name is not a word,
 * such as "Content-Length " before the colon, or has the text of a folded line at its end. */
static int is_unclear(const char *name) {
    static const char *const framed[] = {"Content-Length", "Transfer-Encoding"};
    static const char marks[] = "!#$%&'*+-.^_`|~";
    for (const char *c = name; *c; c++)
        if (!(*c >= '0' && *c <= '9') && !((*c | 32) >= 'a' && (*c | 32) <= 'z') &&
            !strchr(marks, *c))
            return 1;
    for (size_t i = 0; i < sizeof framed / sizeof *framed; i++) {
        const size_t size = strlen(framed[i]);
        if (strncasecmp(name, framed[i], size) == 0 && name[size])
            return 1;
    }
    return !*name;
}

static int count_header(void *user, int kind, const char *name, const char *value) {
    framing *f = user;
    (void)kind;
    value = value ? value : "";
    f->unclear |= is_unclear(name);
    if (strcasecmp(name, "Content-Length") == 0) {
        f->lengths++;
        if (!qn__parse_u64(value, strlen(value), &f->length))
            f->lengths = 2;
    } else if (strcasecmp(name, "Transfer-Encoding") == 0) {
        f->encodings++;
        f->chunked = strcasecmp(value, "chunked") == 0;
    } else if (strcasecmp(name, "Host") == 0)
        f->hosts++;
    return YES;
}

/* Every byte is looked at: the time says nothing about the token. */
static int is_token(const char *token, const char *given) {
    const size_t size = strlen(token), given_size = strlen(given);
    volatile unsigned differs = size != given_size;
    for (size_t i = 0; i < given_size; i++)
        differs |= (unsigned)(unsigned char)given[i] ^ (unsigned char)token[size ? i % size : 0];
    return !differs;
}

static int has_token(qn__request *r) {
    static const char scheme[] = "Bearer ";
    const char *token = r->http->options.token;
    const char *given = qn__request_header(r, "Authorization");
    if (!token || r->route->open)
        return 1;
    return given && strncasecmp(given, scheme, sizeof scheme - 1) == 0 &&
           is_token(token, given + sizeof scheme - 1);
}

static void refuse_token(qn__request *r) {
    qn__answer_header(r, "WWW-Authenticate", "Bearer");
    qn__answer_refusal(r, 401,
                       "this server needs a token: send the header \"Authorization: "
                       "Bearer TOKEN\"");
}

/* A page of another site in the user's browser: it cannot read answers, but could unload models. */
static int is_of_other_site(qn__request *r, const char *method) {
    const char *site = qn__request_header(r, "Sec-Fetch-Site");
    return site && strcmp(site, "cross-site") == 0 && strcmp(method, "POST") == 0;
}

static void refuse_path(qn__request *r, const char *allowed) {
    if (*allowed) {
        qn__answer_header(r, "Allow", allowed);
        qn__answer_refusal(r, 405, "this path takes %s, not %s", allowed, r->method);
    } else
        qn__answer_refusal(r, 404, "there is nothing at this path");
}

/* Answers what is refused before the body is read. Returns 1 where it did. */
static int refuse_early(qn__request *r, const char *method, const char *path) {
    framing f = {0};
    char allowed[64];
    qn__mhd_functions.values(r->connection, QN__MHD_HEADERS, count_header, &f);
    r->brings_body = f.length > 0 || f.lengths > 1 || f.encodings > 0 || f.unclear;
    atomic_fetch_add(&r->references, 1); /* given up by the answer */
    if (f.unclear || f.lengths > 1 || f.encodings > 1 || f.hosts > 1 ||
        (f.lengths && f.encodings) || (f.encodings && !f.chunked)) {
        qn__answer_header(r, "Connection", "close");
        qn__answer_refusal(r, 400, "the headers do not say clearly where the request ends");
    } else if (!qn__route_find(r->http, r, method, path, allowed))
        qn__answer_refusal(r, 503, "there is not enough memory");
    else if (!r->route)
        refuse_path(r, allowed);
    else if (!has_token(r))
        refuse_token(r);
    else if (is_of_other_site(r, method))
        qn__answer_refusal(r, 403, "pages of other sites may not send requests to this server");
    else if (f.length > r->http->options.most_body)
        r->too_large = 1;
    else if (atomic_load(&r->http->stopping))
        qn__answer_refusal(r, 503, "the server ends");
    else {
        atomic_fetch_sub(&r->references, 1);
        return 0;
    }
    if (r->too_large)
        qn__answer_refusal(r, 413, "the body has more than %llu bytes",
                           (unsigned long long)r->http->options.most_body);
    return 1;
}

/* ---------------------------------------------------------------------------- a request's steps */

static int begin(qn__http *http, void *connection, const char *method, const char *path,
                 void **slot) {
    qn__request *r = qn__request_make(http, connection, method, path);
    *slot = r;
    if (!r)
        return NO;
    if (refuse_early(r, method, path) && r->brings_body)
        return qn__answer_queue(r); /* which ends the connection: the body is not read */
    qn__connection_set(http, r->place, QN__PHASE_BODY);
    return YES;
}

static void handle(qn__request *r) {
    r->handled = 1;
    qn__connection_set(r->http, r->place, QN__PHASE_BUSY);
    atomic_fetch_add(&r->references, 1);
    if (r->too_large)
        qn__answer_refusal(r, 413, "the body has more than %llu bytes",
                           (unsigned long long)r->http->options.most_body);
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
    (void)version;
    qn__float_state_set();
    if (!r)
        return begin(user, connection, method, path, slot);
    if (r->queued)
        return YES;
    if (*size > 0) {
        qn__request_add(r, bytes, *size);
        *size = 0;
        return YES;
    }
    if (!r->handled && !r->answered)
        handle(r);
    return conclude(r);
}

static void tell(const qn__request *r, int whole) {
    const qn__http_options *o = &r->http->options;
    const qn__http_done done = {.method = r->method,
                                .path = r->path,
                                .route = r->route ? r->route->path : "",
                                .client = r->client,
                                .model = r->model,
                                .version = r->version,
                                .received = r->size,
                                .sent = r->queued && !r->is_head ? r->sent : 0,
                                .seconds = qn__now() - r->begun,
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
    const int whole = r->queued && how == QN__MHD_IS_WHOLE && (!r->streams || r->ended);
    pthread_mutex_unlock(&r->lock);
    qn__connection_set(http, r->place, QN__PHASE_IDLE);
    tell(r, whole);
    unlist(r);
    qn__request_release(r);
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
    set_up_locks(http);
    *out = http;
    return QN_OK;
}

void qn__http_add(qn__http *http, const qn__route *routes, void *user) {
    if (http->tables < QN__ROUTE_TABLES)
        http->table[http->tables++] = (qn__route_table){routes, user};
}

/* The texts of TLS are the last options; without them the first one ends the list. */
static void *start(qn__http *http, int listener) {
    const qn__http_options *o = &http->options;
    const int tls = o->certificate != NULL;
    const unsigned flags =
        QN__MHD_AUTO | QN__MHD_OWN_THREADS | QN__MHD_SUSPEND | (tls ? (unsigned)QN__MHD_TLS : 0);
    return qn__mhd_functions.start(
        flags, 0, NULL, NULL, on_request, http, QN__MHD_LISTENER, listener, QN__MHD_COMPLETED,
        on_completed, (void *)http, QN__MHD_CONNECTED, on_connection, (void *)http,
        QN__MHD_CONNECTIONS, o->connections, QN__MHD_TIMEOUT, o->idle_seconds, QN__MHD_MEMORY,
        (size_t)CONNECTION_BYTES, QN__MHD_STRICT, 1, QN__MHD_POOL,
        o->threads > 1 ? (unsigned)o->threads : 0u, tls ? QN__MHD_CERTIFICATE : QN__MHD_END,
        o->certificate, QN__MHD_KEY, o->key, QN__MHD_END);
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
        if (r->handled)
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
