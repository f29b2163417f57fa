/* Columns and classes of a table found again, by name, in what a model was trained on. */
#ifndef QN_DATA_CELLS_MATCH_H
#define QN_DATA_CELLS_MATCH_H

#include "data/table/data.h"

/* The model that a table must fit, and how differences are reported. */
typedef struct qn__fitting {
    const qn__schema *schema; /* of the model; NULL: it has no names */
    uint32_t features;        /* of the model's table */
    uint32_t outputs;         /* of the model: class numbers are below */
    int as_trained; /* 1: the table should be the model's training data, so names that the model did
                       not store are not compared */
    const char *weight; /* the column of weights in the model's data, or NULL; it may be there */
    const char *what;   /* the table, in messages: "the test set" */
    qn_note_fn note;    /* told of columns that are ignored; may be NULL */
    void *user;
} qn__fitting;

/* Which column of the table is feature k of the model, in (*column)[k], for qn__free; NULL where
 * the columns of both are in the same order, or cannot be compared: no name is in another position.
 * A column without a name matches the only other one without. A model without names has the columns
 * "f0", "f1" and so on where the table has such a name in another position. Columns that the model
 * does not have are noted. Fails with QN_MISMATCH, which names columns that are missing, or
 * QN_MEMORY. */
qn_status qn__match_columns(const qn__fitting *to, const qn_data *data, uint32_t **column,
                            qn_error *err);

/* The model's class number for each label 0 .. qn_data_classes - 1 of the table, in (*label)[i],
 * for qn__free; -1 for a class that the model does not have. NULL where every label is the model's
 * already, and without labels. Fails with QN_MEMORY. */
qn_status qn__match_classes(const qn__fitting *to, const qn_data *data, int32_t **label,
                            qn_error *err);

/* Writes up to `most` of the table's class names that are -1 in `label`, as '"a", "b" and 3 more',
 * and returns how many items have such a class. */
uint64_t qn__unknown_classes(const qn_data *data, const int32_t *label, char *text, size_t size);

#endif
