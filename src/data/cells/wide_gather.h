/* Which columns of a file are wide, found while it is read, and their exact values
 * (docs/exactness.md 23.4).
 *
 * As long as all values of a column are floats, the matrix has them all. From the first other one
 * on they are kept, unless the column cannot be wide any more: that is settled by the first few
 * items of nearly every column of measurements. */
#ifndef QN_DATA_CELLS_WIDE_GATHER_H
#define QN_DATA_CELLS_WIDE_GATHER_H

#include "data/table/wide.h"
#include "data/table/wide_facts.h"

/* Nearly every column of binary64 turns out to be narrow after two values. So the first few wait
 * here, before there is memory for those of all items. */
enum { QN__WIDE_EARLY = 8 };

typedef struct qn__wide_column_state {
    qn__wide_facts facts;
    int real;              /* the type of its values is binary64 */
    int narrow;            /* it cannot be wide any more */
    qn__exact held;        /* the kind of the values that are kept so far */
    qn__wide_value *value; /* of all items; NULL: none are kept yet */
    uint32_t early;        /* values of qn__wide_gather_real that were the first */
    uint64_t early_item[QN__WIDE_EARLY];
    double early_value[QN__WIDE_EARLY];
} qn__wide_column_state;

typedef struct qn__wide_gather {
    qn_data *data;
    uint32_t features;
    uint32_t live; /* columns that may be wide */
    int kept;      /* 1: for a model, which knows its wide columns */
    int doubles;   /* 1: columns of binary64 are kept in any case (kept.h); set after the beginning
                    */
    qn__wide_column_state *column;
} qn__wide_gather;

/* Begins with columns that are narrow; *gather is released in any case. No column is ever wide
 * where the options have rules without that of wide columns. */
qn_status qn__wide_gather_begin(qn__wide_gather *gather, qn_data *data, uint32_t features,
                                const char *expected_rules, qn_error *err);
void qn__wide_gather_release(qn__wide_gather *gather);

/* Whether the column may still be wide, so that further values matter. Threads may ask of different
 * columns. */
int qn__wide_is_open(const qn__wide_gather *gather, const qn__wide_column_state *column);

/* The column holds whole numbers, or such of binary64 (`real`), and may be wide. */
void qn__wide_gather_column(qn__wide_gather *gather, uint32_t feature, int real);

/* After new facts: whether values are to be kept. `items` before are in the matrix and are kept
 * from there where they are the first. A column that cannot be wide any more lets go of all. */
qn_status qn__wide_gather_look(qn__wide_gather *gather, uint32_t feature, uint64_t items, int *keep,
                               qn_error *err);

/* Keeps a value where qn__wide_gather_look said so. Others are missing. */
static inline void qn__wide_keep_whole(qn__wide_column_state *c, uint64_t item, int64_t value) {
    c->value[item].whole = value;
}

static inline void qn__wide_keep_real(qn__wide_column_state *c, uint64_t item, double value) {
    if (c->held == QN__EXACT_WHOLE)
        c->value[item].whole = (int64_t)value;
    else
        c->value[item].real = value == 0 ? 0 : value;
}

/* One value after the other, of a column that may be wide: both of the above. */
qn_status qn__wide_gather_whole(qn__wide_gather *gather, uint32_t feature, uint64_t item,
                                int64_t value, qn_error *err);
qn_status qn__wide_gather_real(qn__wide_gather *gather, uint32_t feature, uint64_t item,
                               double value, qn_error *err);

/* Makes a table that is about to be read keep its doubles (kept.h). Its number of items is known,
 * and qn__wide_gather_column was called for its columns. Where the memory does not suffice, a note
 * says so instead. Fails with QN_MEMORY. */
qn_status qn__wide_gather_doubles(qn__wide_gather *gather, qn_error *err);

/* Ends the reading: the wide columns become those of the table. */
qn_status qn__wide_gather_end(qn__wide_gather *gather, qn_error *err);

#endif
