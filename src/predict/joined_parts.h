/* Predictions of the parts of a table, each by the rank that has it, as those of the whole. */
#ifndef QN_PREDICT_JOINED_PARTS_H
#define QN_PREDICT_JOINED_PARTS_H

#include "predict/predictions.h"

/* Accepts NULL. */
void qn__joined_free(qn__joined_items *joined);

#endif
