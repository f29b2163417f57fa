/* Telling stores which files of a set are read next, so that many small ones are asked for at once
 * (base/files/remote.h). Only time depends on it. */
#ifndef QN_DATA_BYTES_FILES_AHEAD_H
#define QN_DATA_BYTES_FILES_AHEAD_H

#include <limits.h>
#include <stddef.h>

typedef struct qn__files_ahead qn__files_ahead;

/* NULL: memory is short. */
qn__files_ahead *qn__files_ahead_begin(void);
void qn__files_ahead_end(qn__files_ahead *ahead); /* accepts NULL */

/* Writes the path or address of file i. */
typedef void (*qn__files_ahead_path)(const void *set, size_t i, char path[PATH_MAX]);

/* File i of `count` is opened now. Those after it are told where files are read about in order, by
 * any number of threads. Accepts NULL. */
void qn__files_ahead_at(qn__files_ahead *ahead, size_t i, size_t count, qn__files_ahead_path path,
                        const void *set);

#endif
