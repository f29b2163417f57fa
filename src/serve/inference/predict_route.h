/* POST /v1/predict/NAME and /v1/predict/NAME/VERSION: rows as JSON or CSV, or an image; the answer
 * is JSON. */
#ifndef QN_SERVE_INFERENCE_PREDICT_ROUTE_H
#define QN_SERVE_INFERENCE_PREDICT_ROUTE_H

#include "serve/http/server.h"
#include "serve/models/models.h"

void qn__predict_route_add(qn__http *http, qn__models *models);

#endif
