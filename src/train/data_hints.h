/* What the training data suggests to a person before the training: a feature that tells the label
 * by itself, a feature that names items, a class with few items. One look at the data with memory
 * for the features alone; the look ends when no feature is in question. */
#ifndef QN_TRAIN_DATA_HINTS_H
#define QN_TRAIN_DATA_HINTS_H

#include "data/table/data.h"

/* Calls `tell` with each sentence. `balanced`: the classes have weights already. Fails with
 * QN_MEMORY. */
qn_status qn__data_hints(const qn_data *data, int balanced,
                         void (*tell)(void *user, const char *text), void *user, qn_error *err);

#endif
