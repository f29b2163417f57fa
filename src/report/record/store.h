/* Records of runs in a SQLite file, or on a PostgreSQL server (docs/formats.md). Several processes
 * may write at once: each writing is one transaction, which waits for others. */
#ifndef QN_REPORT_RECORD_STORE_H
#define QN_REPORT_RECORD_STORE_H

#include "base/files/folder_lock.h"
#include "base/text/text.h"
#include "report/record/past_run.h"

enum { QN__STORE_ID = 12 }; /* hexadecimal digits of a run's number */

typedef struct qn__store_kind qn__store_kind;

typedef struct qn__store {
    const qn__store_kind *kind;
    void *base; /* NULL: it is not open */
    char *path; /* for messages */
} qn__store;

/* A row: of the texts the first ones are listed, and all are written. A number that is not known is
 * NaN. */
enum { QN__STORE_LISTED = 10, QN__STORE_TEXTS = 12, QN__STORE_NUMBERS = 5 };
typedef struct qn__store_row {
    const char *text[QN__STORE_TEXTS]; /* id, name, state, started, ended, host, command, data,
                                          model, scored, record, metrics */
    int64_t epochs;
    double number[QN__STORE_NUMBERS]; /* seconds, accuracy, loss, rmse, r2 */
} qn__store_row;

typedef qn_status qn__store_listed(void *user, const qn__store_row *row, qn_error *err);

/* Opens the file, or connects to the server of an address, "postgresql://..."; with `write` the
 * file or the table is made if it is missing. The caller closes *out also after a failure. Fails
 * with QN_UNSUPPORTED (no libsqlite3, or no libpq), QN_FORMAT (another kind of file or table),
 * QN_USAGE (the address), QN_IO, or QN_MEMORY. */
qn_status qn__store_open(const char *path, int write, qn__store *out, qn_error *err);
void qn__store_close(qn__store *store);

/* A number that no other run has. */
void qn__store_number(char id[QN__STORE_ID + 1]);

/* Writes the run `id`, and replaces what was stored of it: the texts of its run.json and its
 * metrics.csv. `owner` says whether this rank is the one that writes. Fails with QN_IO, QN_FORMAT
 * or QN_MEMORY; QN_BUSY: it is not, and nothing was changed. */
qn_status qn__store_put(const qn__store *store, const char *id, const char *name,
                        const qn__text *about, const qn__text *metrics, const qn__owner *owner,
                        qn_error *err);

/* The two texts of a run by its number, the beginning of it, or its name; the caller releases them.
 * Fails with QN_INPUT where none or several are meant, and as qn__store_open does. */
qn_status qn__store_get(const qn__store *store, const char *run, qn__text *about, qn__text *metrics,
                        qn_error *err);

/* Fails with QN_INPUT: the run is not there, or `several` are meant. */
qn_status qn__store_refuse(const qn__store *store, const char *run, int several, qn_error *err);

/* Gives all rows, without the last two texts, in the order in which the runs have begun. Fails as
 * `take` and qn__store_open do. */
qn_status qn__store_list(const qn__store *store, qn__store_listed *take, void *user, qn_error *err);

#endif
