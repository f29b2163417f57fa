/* What the readers of bodies know of a model; for the files of this folder. */
#ifndef QN_SERVE_BATCH_BODY_STATE_H
#define QN_SERVE_BATCH_BODY_STATE_H

#include "serve/batch/bodies.h"

struct qn__body_reader {
    const qn_model *model;
    char *categories, *texts; /* lists of columns, or NULL */
    int named;                /* 1: the model's columns have names */
};

#endif
