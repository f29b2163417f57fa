/* AWS Signature Version 4 ("Signature Version 4 signing process", AWS General Reference): what
 * Amazon S3, and other stores with its interface, require of a request. */
#ifndef QN_STORE_SIGN_SIGNATURE_H
#define QN_STORE_SIGN_SIGNATURE_H

#include "base/error.h"
#include <stddef.h>

/* SHA-256 of nothing, for requests without a body. */
#define QN__SIGN_EMPTY "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
/* For a body that is not digested: only over HTTPS. */
#define QN__SIGN_UNSIGNED "UNSIGNED-PAYLOAD"

enum { QN__SIGN_LINE = 1024 };

/* A header that is signed: its name in lower case, its value without white space around it. */
typedef struct qn__signed_header {
    const char *name, *value;
} qn__signed_header;

typedef struct qn__signing {
    const char *method;
    const char *path;                /* as the request has it, encoded: "/bucket/a%20b" */
    const char *query;               /* its parts sorted and encoded, joined by '&'; "" without */
    const qn__signed_header *header; /* sorted by name */
    size_t headers;
    const char *payload; /* the body's SHA-256 as text, or QN__SIGN_UNSIGNED */
    const char *date;    /* "20130524T000000Z" */
    const char *region, *service;
    const char *key_id, *secret;
} qn__signing;

/* Writes the value of the header Authorization. Fails with QN_USAGE where it does not fit, or with
 * QN_MEMORY. */
qn_status qn__sign(const qn__signing *signing, char authorization[QN__SIGN_LINE], qn_error *err);

/* Writes the bytes of `text` as a URI has them: letters, digits and "-._~" stay, others become
 * "%20"; with `slashes` '/' stays, too. Returns the length, as snprintf. */
size_t qn__uri_encode(const char *text, int slashes, char *out, size_t capacity);

#endif
