/* From the columns of a table to the inputs of a network: docs/exactness.md 2.5.
 *
 * A column of numbers gives one input, a column of categories one for each category of the model: 1
 * for the item's own, else 0. Columns keep their order. So a table of numbers without missing
 * values is its own matrix of inputs. */
#ifndef QN_DATA_PREPARE_INPUTS_H
#define QN_DATA_PREPARE_INPUTS_H

#include "data/prepare/fill.h"
#include <quern/status.h>

/* How a model sees a table. */
typedef struct qn__encoding {
    const qn__schema *table; /* of the model; NULL: `features` columns of numbers */
    uint32_t features;       /* columns */
    qn__missing missing;
    const float *fill; /* of the rules mean and median: a number for each column; else NULL */
    const struct qn__offset *offset; /* of each wide column of `table` (offsets.h); NULL: none */
    const float *idf;                /* of each input of texts (lists.h); NULL: there are none */
    int by_value;        /* 1: a number that is not a category may be one by its value (2.7); 0 for
                            training data */
    uint32_t vocabulary; /* values are numbers of tokens of a vocabulary of this size; 0: numbers */
} qn__encoding;

/* How notes about the encoding of a table are reported: one line for each column, and one line for
 * all further columns where there are many. */
typedef struct qn__encoding_notes {
    const char *what;    /* which table: "the test set" */
    const char *dropped; /* for messages: what happens to dropped items with a missing value; NULL:
                            "are left out" */
    qn_note_fn tell;     /* NULL: nothing is reported */
    void *user;
} qn__encoding_notes;

/* What to do where a value is missing. */
#define QN__MISSING_REMEDY                                                                         \
    "train with `train.missing` mean, median, zero or drop, or leave the column out with "         \
    "`data.drop`"

/* Inputs of a table with this schema (NULL: `features`), which may be more than a network has. */
uint64_t qn__inputs(const qn__schema *table, uint32_t features);

/* Makes the matrix of inputs of all items, in the type of `raw`, with the labels and the digest of
 * `raw`; the caller closes it. *out is NULL where `raw` is that matrix itself. The columns of `raw`
 * must be those of the model in its order. A category that the model does not have, and a missing
 * one, is 0 in all inputs of its column; both are told. So is a matrix of qn__inputs_large bytes or
 * more. Fails with QN_INPUT (missing values under the rules error and drop; the message names
 * column, number, item), QN_MISMATCH (a column of categories where the model has numbers),
 * QN_MEMORY (also where the matrix would take more than is available; the message names the column
 * with the most categories). */
qn_status qn__make_inputs(const qn__encoding *how, const qn_data *raw,
                          const qn__encoding_notes *notes, qn_data **out, qn_error *err);

/* Bytes of that matrix, without inputs of texts; 0 where `raw` is that matrix itself. */
double qn__inputs_bytes(const qn__encoding *how, const qn_data *raw);

/* The digest of a validation set (docs/exactness.md 2.8): that of `raw`, whose columns and labels
 * are those of the model in its order, with the model's numbers for categories. Fails with
 * QN_MISMATCH (as qn__make_inputs) or QN_MEMORY. */
qn_status qn__inputs_digest(const qn__encoding *how, const qn_data *raw, char digest[65],
                            qn_error *err);

/* The check of that memory (inputs_size.c). Notes a matrix of qn__inputs_large bytes (1 GiB; tests
 * set it) or more; `why` says where they come from. */
qn_status qn__inputs_check_size(double bytes, const char *why, const qn__encoding_notes *notes,
                                qn_error *err);
extern uint64_t qn__inputs_large;

/* Fails with QN_INPUT and the remedy when `data` has missing values; `what` names it in the
 * message. */
qn_status qn__refuse_missing(const qn_data *data, const char *what, const char *remedy,
                             qn_error *err);

/* Makes the scaling leave inputs of categories and texts unchanged: mean 0, deviation 1. Both
 * arrays have qn__inputs floats. */
void qn__keep_categories(const qn__schema *table, float *mean, float *deviation);

#endif
