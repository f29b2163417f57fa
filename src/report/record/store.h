/* Records of runs in a SQLite file (docs/formats.md). Several processes may write to it at once:
 * each writing is one transaction, which waits for others. */
#ifndef QN_REPORT_RECORD_STORE_H
#define QN_REPORT_RECORD_STORE_H

#include "base/files/folder_lock.h"
#include "base/system/sqlite_library.h"
#include "base/text/text.h"
#include "report/record/past_run.h"

enum { QN__STORE_ID = 12 }; /* hexadecimal digits of a run's number */

typedef struct qn__store {
    const qn__sqlite *lib;
    void *base;
    char *path;
} qn__store;

/* Opens the file; with `write` it is made if it is missing. The caller closes *out also after a
 * failure. Fails with QN_UNSUPPORTED (no libsqlite3), QN_FORMAT (another kind of file), QN_IO, or
 * QN_MEMORY. */
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

/* Returns QN_IO with what SQLite says. */
qn_status qn__store_fail(const qn__store *store, qn_error *err);

#endif
