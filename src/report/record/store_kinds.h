/* What the kinds of stores of runs have in common, for the files of this room. */
#ifndef QN_REPORT_RECORD_STORE_KINDS_H
#define QN_REPORT_RECORD_STORE_KINDS_H

#include "report/record/store.h"

/* The columns that are listed; "record" and "metrics" are written, too. */
#define QN__STORE_COLUMNS                                                                          \
    "id, name, state, started, ended, host, command, data, model, scored, epochs, seconds, "       \
    "accuracy, loss, rmse, r2"

/* The columns that are written, in the order of qn__store_row. */
#define QN__STORE_WRITTEN                                                                          \
    "id, name, state, started, ended, host, command, data, model, scored, record, metrics, "       \
    "epochs, seconds, accuracy, loss, rmse, r2"

/* The question of `find`: a database has its own name of the table, and mark of the first value.
 * The number itself counts before names, and these before beginnings. */
#define QN__STORE_FIND(table, run)                                                                 \
    "SELECT record, metrics, CASE WHEN id = " run " THEN 0 WHEN name = " run                       \
    " THEN 1 ELSE 2 END AS how FROM " table " WHERE id = " run " OR name = " run                   \
    " OR (length(" run ") >= 4 AND substr(id, 1, length(" run ")) = " run ") ORDER BY how LIMIT 2"

/* Finds rows of a run: the texts of it, and how it is named: 0 by its number, 1 by its name, 2 by
 * the beginning of its number. The best ones first, two at most. */
typedef void qn__store_found(void *user, const char *about, const char *metrics, int how);

struct qn__store_kind {
    /* `out` has its path, for messages. Makes `base`, also where it fails afterwards. */
    qn_status (*open)(qn__store *out, const char *path, int write, qn_error *err);
    void (*close)(qn__store *store);
    const char *begin; /* the statement that begins a transaction which writes */
    qn_status (*run)(const qn__store *store, const char *sql, qn_error *err);
    qn_status (*put)(const qn__store *store, const qn__store_row *row, qn_error *err);
    qn_status (*find)(const qn__store *store, const char *run, qn__store_found *take, void *user,
                      qn_error *err);
    qn_status (*list)(const qn__store *store, qn__store_listed *take, void *user, qn_error *err);
};

extern const qn__store_kind qn__sqlite_store, qn__postgres_store;

#endif
