/* /v1/completions, /v1/chat/completions, /v1/embeddings and /v1/models, as clients of OpenAI's
 * interface call them. */
#ifndef QN_SERVE_TEXT_TEXT_ROUTES_H
#define QN_SERVE_TEXT_TEXT_ROUTES_H

#include "predict/generate/text_service.h"
#include "serve/http/server.h"
#include "serve/models/models.h"

/* What a server keeps for these routes; it stays where it is. */
typedef struct qn__text_routes {
    const qn_compute *compute; /* NULL: the defaults */
    const char *embeddings; /* the layer of embeddings, as qn__layer_name_read; NULL: its usual */
    qn__texts_options options;
    qn__models *models;
    qn__part_maker maker;
    long long begun; /* seconds since 1970 */
} qn__text_routes;

/* Before the first model. The caller has set the members up to `options`. */
void qn__text_routes_add(qn__text_routes *routes, qn__http *http, qn__models *models);

#endif
