/* The files of a folder, of a tar or of a ZIP archive, in the bytewise order of their names; of
 * several folders and archives, in the caller's order; or files that a caller named, in that order.
 *
 * A file's name is its path below the folder, or in the archive without "./" and "/" before it.
 * Files and folders whose names begin with a dot are ignored, and so are empty folders. The name of
 * a named file is its path. Of several folders and archives the path of each stands before the
 * names. */
#ifndef QN_DATA_BYTES_ENCLOSED_FILES_H
#define QN_DATA_BYTES_ENCLOSED_FILES_H

#include "base/files/files_stamp.h"
#include "data/bytes/files_ahead.h"
#include "data/bytes/name_blocks.h"
#include "data/bytes/part_files.h"
#include "data/bytes/source.h"
#include "data/bytes/tar.h"
#include "data/bytes/zip.h"

typedef struct qn__enclosed_file {
    char *name;           /* in `names` of the files */
    uint64_t begin, size; /* tar: where the bytes are; ZIP: begin is the number of the entry;
                             folder: begin is qn__files_stamp_of; several: begin is the number of
                             the file in its folder or archive */
    uint32_t of;          /* several: the number of the folder or archive; else 0 */
    uint32_t top;         /* several: bytes of its path in the name; else 0 */
} qn__enclosed_file;

typedef struct qn__enclosed_files {
    const char *path; /* of the folder or the archive: the source's */
    int folder;       /* 1: the files are in the folder `path` */
    qn__tar_bytes tar;
    qn__part_files *named; /* files that a caller named; NULL: a folder or an archive */
    int given;             /* 1: one file, whose bytes a caller has: `unpacked` */
    qn__contents unpacked; /* of a gzipped archive, or of the only named file */
    qn__zip *zip;          /* NULL: no ZIP archive */
    qn__enclosed_file *file;
    uint64_t count, capacity;
    qn__name_blocks names;
    qn__files_stamp stamp;           /* of a folder */
    qn__files_ahead *ahead;          /* or NULL */
    struct qn__enclosed_files *each; /* of several folders and archives; NULL: it is one */
    qn__source **source;             /* of each */
    uint32_t several;                /* how many; 0: it is one */
} qn__enclosed_files;

/* Lists the files; `source` must outlive *out, which is released in any case. Fails with QN_INPUT
 * (no files, one name twice, a malformed archive, what is not a regular file), QN_IO or QN_MEMORY.
 */
qn_status qn__enclosed_files_open(qn__source *source, qn__enclosed_files *out, qn_error *err);
/* The same of files that a caller named, which must outlive *out. */
qn_status qn__enclosed_files_open_named(qn__part_files *named, qn__enclosed_files *out,
                                        qn_error *err);
/* The same of several folders and archives. Their sources are opened here. */
qn_status qn__enclosed_files_open_several(qn__part_files *several, qn__enclosed_files *out,
                                          qn_error *err);
/* After reading with `status`: returns that, or QN_INPUT where one of several has changed. */
qn_status qn__enclosed_files_end(const qn__enclosed_files *files, qn_status status, qn_error *err);
/* One file of bytes that a caller has, which must outlive *out; so must `name`, its place in
 * messages. Fails with QN_MEMORY. */
qn_status qn__enclosed_files_of_bytes(const void *bytes, size_t size, const char *name,
                                      qn__enclosed_files *out, qn_error *err);
void qn__enclosed_files_release(qn__enclosed_files *files);

/* As qn__enclosed_files_open, with `count` names that were listed before, in order: `text` has
 * `size` bytes, each name with its NUL. Their bytes cannot be read then. Fails with QN_FORMAT
 * (fewer or more names) or QN_MEMORY. */
qn_status qn__enclosed_files_known(const qn__source *source, const char *text, size_t size,
                                   uint64_t count, qn__enclosed_files *out, qn_error *err);

/* Bytes of one file after another, in one block of memory. Begins as {0}. */
typedef struct qn__enclosed_bytes {
    uint8_t *data;
    size_t size, capacity;
} qn__enclosed_bytes;
/* Reads the first `most` bytes of file i (SIZE_MAX: all). Any number of threads may, each into its
 * own bytes. Fails with QN_INPUT, QN_IO or QN_MEMORY, with a place. */
qn_status qn__enclosed_files_read(const qn__enclosed_files *files, uint64_t i, size_t most,
                                  qn__enclosed_bytes *bytes, qn_error *err);
/* Makes space for `size` bytes at `data`; what was there is lost. */
qn_status qn__enclosed_bytes_space(qn__enclosed_bytes *bytes, size_t size, qn_error *err);
void qn__enclosed_bytes_release(qn__enclosed_bytes *bytes);

/* Sets `where` to file i. */
void qn__enclosed_files_at(const qn__enclosed_files *files, uint64_t i, qn_error *err);

#endif
