/* Ready models: model texts with a name. */
#ifndef QN_MODEL_READY_H
#define QN_MODEL_READY_H

#include "base/text.h"
#include "model/recipe.h"

/* What the last layer of a model follows: the labels, and the loss. */
typedef struct qn__labels_like {
    qn__task task;
    qn__loss loss;
    uint32_t classes; /* at least 1; only of QN__TASK_CLASSIFY */
} qn__labels_like;

typedef struct qn__ready {
    const char *name;  /* one word in lower case */
    const char *about; /* half a line */
    qn__shape input;   /* that it was designed for; others may do */
    const char *body;  /* the layers before the last */
} qn__ready;

/* Row `index`, NULL after the last. */
const qn__ready *qn__ready_row(uint32_t index);

/* The model of this name, whose case does not matter; NULL: there is none. */
const qn__ready *qn__ready_find(const char *name, size_t size);

/* The name nearest to `word`, NULL: none is near. */
const char *qn__ready_near(const char *word);

/* Appends the model's text: its body and a last layer for these labels. */
void qn__ready_text(const qn__ready *ready, const qn__labels_like *labels, qn__text *text);

#endif
