/* Requests over HTTP and HTTPS, by libcurl, repeated where a repetition helps.
 *
 * A request is repeated after a failure of the network and after answers that mean "later", with
 * growing, random pauses between, or after the pause that the server asks for. `attempt` is called
 * before each, so that its headers can be made anew: a signature, the rest of a range.
 *
 * Certificates are checked always. Messages show an address without user, password and query. */
#ifndef QN_STORE_HTTP_HTTP_H
#define QN_STORE_HTTP_HTTP_H

#include "base/error.h"
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

/* Headers of one attempt. */
typedef struct qn__http_headers {
    void *list; /* of libcurl */
    int failed; /* memory is short */
} qn__http_headers;

/* Adds "Name: value". */
void qn__http_header(qn__http_headers *headers, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

typedef struct qn__http_answer qn__http_answer;

typedef struct qn__http_request {
    const char *method; /* "GET", "HEAD", "PUT", "POST", "DELETE" */
    const char *url;
    int attempts;  /* at most; 0: as many as for a file that is being read */
    int follow;    /* redirections are followed; from https to https only */
    int fresh;     /* on a new connection: libcurl repeats by itself what it sent on one that was
                      kept and is closed without an answer; `attempt` does not see that */
    int few;       /* at most two attempts, and a second to connect: a service that is
                      probably not there */
    int for_write; /* a write needs the answer: where the program is to end, a stall is borne as
                      long as that of a request that writes */
    /* Writes the headers of an attempt; NULL: it has none. What it returns other than QN_OK ends
     * the request. */
    qn_status (*attempt)(void *user, qn__http_headers *headers, qn_error *err);
    /* The body: bytes in memory, or `give`, which writes at most `size` bytes from `offset` on and
     * returns how many, 0 for a failure. It may be asked for the same bytes again. */
    const void *body;
    uint64_t body_size;
    size_t (*give)(void *user, uint64_t offset, void *bytes, size_t size);
    /* Sees the status and the headers of an answer from 200 to 299 before its first byte; returns 0
     * to end the request with a failure. NULL: nothing is looked at. */
    int (*begin)(void *user, const qn__http_answer *answer);
    /* Takes the next bytes of an answer with a status from 200 to 299; returns 0 to end the request
     * with a failure. NULL: the answer's body goes to memory. */
    int (*take)(void *user, const void *bytes, size_t size);
    /* After a transfer that failed: 1 where all that is needed came before. NULL: never. */
    int (*is_enough)(void *user);
    void *user;             /* of the functions */
    const atomic_int *stop; /* not 0: the request ends soon, as if `take` had ended it; or NULL */
} qn__http_request;

/* More than the list of 1000 keys has. */
enum { QN__HTTP_BODY_MOST = 1 << 24 };

struct qn__http_answer {
    int status;    /* 0: there was no answer */
    char *headers; /* lines "name: value\n" of the last answer, names in lower case; or NULL */
    char *body;    /* with a NUL after it, or NULL; what `take` got is not in it */
    size_t body_size;
    int attempts;
    int stopped;      /* a function of the request ended it */
    int code;         /* of libcurl: why there was no whole answer */
    char reason[256]; /* the same for a person */
    char source[160]; /* where credentials are from that were sent; "" without */
};

/* Sends the request, again where that helps. Returns QN_OK where an answer came, of any status;
 * QN_UNSUPPORTED (libcurl is missing), QN_IO (no whole answer came), QN_MEMORY, or what `attempt`
 * returned. Release the answer in any case. Any thread. */
qn_status qn__http_send(const qn__http_request *request, qn__http_answer *answer, qn_error *err);
void qn__http_release(qn__http_answer *answer);

/* The value of a header by its name in lower case, without white space around it, written to
 * `value`; 0: the answer has no such header, or a longer one. */
int qn__http_value(const qn__http_answer *answer, const char *name, char *value, size_t capacity);

/* An address as messages show it: without user, password, query and fragment. */
void qn__http_shown(const char *url, char *shown, size_t capacity);

/* Whether an answer of this status may be another one later. */
int qn__http_is_passing(int status);

#endif
