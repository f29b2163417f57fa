/* One request to a store: where it goes, its signature, and what its refusals mean. */
#ifndef QN_STORE_STORE_REQUEST_H
#define QN_STORE_STORE_REQUEST_H

#include "store/address.h"
#include "store/http/http.h"
#include "store/sign/signature.h"

typedef struct qn__store_request {
    const char *method;
    int attempts;        /* at most; 0: the usual number */
    int for_write;       /* a write needs the answer (http.h) */
    const char *address; /* of the file; of a bucket its key may be another, see below */
    const char *key;     /* of a bucket: instead of the address's key; NULL: that one */
    const char *query;   /* of a bucket: sorted and encoded; NULL: none */
    /* More headers, sorted by name in lower case; of a bucket they are signed, too. */
    const qn__signed_header *header;
    size_t headers;
    const char *payload; /* SHA-256 of the body as text; NULL: of an empty body */
    const void *body;
    uint64_t body_size;
    size_t (*give)(void *user, uint64_t offset, void *bytes, size_t size);
    /* Writes the value of the header Range before each attempt: "bytes=0-9". NULL: none. */
    void (*range)(void *user, char text[64]);
    int (*begin)(void *user, const qn__http_answer *answer);
    int (*take)(void *user, const void *bytes, size_t size);
    int (*is_enough)(void *user);
    void *user; /* of the functions (http.h) */
    const atomic_int *stop;
} qn__store_request;

/* Sends it, follows a bucket to its region, and renews credentials that have ended. An answer of
 * any status is QN_OK. Otherwise as qn__http_send. */
qn_status qn__store_send(const qn__store_request *request, qn__http_answer *answer, qn_error *err);

/* The message about an answer that is not what was asked for. Returns the status: QN_INPUT (there
 * is nothing, or it may not be read) or QN_IO. */
qn_status qn__store_request_refuse(const qn__store_request *request, const qn__http_answer *answer,
                                   qn_error *err);

/* The code of a store's error, such as "NoSuchKey", from the body of an answer; "" without. */
void qn__store_error_code(const qn__http_answer *answer, char code[64]);

#endif
