/* A request to /v1/completions or /v1/chat/completions from its body to the end of its answer. */
#ifndef QN_SERVE_TEXT_TEXT_JOB_H
#define QN_SERVE_TEXT_TEXT_JOB_H

#include "serve/http/server.h"
#include "serve/models/models.h"
#include "serve/text/text_ask.h"

/* Answers the request, at once or later. */
void qn__text_job_begin(qn__request *request, qn__models *models, qn__ask_kind kind);

/* Answers {"error": {"message", "type", "param", "code"}}. */
void qn__text_refuse(qn__request *request, const qn__ask_refusal *no);

/* The same for an error in words, as `say` of a route. */
void qn__text_say(qn__text *to, unsigned status, const char *words);

/* Answers that no model of that name does this, such as "continues texts". Without a name: that the
 * request does not name a model. */
void qn__text_refuse_model(qn__request *request, const char *name, const char *does);

/* Whether a model is for a route. */
typedef int qn__text_fits(const qn__served *served);
qn__text_fits qn__text_continues; /* it continues texts */

/* The model of that name, "NAME" or "NAME:VERSION", that fits. Without a name it is the only one of
 * them. NULL: there is none. */
qn__served *qn__text_model(qn__models *models, const char *name, qn__text_fits *fits);

/* Reads the body, and takes the model that it names. Returns 0 where it has answered with a
 * refusal; else the caller owns *ask and *served. */
int qn__text_begin(qn__request *request, qn__models *models, qn__ask_kind kind, qn__text_fits *fits,
                   const char *does, qn__ask *ask, qn__served **served);

#endif
