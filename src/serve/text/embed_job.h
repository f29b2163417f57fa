/* A request to /v1/embeddings: the outputs of a layer for each text, of models that read tokens. */
#ifndef QN_SERVE_TEXT_EMBED_JOB_H
#define QN_SERVE_TEXT_EMBED_JOB_H

#include "serve/http/server.h"
#include "serve/models/models.h"

/* Answers the request, at once or later. `layer` as in qn__text_routes. */
void qn__embed_begin(qn__request *request, qn__models *models, const char *layer);

/* Whether the model has embeddings: a network of tokens. */
int qn__embed_fits(const qn__served *served);

/* How many tokens such a model reads of a text. */
uint32_t qn__embed_tokens(const qn_model *model);

#endif
