/* The one type of a column whose types differ between files, and values in that type
 * (docs/exactness.md 2.12.4). */
#ifndef QN_DATA_ARROW_ARROW_COMMON_H
#define QN_DATA_ARROW_ARROW_COMMON_H

#include "data/arrow/arrow_parts.h"
#include "data/arrow/arrow_table.h"

enum { QN__ARROW_COMMON_CAPACITY = 24 };

/* The type of a column's values; of a dictionary-encoded column that of the dictionary's values. */
typedef struct qn__arrow_type {
    qn__arrow_kind kind;
    int scale; /* of a DECIMAL; else 0 */
    char format[QN__ARROW_COMMON_CAPACITY];
} qn__arrow_type;

/* The type of a column of the table. Fails as qn__arrow_kind_of. */
qn_status qn__arrow_type_of(const qn__arrow_table *table, uint64_t column, qn__arrow_type *out,
                            qn_error *err);

/* Makes `a` a type that holds the values of `b`, too. 0: there is none. */
int qn__arrow_join(qn__arrow_type *a, const qn__arrow_type *b);

/* The values of a column of the table's parts in a type that qn__arrow_join made. They live as long
 * as the pile (arrow_parts.h). */
qn_status qn__arrow_convert(const qn__arrow_table *table, uint64_t column, const qn__arrow_type *to,
                            qn__pile *pile, struct ArrowArray *out, qn_error *err);

#endif
