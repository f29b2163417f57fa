/* Answering requests over HTTP: connections, requests with whole bodies, a table of routes, and
 * answers that come at once, later from another thread, or in pieces.
 *
 *     static void show_model(qn__request *request, void *user) {
 *         const char *name = qn__request_variable(request, 0);
 *         ...
 *         qn__answer_text(request, 200, "application/json", text);
 *     }
 *     static const qn__route routes[] = {
 *         {.method = "GET", .path = "/v2/models/{model}", .handle = show_model}, {NULL}};
 *
 *     qn__http_add(http, routes, models);
 *
 * A handler runs on a thread of the server and must not wait: one that needs time keeps the request
 * and returns, and another thread answers. Each request is answered exactly once, by one of the
 * functions qn__answer_... below. Afterwards the request must not be used. */
#ifndef QN_SERVE_HTTP_SERVER_H
#define QN_SERVE_HTTP_SERVER_H

#include "base/error.h"
#include "base/text/text.h"
#include <stddef.h>
#include <stdint.h>

typedef struct qn__http qn__http;
typedef struct qn__request qn__request;

/* A row of a table of routes, which ends with a row without a method. */
typedef struct qn__route {
    const char *method; /* "GET", which answers HEAD, too, or "POST" */
    const char *path;   /* "/v2/models/{model}": {..} stands for one part that is not empty, at
                           most two of them */
    void (*handle)(qn__request *request, void *user);
    const char *query; /* of a POST: the words that its query may have, with spaces between; NULL:
                          none. The query of a GET is not looked at */
    int open;          /* 1: needs no token */
    int packs;         /* 1: its answers are packed where Accept-Encoding takes it */
    /* Writes an error as the clients of the route read it; NULL: {"error": "..."}. */
    void (*say)(qn__text *to, unsigned status, const char *words);
} qn__route;

/* What is known of a request that was answered, or whose client left. Valid during the call. */
typedef struct qn__http_done {
    const char *method, *path;   /* as the client wrote them, cut */
    const char *route;           /* the path of its row; "" where there is none */
    const char *client;          /* its address; "" where it is not known */
    const char *model, *version; /* qn__request_of_model; "": none */
    uint64_t received, sent;     /* bytes of the bodies */
    double seconds;              /* from the end of the head to the end of the answer */
    unsigned status;             /* 0: the client left before an answer */
    int whole;                   /* 1: the whole answer was sent */
} qn__http_done;

typedef struct qn__http_options {
    int threads;                     /* of the event loop, from 1 */
    unsigned connections;            /* the most at once */
    int shared_listener;             /* 1: other processes accept from the socket, too */
    uint64_t most_body, most_bodies; /* bytes of one body, and of all bodies at once */
    unsigned idle_seconds;           /* a connection without a request is closed after so many */
    double read_seconds;             /* a head and a body must be here after so many: 408 */
    double answer_seconds;           /* and the answer after so many more: 503. 0: whenever */
    const char *certificate, *key;   /* texts of PEM; NULL: plain HTTP */
    const char *token;               /* NULL: none is needed. It is not copied */
    void (*done)(void *user, const qn__http_done *done); /* from any thread; NULL: nobody asks */
    void *user;
} qn__http_options;

/* ------------------------------------------------------------------------------------- the server
 */

/* The library that answers, as qn__optional_about. */
const char *qn__http_library(void);
/* Begins without answering yet. Fails with QN_UNSUPPORTED (no libmicrohttpd) or QN_MEMORY. Texts of
 * the options stay the caller's, and valid. */
qn_status qn__http_make(const qn__http_options *options, qn__http **out, qn_error *err);
/* Adds a table of routes, which stays the caller's and valid; before qn__http_start. `user` goes to
 * its handlers. At most 16 tables. */
void qn__http_add(qn__http *http, const qn__route *routes, void *user);
/* Answers requests of a socket that listens. The socket belongs to the server from now on, also
 * after a failure: QN_IO. */
