/* What the last layer of a network that another program has trained says about its answers. */
#ifndef QN_MODEL_EXCHANGE_ANSWERS_LIKE_H
#define QN_MODEL_EXCHANGE_ANSWERS_LIKE_H

#include "data/table/data.h"
#include <quern/train.h>

/* An item with several targets; its values are those of another data set. */
typedef struct qn__answered {
    qn_data *data;    /* NULL: an item has one target */
    const char *loss; /* that of `job`, else the one that suits the last layer; NULL: the default */
} qn__answered;

/* Where the network of `job` ends with a convolution, or with a dense sigmoid layer of several
 * outputs and the loss "binary" or none, an item has several targets: then out->data is `like` with
 * such targets, and the names of its classes are those of pixels, or of labels. `like` outlives it.
 * The caller releases *out in any case. Fails with QN_USAGE (the model text) or QN_MEMORY. */
qn_status qn__answers_like(const qn_train_options *job, const qn_data *like, qn__answered *out,
                           qn_error *err);
void qn__answered_release(qn__answered *answered);

#endif
