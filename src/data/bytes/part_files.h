/* The files that a reader reads as one table, opened one after the other.
 *
 * A reader may open a file several times. It must be the same file with the same bytes each time,
 * or the table would be a mixture. */
#ifndef QN_DATA_BYTES_PART_FILES_H
#define QN_DATA_BYTES_PART_FILES_H

#include "data/bytes/file_list.h"
#include "data/bytes/files_ahead.h"
#include "data/bytes/source.h"
#include <sys/stat.h>

typedef struct qn__part_files {
    const qn__file_list *list;
    qn__source *first;      /* the first file, where it is open already; NULL: it is not */
    struct stat *seen;      /* of each file at its first opening; its size is 0 before */
    uint64_t *items;        /* of each, where a reader of arrays counts them; else zeros */
    char *name;             /* of all, for messages; NULL: unknown */
    qn__files_ahead *ahead; /* or NULL */
    qn__file_list labels;   /* files of labels, as many as files; or none */
} qn__part_files;

/* Opens the first file, which may be anything that qn__source_open_any takes. Release in any case.
 */
qn_status qn__part_files_begin(const qn__file_list *list, qn__part_files *out, qn_error *err);
/* The same of files, none of which is opened. */
qn_status qn__part_files_prepare(const qn__file_list *list, qn__part_files *out, qn_error *err);
void qn__part_files_release(qn__part_files *files);

/* Opens a file; for qn__part_files_close. Fails as qn__source_open_any does, and with QN_INPUT
 * where it is not what it was before. */
qn_status qn__part_files_open(qn__part_files *files, size_t i, qn__source **out, qn_error *err);

/* Closes a file that was read with `status`, and returns that; or QN_INPUT where it changed. */
qn_status qn__part_files_close(qn__source *source, qn_status status, qn_error *err);

/* The path of a file that is in the list twice, by any names; NULL: none is, or memory is short.
 * All were opened. Different parts of an archive (source.h) are different files. */
const char *qn__part_files_twice(const qn__part_files *files);

static inline int qn__part_files_are_one(const qn__part_files *files) {
    return files->list->count == 1;
}

#endif
