/* What the files of this folder share: the server, its connections and its requests. */
#ifndef QN_SERVE_HTTP_HTTP_STATE_H
#define QN_SERVE_HTTP_HTTP_STATE_H

#include "serve/http/microhttpd_library.h"
#include "serve/http/server.h"
#include <pthread.h>
#include <stdatomic.h>

enum {
    QN__ROUTE_TABLES = 16,
    QN__ROUTE_VARIABLES = 2,
    QN__ANSWER_HEADERS = 8,
    QN__PATH_CAPACITY = 256, /* of a path in a log; a longer one is cut */
    QN__NAME_CAPACITY = 128,
    QN__HEAD_BYTES = 16 << 10, /* of a request */
    /* Of a connection: a head, its fields, and the head of the answer. The library clears them
     * before each request, which takes as long as the answer to a small one where they are many. */
    QN__CONNECTION_BYTES = 24 << 10
};

/* What a connection does. Each of these may last so long. */
typedef enum qn__phase {
    QN__PHASE_FRESH,   /* opened; the head of its first request has not arrived */
    QN__PHASE_BODY,    /* a body arrives */
    QN__PHASE_BUSY,    /* the request is computed, or its answer is written */
    QN__PHASE_WRITING, /* the whole answer is known */
    QN__PHASE_IDLE     /* between requests */
} qn__phase;

typedef struct qn__connection qn__connection;
struct qn__connection {
    qn__connection *next, *before;
    double until; /* when it is closed; 0: not yet known */
    double left;  /* since when the client is known to have left in this phase; 0: it is not */
    int descriptor;
    qn__phase phase;
    /* Of the thread of the connection: */
    unsigned looks;  /* for its next request */
    unsigned misses; /* of them, of late */
    unsigned rest;   /* requests until the next look */
    long taken;      /* how often other programs had taken the thread's core */
};

typedef struct qn__route_table {
    const qn__route *routes;
    void *user;
} qn__route_table;

struct qn__http {
    qn__http_options options;
    void *daemon;
    qn__route_table table[QN__ROUTE_TABLES];
    unsigned tables;
    int listener; /* after qn__http_close; -1: none */
    atomic_int closing, stopping;
    atomic_ullong bodies; /* bytes of all bodies */
    atomic_ullong count;  /* of requests */
    atomic_ullong late;   /* of them */
    atomic_uint open;     /* connections */
    int several_cores;
    pthread_mutex_t lock; /* of all below */
    pthread_cond_t quiet; /* one request less, or a connection */
    qn__connection *connections;
    qn__request *requests;
    unsigned active; /* requests */
};

/* The head of a request that the library has read, and what becomes of it. One reference is that of
 * the library, until the connection has the answer or is lost; the other that of the handler, until
 * the answer is complete. */
struct qn__request {
    qn__request *next, *before; /* all requests, by the server's lock */
    qn__http *http;
    void *connection;
    qn__connection *place;
    const qn__route *route; /* NULL: none */
    void *user;
    double begun, due; /* due: when the answer must be there; 0: whenever */
    uint64_t number;
    char *body;
    size_t size, capacity;
    char *variable[QN__ROUTE_VARIABLES];
    char *header[2 * QN__ANSWER_HEADERS];
    unsigned headers;
    uint64_t received;                 /* bytes of the body as it came */
    const struct qn__unpacker *coding; /* of the body; NULL: it is plain */
    int brings_body, too_large, out_of_memory, queued, is_head;
    atomic_int references, lost, late, handled;
    pthread_mutex_t lock; /* of all below, and of `header` */
    void *response;
    const void *whole; /* bytes of `response`, `sent` of them; NULL: pieces, or none */
    const char *type;  /* of the answer; or NULL */
    unsigned status;
    int suspended, answered, streams, ended;
    char *pieces; /* bytes that the client has not read yet begin at `read` */
    size_t written, read, piece_capacity;
    uint64_t sent;
    char method[16], path[QN__PATH_CAPACITY], client[64];
    char model[QN__NAME_CAPACITY], version[32];
    int digests; /* the answer says its digest */
};

/* routes.c: finds the row for a request, and the parts of the path; both are NULL where there is
 * none. *allowed: methods of rows with this path. Returns 0 where memory is short. */
int qn__route_find(const qn__http *http, qn__request *request, const char *method, const char *path,
                   char allowed[64]);

/* connection.c. The caller holds no lock. */
qn__connection *qn__connection_open(qn__http *http, int descriptor);
void qn__connection_close(qn__http *http, qn__connection *connection);
void qn__connection_set(qn__http *http, qn__connection *connection, qn__phase phase);
/* Closes those that take too long, or whose client has left. The caller holds the server's lock. */
void qn__connections_tend(const qn__http *http, double now);
/* The answer to a request was sent, after so many seconds. Where they are few and this connection
 * is the only one, waits a moment for its next request: to sleep and be woken on another core takes
 * longer. */
void qn__connection_answered(qn__http *http, qn__connection *connection, double seconds);
/* Those without a whole request; the caller holds the server's lock. */
unsigned qn__connections_fresh(const qn__http *http);

/* early_refusal.c: answers what is refused before the body is read. Returns 1 where it did. */
int qn__request_refuse_early(qn__request *request, const char *method, const char *path,
                             const char *version);
/* Answers 413. */
void qn__request_refuse_size(qn__request *request);

/* packed_answer.c: `whole` packed, for free(), where the client takes that and it is smaller; else
 * NULL. */
void *qn__answer_pack(qn__request *request, size_t *size, const char **coding);

/* coded_body.c: sets what a body with this Content-Encoding is read with. Returns 0 for one that is
 * not taken. */
int qn__request_coding(qn__request *request, const char *name);
/* Replaces a packed body, within the limits of bodies. Returns 0 where it cannot be read. */
int qn__request_decode(qn__request *request);

/* request.c. */
qn__request *qn__request_make(qn__http *http, void *connection, const char *method,
                              const char *path);
/* Adds to the body; what does not fit is dropped, and marked. */
void qn__request_add(qn__request *request, const char *bytes, size_t size);
void qn__request_drop_body(qn__request *request);
void qn__request_release(qn__request *request);

/* tls_refusal.c: says why the library did not begin with this certificate and key. Returns QN_IO.
 */
qn_status qn__tls_refuse(const char *certificate, const char *key, qn_error *err);

/* http_answer.c: gives the answer to the library, which the caller knows to be there. Returns what
 * the library's handler must return. */
int qn__answer_queue(qn__request *request);
/* Answers a request that has no answer yet, by the server; later answers are dropped. A stream is
 * cut off. */
void qn__answer_cancel(qn__request *request);
/* The same for an answer that is not ready in time; a stream is left to the handler. */
void qn__answer_late(qn__request *request);

#endif
