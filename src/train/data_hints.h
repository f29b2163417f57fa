/* Hints about the training data for a person, before the training: a feature that determines the
 * label, a feature that identifies items, a class with few items. One pass over the data, with
 * memory for each feature only; it ends early when no feature is left to check. */
#ifndef QN_TRAIN_DATA_HINTS_H
#define QN_TRAIN_DATA_HINTS_H

#include "data/table/data.h"

/* Calls `tell` with each sentence. `balanced`: the classes have weights already. Fails with
 * QN_MEMORY. */
qn_status qn__data_hints(const qn_data *data, int balanced,
                         void (*tell)(void *user, const char *text), void *user, qn_error *err);

#endif
