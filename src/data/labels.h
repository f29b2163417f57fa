/* What labels mean once they are read: class numbers, named classes or real targets. */
#ifndef QN_DATA_LABELS_H
#define QN_DATA_LABELS_H

#include "data/data.h"

/* Whole labels with more different values than this may be quantities as well. */
enum { QN__LABELS_CLEAR = 100 };
/* Different texts of a column, or different labels, that are held at most. */
enum { QN__TEXTS_MAX = 100000 };

/* Settles labels that a reader took as whole numbers, negative ones too (docs/exactness.md 2.1.5):
 * real targets where the task says so, names for classes that are not numbered from 0 without gaps,
 * and whether there is a doubt. `asks`: whole numbers of this format may be quantities, so that
 * many different ones are a doubt. Fails with QN_INPUT or QN_MEMORY; `path` is for the message. */
qn_status qn__labels_settle(qn_data *data, const qn_data_options *options, int asks,
                            const char *path, qn_error *err);

/* Sets data->schema where it is NULL; every column is then one of numbers without a name. */
qn_status qn__data_need_schema(qn_data *data, qn_error *err);

/* QN_OK when it is clear what a network is to learn of these labels (qn_data.doubt). Else QN_INPUT
 * with what is wrong. */
qn_status qn__labels_check(const qn_data *data, qn_error *err);

#endif
