/* A question to a service that hands out credentials; its answer is in secret memory. */
#ifndef QN_STORE_SIGN_ASKING_H
#define QN_STORE_SIGN_ASKING_H

#include "store/http/http.h"

enum { QN__ASKING_ANSWER = 65536, QN__ASKING_URL = 2048, QN__ASKING_TOKEN = 32768 };

typedef struct qn__asking {
    const char *header, *value; /* sent with it, or NULL */
    /* Writes the headers of an attempt instead; NULL: those above. */
    qn_status (*attempt)(void *user, qn__http_headers *headers, qn_error *err);
    void *user;       /* of `attempt` */
    const char *body; /* of a POST; NULL: none */
    int few;          /* the service is probably not there (http.h) */
    /* Set by qn__ask. */
    char *answer; /* as text; qn__secret_free it. NULL before the first question */
    size_t size;
    int status;     /* of HTTP; 0: nothing answered */
    char said[320]; /* why it was refused, by the service's XML; "": it does not say */
} qn__asking;

/* The answer of an earlier question is overwritten. An answer of any status is QN_OK. Fails as
 * qn__http_send, or with QN_MEMORY. */
qn_status qn__ask(qn__asking *asking, const char *method, const char *url, qn_error *err);

/* The message about an answer without credentials. Returns QN_IO. */
qn_status qn__asking_refuse(const qn__asking *asking, const char *service, const char *url,
                            const char *remedy, qn_error *err);

/* "2026-11-30T12:00:00Z" as seconds since 1970; 0: not such a time. */
int64_t qn__seconds_of(const char *text);

#endif
