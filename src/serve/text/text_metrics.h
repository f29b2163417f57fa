/* Counts of models that continue texts, as lines of /metrics. */
#ifndef QN_SERVE_TEXT_TEXT_METRICS_H
#define QN_SERVE_TEXT_TEXT_METRICS_H

#include "base/text/text.h"
#include "serve/models/models.h"

void qn__text_metrics_add(qn__models *models, qn__text *to);

#endif
