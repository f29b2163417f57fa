/* What labels mean once they are read: class numbers, named classes or real targets. */
#ifndef QN_DATA_CELLS_LABELS_H
#define QN_DATA_CELLS_LABELS_H

#include "data/table/data.h"

/* Whole labels with more different values than this may be quantities as well. */
enum { QN__LABELS_CLEAR = 100 };
/* The same holds for more than LABELS_FEW that have less than LABELS_ITEMS items each on average.
 * Of the tables of seaborn and scikit-learn, quantities (pulse, horsepower, flipper length, year)
 * have 39 to 94 values and 2.3 to 6.2 items each. Columns that name classes have up to 12 values,
 * and 12 items each or more; digits, months and ratings have few values. */
enum { QN__LABELS_FEW = 20, QN__LABELS_ITEMS = 8 };
/* Different texts of a column, or different labels, that are held at most. */
enum { QN__TEXTS_MAX = 100000 };

/* Settles labels that a reader took as whole numbers, negative ones too (docs/exactness.md 2.1.5):
 * real targets where the task says so, names for classes whose numbers are not 0, 1, 2 and so on,
 * and data->doubt. `asks`: whole numbers of this format may be quantities, so that many different
 * ones are a doubt. Fails with QN_INPUT or QN_MEMORY; `path` is for the message. */
qn_status qn__labels_settle(qn_data *data, const qn_data_options *options, int asks,
                            const char *path, qn_error *err);

/* Class numbers as they are written: from 0, with few gaps; or a known network has space for them.
 * `count` different ones from `least` to `greatest`; `classes` is qn_data_options.classes. */
int qn__labels_are_numbered(int64_t least, int64_t greatest, uint64_t count, uint32_t classes);

/* What qn__labels_settle finds of labels of `items` items, in data->label_values and data->doubt:
 * whole numbers, classes with names in the schema, and then a label for each item. */
void qn__labels_doubt_numbers(qn_data *data, const qn_data_options *options, uint64_t items,
                              uint64_t count, int64_t greatest);
void qn__labels_doubt_names(qn_data *data, const qn_data_options *options);
void qn__labels_doubt_each(qn_data *data, uint64_t items);

/* Sets data->schema where it is NULL; every column is then one of numbers without a name. */
qn_status qn__data_need_schema(qn_data *data, qn_error *err);

/* QN_OK when it is clear what a network is to learn of these labels (qn_data.doubt). Else QN_INPUT
 * with what is wrong. */
qn_status qn__labels_check(const qn_data *data, qn_error *err);

#endif
