/* Random items for measurements. */
#ifndef QN_TRAIN_RANDOM_ITEMS_H
#define QN_TRAIN_RANDOM_ITEMS_H

#include "model/recipe/ready_text.h"
#include <quern/data.h>
#include <quern/train.h>

/* The labels that a ready model gets without data: ten classes. */
qn__labels_like qn__random_labels(void);

/* Items of these values, which are copied, with each class in turn as the label. Where the last
 * layer of the network is a convolution, an item has a mask of its size. Where the first one is an
 * embedding, items are tokens, and without labels where the last one is a convolution. */
qn_status qn__items_of(const qn_train_options *job, const qn__network *network, uint64_t items,
                       uint32_t features, const uint8_t *values, qn_data **out, qn_error *err);

/* The same of synthetic digits where items have 784 features, otherwise of random bytes: enough
 * items for several batches. */
qn_status qn__random_items(const qn_train_options *job, const qn__network *network,
                           uint32_t features, qn_data **out, qn_error *err);

#endif
