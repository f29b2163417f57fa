/* Converts a table to the form that a model takes: columns in the model's order, labels as the
 * model's class numbers. */
#ifndef QN_DATA_PREPARE_ENCODE_H
#define QN_DATA_PREPARE_ENCODE_H

#include "data/cells/match.h"

/* What becomes of labels that name classes which the model does not have. */
typedef enum qn__unknown {
    QN__UNKNOWN_REFUSED,  /* QN_MISMATCH */
    QN__UNKNOWN_MINUS_ONE /* their label is -1, and they are noted; for prediction only */
} qn__unknown;

/* `data` is a table, not a view. Makes *made, for qn_data_close, which needs `data` alive; NULL
 * where `data` itself is what the model takes. Its columns keep the categories of `data`. Its
 * digest is that of its content. Fails with QN_MISMATCH or QN_MEMORY. */
qn_status qn__encode(const qn__fitting *to, const qn_data *data, qn__unknown unknown,
                     qn_data **made, qn_error *err);

#endif
