/* One request, sent once. */
#ifndef QN_STORE_HTTP_ATTEMPT_H
#define QN_STORE_HTTP_ATTEMPT_H

#include "store/http/http.h"

/* 1: it changes nothing. */
int qn__http_reads(const qn__http_request *request);

/* Sends the request once and fills the answer, which was empty or of an earlier attempt. *moved is
 * 1 where bytes of the answer's body came. Returns QN_OK (answer->code and answer->status say how
 * it went), QN_UNSUPPORTED, QN_MEMORY, or what the request's `attempt` returned. */
qn_status qn__http_attempt(const qn__http_request *request, qn__http_answer *answer, int *moved,
                           qn_error *err);

#endif
