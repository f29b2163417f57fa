/* The whole text of a ready model: its body and a last layer for the labels at hand. */
#ifndef QN_MODEL_RECIPE_READY_TEXT_H
#define QN_MODEL_RECIPE_READY_TEXT_H

#include "base/text/text.h"
#include "model/network/ready.h"
#include "model/recipe/recipe.h"

/* What the last layer of a model follows: the labels, and the loss. */
typedef struct qn__labels_like {
    qn__task task;
    qn__loss loss;
    uint32_t classes; /* at least 1; only of QN__TASK_CLASSIFY */
    uint32_t tokens;  /* of the data, for a model that reads tokens; 0: those of its design */
} qn__labels_like;

/* Appends the model's text: its body and a last layer for these labels. */
void qn__ready_text(const qn__ready *ready, const qn__labels_like *labels, qn__text *text);

#endif
