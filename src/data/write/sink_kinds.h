/* What the kinds of sinks have in common (sink.h), for the files of this room. */
#ifndef QN_DATA_WRITE_SINK_KINDS_H
#define QN_DATA_WRITE_SINK_KINDS_H

#include "base/text/text.h"
#include "data/write/sink.h"

/* The parts of a target, for qn__sink_target_release. */
typedef struct qn__sink_target {
    char *place; /* a path, or the address of a server without our options */
    char *table; /* NULL: the address names none */
    char *run;   /* the same */
    char *shown; /* for messages */
} qn__sink_target;

typedef struct qn__sink_database qn__sink_database; /* sink_database.h */

/* A kind: CSV, SQLite, PostgreSQL. `own` of a sink is what it keeps; begin or open makes it, close
 * releases it, also after a failure. */
typedef struct qn__sink_kind {
    const char *const *schemes;        /* such as "sqlite:", the last NULL; NULL: every path */
    int is_server;                     /* 1: the scheme belongs to the address */
    const qn__sink_database *database; /* NULL: it is none; the address of one has options */
    uint32_t most_columns;             /* that a table of a database may have */
    qn_status (*need)(const qn__sink_target *to, qn_error *err); /* NULL: it needs nothing */
    qn_status (*connect)(qn__sink *sink, qn_error *err); /* makes `own`; NULL: begin or open does */
    /* A whole result. *there: the table has the run. */
    qn_status (*begin)(qn__sink *sink, int *there, qn_error *err);
    qn_status (*add)(qn__sink *sink, const qn__sink_cell *cells, qn_error *err);
    qn_status (*commit)(qn__sink *sink, int (*may)(void *user), void *user, qn_error *err);
    /* A table that grows. */
    qn_status (*open)(qn__sink *sink, qn_error *err);
    qn_status (*put)(qn__sink *sink, const qn__sink_cell *cells, uint64_t rows, qn_error *err);
    qn_status (*holds)(qn__sink *sink, const qn__sink_cell *key, int *holds, qn_error *err);
    qn_status (*last)(qn__sink *sink, const qn__sink_cell *first, int64_t *last, qn_error *err);
    void (*close)(qn__sink *sink);
} qn__sink_kind;

struct qn__sink {
    const qn__sink_kind *kind;
    qn__sink_target to;
    qn__sink_table table; /* its own copies */
    const char *run;      /* of the address, or of the caller; NULL: there is no such column */
    void *own;
    int was_connected; /* 1: a server has answered */
    int is_lost;       /* 1: the connection to it was lost; begin or open may be tried again */
};

extern const qn__sink_kind qn__csv_sink, qn__sqlite_sink, qn__postgres_sink;

/* The kind of a target and its parts. Fails with QN_USAGE or QN_MEMORY. */
qn_status qn__sink_target_of(const char *to, const qn__sink_kind **kind, qn__sink_target *out,
                             qn_error *err);
void qn__sink_target_release(qn__sink_target *target);

/* Appends a value as text: digits, or the text itself; nothing where it is missing. */
void qn__sink_add_value(qn__text *text, const qn__sink_cell *cell);

/* Appends the name of a table or a column as SQL has it: in quotes, with quotes in it doubled. */
void qn__sink_add_name(qn__text *text, const char *name);
/* Appends the names of the columns, "run" first where the sink has a run, with commas between. */
void qn__sink_add_names(qn__text *text, const qn__sink *sink);

/* A line of a CSV file with the columns' names, and one with values. */
void qn__sink_add_header(qn__text *text, const qn__sink_table *table);
void qn__sink_add_line(qn__text *text, const qn__sink_table *table, const qn__sink_cell *cells);

#endif
