/* Random items for measurements. */
#ifndef QN_TRAIN_RANDOM_ITEMS_H
#define QN_TRAIN_RANDOM_ITEMS_H

#include "model/recipe/ready_text.h"
#include <quern/data.h>

/* The labels that a ready model gets without data: ten classes. */
qn__labels_like qn__random_labels(void);

/* Random bytes, and each class in turn: enough items for several batches. */
qn_status qn__random_items(uint32_t batch, uint32_t features, uint32_t classes, qn_data **out,
                           qn_error *err);

#endif
