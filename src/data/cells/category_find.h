/* A text among the categories of a model's column: by its bytes, or by its value as a number
 * (docs/exactness.md 2.7). */
#ifndef QN_DATA_CELLS_CATEGORY_FIND_H
#define QN_DATA_CELLS_CATEGORY_FIND_H

#include "data/table/schema.h"

#define QN__NO_CATEGORY UINT32_MAX

/* A category that is a number. */
typedef struct qn__category_value {
    double value;
    uint32_t category;
} qn__category_value;

/* The values of a column's categories, in ascending order, in *out, for qn__free; NULL where not
 * all of them have one. Fails with QN_MEMORY. */
qn_status qn__category_values(const qn__feature *feature, qn__category_value **out, qn_error *err);

/* The category with this text; else the one with its value, where `values` is not NULL and no other
 * category has that value; else QN__NO_CATEGORY. */
uint32_t qn__category_find(const qn__feature *feature, const qn__category_value *values,
                           const char *text);

#endif
