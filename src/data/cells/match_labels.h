/* The labels of a model in a table whose items have several. */
#ifndef QN_DATA_CELLS_MATCH_LABELS_H
#define QN_DATA_CELLS_MATCH_LABELS_H

#include "data/cells/match.h"

/* Where a label of the model is in a table. */
typedef struct qn__label_place {
    uint32_t label; /* of the table, from 0 */
    int ones;       /* 1: its only text is the one that means 1 to the model */
} qn__label_place;

/* Finds each label of the model among those of the table by its name. *place is an array of
 * to->schema->classes, for qn__free; NULL: they are the same labels in the same order, or one of
 * the two has no names. Fails with QN_MEMORY, or with QN_MISMATCH where the table lacks a label or
 * has texts in it that the model does not know. */
qn_status qn__match_labels(const qn__fitting *to, const qn_data *data, qn__label_place **place,
                           qn_error *err);

/* The targets of the table as the model has them: `labels` of each item. NULL if out of memory. */
qn__several *qn__place_labels(const qn_data *data, const qn__label_place *place, uint32_t labels,
                              qn_error *err);

#endif
