/* Rows that go into a table: a CSV file, or a table of SQLite or PostgreSQL (docs/formats.md).
 *
 * A target is a path, whose file is CSV, or an address: "sqlite:FILE?table=NAME" or
 * "postgresql://USER@HOST/DATABASE?table=NAME". There are two ways to write:
 *
 * - qn__sink_write: all rows of a result, or none. The old file, or the rest of the table, stays as
 *   it was until all rows are there.
 * - qn__sink_open and qn__sink_put: a table that grows by batches and goes on after a restart. A
 *   row whose key is stored already is left out, so that a batch may be repeated.
 *
 * A table that exists is checked and never replaced. */
#ifndef QN_DATA_WRITE_SINK_H
#define QN_DATA_WRITE_SINK_H

#include "base/digest/sha256.h"
#include "base/error.h"
#include <stdint.h>
#include <sys/stat.h>

typedef enum qn__sink_type {
    QN__SINK_MISSING = 0, /* of a cell without a value */
    QN__SINK_INTEGER,     /* 64 bits, signed */
    QN__SINK_SINGLE,      /* a float32: CSV has the fewest digits that tell it */
    QN__SINK_REAL,        /* a double */
    QN__SINK_TEXT         /* UTF-8 */
} qn__sink_type;

typedef struct qn__sink_column {
    const char *name; /* UTF-8, not "" */
    qn__sink_type type;
    int quoted; /* 1: CSV has each text in quotes, also where it needs none */
} qn__sink_column;

/* A value. In a column of texts an integer is written as its digits. */
typedef struct qn__sink_cell {
    qn__sink_type type;
    union {
        int64_t whole;
        double number; /* of QN__SINK_SINGLE and QN__SINK_REAL */
        const char *text;
    } of;
} qn__sink_cell;

enum { QN__SINK_KEYS = 3 };

typedef struct qn__sink_table {
    const char *name; /* of a database's table, where the address names none: "predictions" */
    const qn__sink_column *column;
    uint32_t columns;
    uint32_t keys; /* how many of the first columns tell rows apart: at most QN__SINK_KEYS */
} qn__sink_table;

typedef struct qn__sink qn__sink;

/* QN_USAGE for a target with a scheme that is not known, a password or an option that is not known;
 * QN_UNSUPPORTED where the database's library is missing. Opens nothing. */
qn_status qn__sink_check(const char *to, qn_error *err);
/* The same, and whether a database has such a table, or could make it: for a program that computes
 * for hours before it writes. Changes nothing. Fails as qn__sink_write does. */
qn_status qn__sink_try(const char *to, const qn__sink_table *table, qn_error *err);
/* 1: the target is a database. */
int qn__sink_is_database(const char *to);

/* ------------------------------------------------------------------ a whole result */

/* Adds all rows with qn__sink_add. It is called a second time, and must give the same rows, where
 * the connection to a database was lost. */
typedef qn_status qn__sink_rows(void *user, qn__sink *sink, qn_error *err);

/* One row: as many cells as columns. Texts are read during the call only. */
qn_status qn__sink_add(qn__sink *sink, const qn__sink_cell *cells, qn_error *err);

/* What is to be written, and where. */
typedef struct qn__sink_order {
    const char *to;
    const qn__sink_table *table;
    const char *run; /* see qn__sink_write; "?run=NAME" in the address counts before it */
    qn__sink_rows *rows;
    void *user;
    int (*may)(void *user); /* NULL, or what qn__writer_ask calls before the result appears */
    void *may_user;
} qn__sink_order;

enum { QN__SINK_NAME = 128 };
typedef struct qn__sink_written {
    char run[QN__SINK_NAME]; /* "": the target is not a database */
    int there;               /* 1: the table had that run already, and nothing was added */
} qn__sink_written;

/* Writes all rows or none. In a database a column "run" stands before the others. It says of which
 * result a row is. Where the table has a row of the run, another call or process has written that
 * result whole: nothing is added. So a program that was killed can do the same again. `written` may
 * be NULL. Fails with QN_USAGE, QN_UNSUPPORTED, QN_IO, QN_INPUT (the table has other columns),
 * QN_BUSY (`may` returned 0), QN_MEMORY, or as `rows` does. */
qn_status qn__sink_write(const qn__sink_order *order, qn__sink_written *written, qn_error *err);

/* Adds what tells this result from others to a digest: the lines of the CSV file that it would be.
 * Fails as `rows` does. */
qn_status qn__sink_digest(const qn__sink_table *table, qn__sink_rows *rows, void *user,
                          qn__sha256 *hash, qn_error *err);
/* Such a digest, ended, as the name of a run: 16 digits. */
enum { QN__SINK_RUN = 17 };
void qn__sink_run(qn__sha256 *hash, char run[QN__SINK_RUN]);

/* ------------------------------------------------------------------ a table that grows */

/* Opens a table, or makes it; a CSV file gets its header. A last line without an end, as a killed
 * process leaves it, is cut off. The file is locked against other writers: QN_BUSY. On success *out
 * is the caller's, for qn__sink_close. `table` is copied. Else fails as qn__sink_write does. */
qn_status qn__sink_open(const char *to, const qn__sink_table *table, qn__sink **out, qn_error *err);

/* Stores a batch: `rows` times as many cells as columns, row after row. With QN_OK all rows are
 * safely stored. After a failure some may be: put the same batch again. A lost connection is made
 * again, once. QN_IO, QN_BUSY (another program writes): it may be put later. QN_INPUT (the file was
 * removed, nobody reads the pipe) or QN_MEMORY. */
qn_status qn__sink_put(qn__sink *sink, const qn__sink_cell *cells, uint64_t rows, qn_error *err);

/* Whether a row with this key is stored: as many cells as the table has keys. */
qn_status qn__sink_holds(qn__sink *sink, const qn__sink_cell *key, int *holds, qn_error *err);

/* The greatest value of the last column of the key, which holds integers, among the stored rows
 * that have the cells `first` in the columns before it; NULL where there are none. -1: there is no
 * such row. */
qn_status qn__sink_last(qn__sink *sink, const qn__sink_cell *first, int64_t *last, qn_error *err);

/* *info is that of the file that holds the table: 1. 0: it is a server's, or not a file. */
int qn__sink_file(const qn__sink *sink, struct stat *info);

void qn__sink_close(qn__sink *sink); /* accepts NULL */

#endif
