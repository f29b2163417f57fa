/* What the readers of bodies know of a model; for the files of this folder. */
#ifndef QN_SERVE_BATCH_BODY_STATE_H
#define QN_SERVE_BATCH_BODY_STATE_H

#include "serve/batch/bodies.h"

struct qn__body_reader {
    const qn_model *model;
    char *categories, *texts; /* lists of columns, or NULL */
    int named;                /* 1: the model's columns have names */
    int numbers;              /* qn__takes_number_rows */
};

/* 1 for a network whose columns are numbers with names, all of float32. */
int qn__takes_number_rows(const qn_model *model);
/* Reads JSON rows of such a model. Returns 0 for whatever else the body is: the readers of files
 * then decide. */
int qn__number_rows(const qn__body_reader *reader, const void *body, size_t size, qn_data **out);

#endif
