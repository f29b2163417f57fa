/* What the sinks of databases have in common. A kind says how SQL is run; the rest is here. */
#ifndef QN_DATA_WRITE_SINK_DATABASE_H
#define QN_DATA_WRITE_SINK_DATABASE_H

#include "data/write/sink_kinds.h"

struct qn__sink_database {
    const char *mark;  /* before the number of a value: "$" or "?" */
    const char *begin; /* the statement that begins a transaction which writes */
    qn_status (*run)(qn__sink *sink, const char *sql, qn_error *err);
    /* The first number of the answer; -1 where the answer is empty or NULL. Two cells at most. */
    qn_status (*ask)(qn__sink *sink, const char *sql, const qn__sink_cell *cells, uint32_t count,
                     int64_t *number, qn_error *err);
    /* Checks the table or makes it, inside a transaction. */
    qn_status (*ready)(qn__sink *sink, qn_error *err);
    /* What rows need first: of a whole result inside its transaction, else after that of `ready`.
     * NULL: nothing. */
    qn_status (*prepare)(qn__sink *sink, qn_error *err);
    /* Rows of a batch, inside a transaction; those whose key is there are left out. */
    qn_status (*put)(qn__sink *sink, const qn__sink_cell *cells, uint64_t rows, qn_error *err);
    /* After the last row of a whole result; NULL: nothing. */
    qn_status (*finish)(qn__sink *sink, qn_error *err);
};

/* As the members of qn__sink_kind. */
qn_status qn__database_begin(qn__sink *sink, int *there, qn_error *err);
qn_status qn__database_commit(qn__sink *sink, int (*may)(void *user), void *user, qn_error *err);
qn_status qn__database_open(qn__sink *sink, qn_error *err);
qn_status qn__database_put(qn__sink *sink, const qn__sink_cell *cells, uint64_t rows,
                           qn_error *err);
qn_status qn__database_holds(qn__sink *sink, const qn__sink_cell *key, int *holds, qn_error *err);
qn_status qn__database_last(qn__sink *sink, const qn__sink_cell *first, int64_t *last,
                            qn_error *err);

/* Runs a statement and releases its text. */
qn_status qn__database_run(qn__sink *sink, qn__text *sql, qn_error *err);

#endif
