/* search.csv: the results of a search, from which an interrupted search continues. docs/formats.md
 * describes it. */
#ifndef QN_SEARCH_SEARCH_FILE_H
#define QN_SEARCH_SEARCH_FILE_H

#include "base/error.h"
#include "base/files/folder_lock.h"
#include <quern/search.h>

/* The results, settings x folds, setting by setting. */
typedef struct qn__search_table {
    uint32_t settings, folds;
    qn_search_result *result;
} qn__search_table;

typedef struct qn__search_file {
    int file; /* -1: not open */
    qn__lock lock;
    char *path;
    const char *key;     /* the caller's */
    unsigned char *kept; /* of each result: the file has it */
} qn__search_file;

/* Locks `folder`, which is made if it is missing, for `owner` (base/files/folder_lock.h), opens the
 * file there, and reads its results into the table. `key`, a line, says which search it is, and
 * must be that with which the file began; a file without results gets this one. A rank that takes
 * the folder of another rank makes a new file with the same lines: what the other rank still
 * appends goes to a file that is in no folder. Fails with QN_BUSY, QN_MISMATCH (of another search),
 * QN_FORMAT, QN_IO or QN_MEMORY; the caller closes the file in any case. */
qn_status qn__search_file_open(qn__search_file *f, const char *folder, const qn__owner *owner,
                               const char *key, const qn__search_table *table, qn_error *err);

/* Appends a result. `name` is that of its setting, or NULL. QN_IO, QN_MEMORY; QN_BUSY: the folder
 * now belongs to another process, and was not changed. */
qn_status qn__search_file_add(qn__search_file *f, const qn__search_table *table, uint64_t result,
                              const char *name, qn_error *err);

/* Closes and unlocks the file. Has no effect on one that is not open. */
void qn__search_file_close(qn__search_file *f);

#endif
