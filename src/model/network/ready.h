/* Ready models: model texts with a name. */
#ifndef QN_MODEL_NETWORK_READY_H
#define QN_MODEL_NETWORK_READY_H

#include "model/network/network.h"

typedef struct qn__ready {
    const char *name;  /* one word in lower case */
    const char *about; /* half a line */
    qn__shape input;   /* the input that it was designed for; others may work */
    /* The layers before the last, in parts, since C promises texts of 4,095 characters only; the
     * others are NULL. "$V" stands for the number of tokens. */
    const char *body[4];
    uint32_t tokens; /* the number of tokens that it was designed for; 0: it does not read tokens */
    int whole;       /* 1: `body` has the last layer, too */
} qn__ready;

/* Row `index`, NULL after the last. */
const qn__ready *qn__ready_row(uint32_t index);

/* Whether its answers are classes of pixels. */
int qn__ready_segments(const qn__ready *row);

/* The model of this name, whose case does not matter; NULL: there is none. */
const qn__ready *qn__ready_find(const char *name, size_t size);

/* The name most similar to `word`; NULL: none is similar. */
const char *qn__ready_near(const char *word);

#endif