qn_status qn__http_start(qn__http *http, int listener, qn_error *err);
/* Closes connections whose request did not arrive in time, and answers requests whose answer did
 * not; to be called some times a second. */
void qn__http_tend(qn__http *http);
/* How many answers were not ready in time. */
uint64_t qn__http_late(const qn__http *http);
/* Takes no more connections. Answers from now on end their connection. */
void qn__http_close(qn__http *http);
/* Requests that are read or computed, and connections that have not sent a whole request. */
unsigned qn__http_active(qn__http *http);
/* Waits until qn__http_active is 0, at most so long. */
void qn__http_wait(qn__http *http, double seconds);
/* Ends all: requests that are not answered get the status 503, and later answers to them are
 * dropped, which needs those threads to have ended before qn__http_free. Accepts NULL. */
void qn__http_stop(qn__http *http);
void qn__http_free(qn__http *http);

/* ------------------------------------------------------------------------------------ the request
 *
 * Texts belong to the request, and are valid until it is answered. */

/* The part of the path that the variable `index` of the route, from 0, stands for. */
const char *qn__request_variable(const qn__request *request, unsigned index);
/* A value of the query, such as "page" of /list?page=2; NULL: it is not there. */
const char *qn__request_query(qn__request *request, const char *name);
/* A header; NULL: it is not there. The case of the name does not matter. */
const char *qn__request_header(qn__request *request, const char *name);
/* The whole body, with a zero byte after its end. */
const char *qn__request_body(const qn__request *request, size_t *size);
/* The number of the request in this run of the server, from 1. */
uint64_t qn__request_number(const qn__request *request);
/* Whether nobody waits for the answer: the client is known to have left, since it has closed its
 * side of the connection or does not read, or the answer is late. */
int qn__request_is_lost(qn__request *request);
/* Whether the answer was not ready after `answer_seconds`; `words` then says so. A request without
 * an answer has got one; a stream is still to be ended, with an error. */
enum { QN__LATE_WORDS = 160 };
int qn__request_is_late(const qn__request *request, char words[QN__LATE_WORDS]);

/* ------------------------------------------------------------------------------------- the answer
 *
 * From any thread. */

/* Adds a header; name and value are copied. */
void qn__answer_header(qn__request *request, const char *name, const char *value);
/* The answer will have the headers Quern-Model-Digest and, with the status 200 and all at once,
 * Quern-Answer-Digest: SHA-256 of the body. Texts are copied; `version` may be NULL. */
void qn__request_of_model(qn__request *request, const char *name, const char *version,
                          const char *digest);
/* Answers. The body belongs to the server from now on, which calls qn__free; NULL with size 0. */
void qn__answer_body(qn__request *request, unsigned status, const char *type, void *body,
                     size_t size);
/* Answers with a text, which is copied. */
void qn__answer_text(qn__request *request, unsigned status, const char *type, const char *text);
/* Answers with a growing text, which is released; with 500 where memory was short. */
void qn__answer_grown(qn__request *request, unsigned status, const char *type, qn__text *text);
/* Answers "WHAT, at WHERE: REMEDY", as the route writes errors. */
void qn__answer_error(qn__request *request, unsigned status, const qn_error *err);
void qn__answer_refusal(qn__request *request, unsigned status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* The status for an error of the library: 400 for bad input, 500 for a fault of ours, ... */
unsigned qn__answer_status(qn_status status);

/* An answer in pieces (server-sent events, and others): begin, any number of pieces, end. A piece
 * is copied, and the call does not wait. Returns 0 once the client has left, or where memory is
 * short: later pieces are dropped, and the end must still be said. */
void qn__answer_stream(qn__request *request, unsigned status, const char *type);
int qn__answer_piece(qn__request *request, const void *bytes, size_t size);
void qn__answer_end(qn__request *request);

#endif
