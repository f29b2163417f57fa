/* Predictions as rows of a table (docs/formats.md), for any sink. */
#ifndef QN_PREDICT_PREDICTION_ROWS_H
#define QN_PREDICT_PREDICTION_ROWS_H

#include "data/write/sink.h"
#include "predict/predictions.h"

/* The table of the predictions, for qn__prediction_table_release. */
typedef struct qn__prediction_table {
    qn__sink_table table;
    qn__sink_column *column;
    char *names; /* of the columns that have a number in their name */
} qn__prediction_table;

qn_status qn__prediction_table_make(const qn_predictions *predictions, qn__prediction_table *out,
                                    qn_error *err);
void qn__prediction_table_release(qn__prediction_table *table);

/* Adds all rows. */
qn_status qn__prediction_rows_add(const qn_predictions *predictions,
                                  const qn__prediction_table *table, qn__sink *sink, qn_error *err);

#endif
