/* Labels that a reader takes one by one, as numbers or texts, and their conversion at the end.
 * Whole numbers are settled by qn__labels_settle afterwards (labels.h). */
#ifndef QN_DATA_CELLS_LABEL_VALUES_H
#define QN_DATA_CELLS_LABEL_VALUES_H

#include "data/cells/text_set.h"
#include "data/table/data.h"

/* For a label that is not a class number. */
#define QN__QUANTITIES_REMEDY "where labels are quantities, set `data.task` to regress"
#define QN__LABEL_RANGE_REMEDY                                                                     \
    "classes with such numbers must be texts, such as id2147483648; " QN__QUANTITIES_REMEDY

/* Makes space for data->labels, or for data->targets, with a schema that says what they are. */
qn_status qn__data_need_labels(qn_data *data, qn_error *err);
qn_status qn__data_need_targets(qn_data *data, qn_error *err);

/* Makes labels or targets of finite numbers, one for each item: class numbers when all are whole,
 * else targets, or with `task` "classify" classes with names (docs/exactness.md 2.1.5). `task` may
 * be NULL. QN_INPUT, without place and remedy: the label of *item cannot be a class. */
qn_status qn__labels_from_numbers(qn_data *data, const double *number, const char *task,
                                  uint64_t *item, qn_error *err);

/* data->labels are numbers of texts in the order of appearance (text_column.h): they become those
 * of classes, which take their names from `texts`. */
qn_status qn__labels_from_texts(qn_data *data, qn__text_set *texts, qn_error *err);

#endif
