/* Wide columns: columns of features whose exact values float32 cannot hold (docs/exactness.md
 * 23.4).
 *
 * They are kept beside the matrix of a table, which has the nearest float32 of each value, so that
 * other code works with the matrix alone. A table that has wide columns has a schema; its
 * feature[k].exact says which columns are wide and what their exact values are. A view has the wide
 * columns of its table, in the rows of the table. */
#ifndef QN_DATA_TABLE_WIDE_H
#define QN_DATA_TABLE_WIDE_H

#include "data/table/data.h"

typedef union qn__wide_value {
    int64_t whole; /* QN__EXACT_WHOLE, QN__EXACT_MOMENT; missing: QN__WIDE_MISSING */
    double real;   /* QN__EXACT_REAL; missing: a NaN with the bits 0x7ff8000000000000 */
} qn__wide_value;

#define QN__WIDE_MISSING INT64_MIN
/* The bits of the missing value of this kind, as a whole number. */
int64_t qn__wide_missing(qn__exact exact);

typedef struct qn__wide {
    uint32_t columns;
    uint32_t *feature;     /* of each column, ascending */
    qn__wide_value *value; /* column after column, `rows` of each */
    uint64_t rows;
    void *memory; /* of the values, from qn__alloc; NULL: they belong to someone else */
} qn__wide;

/* All values are 0, or those at `values`, which must outlive it. NULL if out of memory. */
qn__wide *qn__wide_create(uint32_t columns, uint64_t rows, const void *values, qn_error *err);
void qn__wide_free(qn__wide *wide); /* accepts NULL */

/* Bytes of all exact values; 0 where there are none. */
uint64_t qn__wide_bytes(const qn__wide *wide);

static inline qn__wide_value *qn__wide_of(const qn__wide *wide, uint32_t column) {
    return wide->value + (size_t)column * wide->rows;
}

/* The kind of the exact values of feature k; QN__EXACT_NONE: it has floats only. */
static inline qn__exact qn__wide_kind(const qn_data *data, uint32_t k) {
    return data->wide && data->schema ? data->schema->feature[k].exact : QN__EXACT_NONE;
}

/* The exact values of feature k by the row of the table; NULL where it is not wide. */
const qn__wide_value *qn__wide_column(const qn_data *data, uint32_t k);

/* The row of item i. */
static inline uint64_t qn__data_row(const qn_data *data, uint64_t i) {
    return data->index ? data->index[i] : i;
}

/* Marks the features as wide for which exact[k] is a kind, and makes space for their values, all
 * missing; features that are wide already keep theirs. A schema is made where there is none. */
qn_status qn__wide_make(qn_data *data, const qn__exact *exact, qn_error *err);

/* Gives `to` the wide columns of `from`: item i of `to` gets those of item item[i] (NULL: item i),
 * feature k those of feature column[k] (NULL: k). `to` has its items, features and schema, and no
 * index. Where both lists are NULL and `from` is not a view, the values are shared. */
qn_status qn__wide_copy(const qn_data *from, const uint64_t *item, const uint32_t *column,
                        qn_data *to, qn_error *err);

/* Makes a schema of unnamed columns of numbers where the table has none. */
qn_status qn__wide_need_schema(qn_data *data, qn_error *err);

/* Which rules of reading the wide columns follow: data->rules. */
void qn__wide_set_rules(qn_data *data);

#endif
