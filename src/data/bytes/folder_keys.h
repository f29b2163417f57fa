/* Columns from the names of folders: "year=2026/part-0.parquet" has the year 2026 in every row, as
 * Hive, Spark, pyarrow and pandas write tables. */
#ifndef QN_DATA_BYTES_FOLDER_KEYS_H
#define QN_DATA_BYTES_FOLDER_KEYS_H

#include "base/error.h"
#include <stddef.h>

/* A column and its value in a file. A missing value is an empty text. */
typedef struct qn__folder_key {
    char *name, *value;
} qn__folder_key;

/* The keys of the folders in `path` from byte `below` on, in their order, with %XX decoded. For
 * qn__folder_keys_free. Fails with QN_INPUT (a text that is not UTF-8 or has control characters) or
 * QN_MEMORY. */
qn_status qn__folder_keys_read(const char *path, size_t below, qn__folder_key **keys, size_t *count,
                               qn_error *err);
void qn__folder_keys_free(qn__folder_key *keys, size_t count); /* accepts NULL */

#endif
