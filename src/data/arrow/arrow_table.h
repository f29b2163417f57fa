/* A table that comes by the Arrow C interfaces: the parts of a stream, and the cells of a column.
 *
 * A reader of files can hand a large table out in portions: parts of which memory holds one portion
 * at a time. So can any stream, whose number of rows is then not known before its end. Other tables
 * are one portion. */
#ifndef QN_DATA_ARROW_ARROW_TABLE_H
#define QN_DATA_ARROW_ARROW_TABLE_H

#include "base/error.h"
#include "data/arrow/arrow_decimal.h"
#include "data/table/data.h"
#include <quern/arrow.h>
#include <stddef.h>

/* Where a table comes from: another program, or a reader of files. */
typedef struct qn__arrow_source {
    struct ArrowArrayStream *stream;
    const char *name; /* in messages: the path of a file, or "the Arrow stream" */
    /* Of a reader of files, else NULL: what a function of the stream failed with. The reader gave
     * the stream the same `err` that it gives qn__arrow_fill, and filled it. */
    const qn_status *status;
    /* Tells a reader, after the schema, which columns have a use: wanted[column] is 1. In the parts
     * the others need no buffers. NULL: it need not be told. */
    void (*want)(struct ArrowArrayStream *stream, const uint8_t *wanted);
    /* Of a reader with portions, else NULL. `rows`: those of all portions, asked after `want`;
     * returns 0, as functions of the stream do. The stream ends after each portion. `more` returns
     * 1 if it continues with another portion; the parts of the last one are then no longer used.
     * `pieces`: what a portion is made of, for a message where memory cannot hold one of them. */
    int (*rows)(struct ArrowArrayStream *stream, uint64_t *rows);
    int (*more)(struct ArrowArrayStream *stream);
    const char *pieces;
    /* Where `rows` is NULL: the rows that end a portion of the stream; 0: it is one portion. */
    uint64_t portion_rows;
    /* The file that an item is from, and its number there, in place of `name`. NULL: all are from
     * one. */
    const char *(*place)(struct ArrowArrayStream *stream, uint64_t *item);
    qn__pool *pool; /* whose threads convert the values; NULL: the caller alone */
} qn__arrow_source;

typedef struct qn__arrow_table {
    const char *name; /* as in the source */
    const qn__arrow_source *source;
    qn__pool *pool;
    struct ArrowSchema schema;
    uint64_t columns;
    int words;               /* 1: a list of texts or integers is a text of words; the caller's */
    struct ArrowArray *part; /* of this portion, with at least one row each */
    uint64_t parts, capacity;
    uint64_t first, rows; /* the items of this portion */
    uint64_t items;       /* of all portions; of those so far where that is not known; 0: of none */
    int is_empty;         /* 1: it was refused because no portion has rows */
    int ended;            /* 1: the stream has */
} qn__arrow_table;

/* Takes the schema of the stream, and checks its shape. The caller releases *table, in any case,
 * and the stream. Fails with QN_INPUT, QN_MEMORY or the source's own status. */
qn_status qn__arrow_read_schema(const qn__arrow_source *source, qn__arrow_table *table,
                                qn_error *err);
/* Then takes the parts of the next portion, and checks their shapes. Before the first one,
 * table->items is counted where the source can do that. A portion after the first may have no rows.
 * Fails as above. */
qn_status qn__arrow_read_parts(const qn__arrow_source *source, qn__arrow_table *table,
                               qn_error *err);
/* Releases the parts of this portion. 1: there is another one. */
int qn__arrow_next_portion(const qn__arrow_source *source, qn__arrow_table *table);
/* After the last portion: QN_INPUT where there were fewer rows than were counted. */
qn_status qn__arrow_check_end(const qn__arrow_table *table, qn_error *err);
void qn__arrow_release(qn__arrow_table *table);

/* Reads all of the source's stream into `data`, as a reader does (data/cells/readers.h): by the
 * options, with the rules of qn_data_from_arrow. The caller releases the stream. Fails as above. */
qn_status qn__arrow_fill(const qn__arrow_source *source, const qn_data_options *options,
                         qn_data *data, qn_error *err);

typedef enum qn__arrow_kind {
    QN__ARROW_INT, /* booleans too */
    QN__ARROW_UINT,
    QN__ARROW_FLOAT,
    QN__ARROW_DECIMAL,
    QN__ARROW_TEXT, /* bytes too */
    QN__ARROW_DATE, /* perhaps with times */
    QN__ARROW_EMPTY /* all is missing */
} qn__arrow_kind;

/* What a column holds, and the scale of decimals, else 0. QN_INPUT, with the column's name, where
 * that cannot be read. */
qn_status qn__arrow_kind_of(const qn__arrow_table *table, uint64_t column, qn__arrow_kind *kind,
                            int *scale, qn_error *err);

typedef struct qn__arrow_cell {
    int missing;
    int64_t whole; /* INT; UINT: its bits; DATE: the moment, INT64_MIN out of range; DECIMAL with
                      the scale 0 (qn__arrow_decimal_whole) */
    double number; /* FLOAT; DECIMAL: qn__arrow_decimal_number */
    qn__arrow_decimal decimal; /* DECIMAL */
    const char *text;          /* TEXT, without a NUL */
    size_t size;
} qn__arrow_cell;

/* Takes the cells of a column in this portion, item by item, until `take` returns another status
 * than QN_OK. */
typedef qn_status qn__arrow_take(void *user, uint64_t item, const qn__arrow_cell *cell,
                                 qn_error *err);
qn_status qn__arrow_each(const qn__arrow_table *table, uint64_t column, qn__arrow_take *take,
                         void *user, qn_error *err);

/* Says in `where` which column and item are meant, and sets the remedy. Returns QN_INPUT. The item
 * QN__ARROW_NO_ITEM: the column as a whole. */
#define QN__ARROW_NO_ITEM UINT64_MAX
qn_status qn__arrow_refuse(const qn__arrow_table *table, uint64_t column, uint64_t item,
                           const char *remedy, qn_error *err);

#endif
