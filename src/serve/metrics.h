/* Counts of requests for Prometheus: GET /metrics. */
#ifndef QN_SERVE_METRICS_H
#define QN_SERVE_METRICS_H

#include "serve/http/server.h"
#include "serve/models/models.h"
#include <quern/status.h>

typedef struct qn__metrics qn__metrics;

qn_status qn__metrics_make(qn__models *models, qn__metrics **out, qn_error *err);
/* Counts a request; any thread. */
void qn__metrics_count(qn__metrics *metrics, const qn__http_done *done);
/* The server whose requests are counted, and the route. */
void qn__metrics_add(qn__metrics *metrics, qn__http *http);
void qn__metrics_free(qn__metrics *metrics); /* accepts NULL */

#endif
