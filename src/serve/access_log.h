/* The access log: a line of JSON for each request, without bodies, queries and secrets. */
#ifndef QN_SERVE_ACCESS_LOG_H
#define QN_SERVE_ACCESS_LOG_H

#include "serve/http/server.h"
#include <quern/status.h>

void qn__access_log(qn_note_fn note, void *user, const qn__http_done *done);

#endif
