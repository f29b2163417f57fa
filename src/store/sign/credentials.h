/* The credentials of a store, found as the AWS command finds them: credentials.c has their order.
 * Those of roles and logins end some time, and are fetched anew before. */
#ifndef QN_STORE_SIGN_CREDENTIALS_H
#define QN_STORE_SIGN_CREDENTIALS_H

#include "base/error.h"
#include <stddef.h>
#include <stdint.h>

/* In secret memory (secret.h). */
typedef struct qn__credentials {
    char id[256], secret[512], token[16384]; /* token: "" without */
    char source[160];                        /* where they are from, for messages */
    int64_t expires;                         /* seconds since 1970; 0: never */
    int64_t early; /* seconds before that at which new ones are fetched; 0 in what a source gives */
    int users;
} qn__credentials;

typedef enum qn__credentials_kind {
    QN__CREDENTIALS_AWS,
    QN__CREDENTIALS_GS /* HMAC keys: GS_ACCESS_KEY_ID and GS_SECRET_ACCESS_KEY, else as AWS */
} qn__credentials_kind;

/* *out is NULL where none were found, which is not a failure: the store may be public. Release it.
 * Fails with QN_IO or QN_INPUT where a source that is configured cannot give them, QN_UNSUPPORTED,
 * or QN_MEMORY. Any thread. */
qn_status qn__credentials_find(qn__credentials_kind kind, qn__credentials **out, qn_error *err);
void qn__credentials_release(qn__credentials *credentials); /* accepts NULL */
/* The store refused them as expired: the next qn__credentials_find looks again. */
void qn__credentials_drop(qn__credentials_kind kind);

#endif
