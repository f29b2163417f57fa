/* The Open Inference Protocol, version 2, over HTTP, as Triton, KServe and MLServer speak it:
 * health, metadata, inference with JSON and with the binary extension, and the repository of
 * models. */
#ifndef QN_SERVE_INFERENCE_V2_H
#define QN_SERVE_INFERENCE_V2_H

#include "serve/http/server.h"
#include "serve/models/models.h"

void qn__v2_add(qn__http *http, qn__models *models);

#endif
