/* A table behind the Arrow C interfaces: all parts of a stream, and the cells of a column. */
#ifndef QN_DATA_ARROW_TABLE_H
#define QN_DATA_ARROW_TABLE_H

#include "base/error.h"
#include <quern/arrow.h>
#include <stddef.h>

typedef struct qn__arrow_table {
    struct ArrowSchema schema;
    uint64_t columns;
    struct ArrowArray *part; /* with at least one row each */
    uint64_t parts, room;
    uint64_t items;
} qn__arrow_table;

/* Takes all parts of the stream, and checks their shapes. The caller releases *table, in any case,
 * and the stream. Fails with QN_INPUT or QN_MEMORY. */
qn_status qn__arrow_read(struct ArrowArrayStream *stream, qn__arrow_table *table, qn_error *err);
void qn__arrow_release(qn__arrow_table *table);

typedef enum qn__arrow_kind {
    QN__ARROW_INT, /* booleans too */
    QN__ARROW_UINT,
    QN__ARROW_FLOAT,
    QN__ARROW_TEXT,
    QN__ARROW_EMPTY /* all is missing */
} qn__arrow_kind;

/* What a column holds; QN_INPUT, with its name, where that cannot be read. */
qn_status qn__arrow_kind_of(const qn__arrow_table *table, uint64_t column, qn__arrow_kind *kind,
                            qn_error *err);

typedef struct qn__arrow_cell {
    int missing;
    int64_t whole;    /* INT; UINT: its bits */
    double number;    /* FLOAT */
    const char *text; /* TEXT, without a NUL */
    size_t size;
} qn__arrow_cell;

/* Takes the cells of a column, item by item, until `take` returns another status than QN_OK. */
typedef qn_status qn__arrow_take(void *user, uint64_t item, const qn__arrow_cell *cell,
                                 qn_error *err);
qn_status qn__arrow_each(const qn__arrow_table *table, uint64_t column, qn__arrow_take *take,
                         void *user, qn_error *err);

/* Says in `where` which column and item are meant, and sets the remedy. Returns QN_INPUT. */
qn_status qn__arrow_refuse(const qn__arrow_table *table, uint64_t column, uint64_t item,
                           const char *remedy, qn_error *err);

#endif
