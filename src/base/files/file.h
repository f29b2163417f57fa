/* Reading whole files, and writing files atomically. */
#ifndef QN_BASE_FILES_FILE_H
#define QN_BASE_FILES_FILE_H

#include "base/error.h"
#include <stddef.h>
#include <stdint.h>

/* The bytes of a file, read to its end, with a NUL after the last. Folders, devices, missing files
 * and the like fail with QN_IO and a message that names the kind; `out` is then empty. A FIFO
 * without a writer fails after five seconds. */
typedef struct qn__bytes {
    const uint8_t *data;
    size_t size;
} qn__bytes;
qn_status qn__file_read(const char *path, qn__bytes *out, qn_error *err);
/* The same of a file of at most `most` bytes; a larger one fails with QN_INPUT. */
qn_status qn__file_read_most(const char *path, uint64_t most, qn__bytes *out, qn_error *err);
void qn__bytes_release(qn__bytes *bytes);

/* A file under construction: bytes go to a temporary file in the same folder (unique to the
 * process); commit syncs it, renames it over `path` and syncs the folder; drop removes it. After
 * any failure the old `path` is untouched, and commit has dropped the temporary file. create fails
 * early when the folder is missing or not writable, or the old file is write-protected; *out is
 * then NULL.
 *
 * A symbolic link is followed and stays. The new file gets the permissions of the old one, or
 * those of the umask. A device, a pipe or a name such as /dev/stdout is written to directly.
 * After a failed add, further adds and commit do nothing and report the same failure. */
typedef struct qn__writer qn__writer;
qn_status qn__writer_create(const char *path, qn__writer **out, qn_error *err);
/* The same for a file that only its owner may read and write. The permissions of the old file are
 * ignored. */
qn_status qn__writer_create_private(const char *path, qn__writer **out, qn_error *err);
qn_status qn__writer_add(qn__writer *writer, const void *bytes, size_t size, qn_error *err);
/* Makes the whole file at once: `size` bytes of zeros, with their space on the disk, as memory that
 * is written instead of calls of add. Its pages belong to the system's file cache, so it may be
 * larger than memory. *memory is NULL where that is not possible: a device, a pipe, some file
 * systems. It is the caller's, for munmap, and must be filled before the commit. Fails with QN_IO
 * (a full disk, a limit of the size of files). */
qn_status qn__writer_map(qn__writer *writer, size_t size, void **memory, qn_error *err);
/* 1: bytes that were added can be replaced; 0: they are written to a device or a pipe. */
int qn__writer_replaces(const qn__writer *writer);
/* Replaces the first `size` bytes of those that were added. */
qn_status qn__writer_replace(qn__writer *writer, const void *bytes, size_t size, qn_error *err);
/* Makes commit call `may` when all is synced and only the renaming is left. If it returns 0, commit
 * fails with QN_BUSY and the old file is untouched. */
void qn__writer_ask(qn__writer *writer, int (*may)(void *user), void *user);
qn_status qn__writer_commit(qn__writer *writer, qn_error *err); /* frees the writer in every case */
void qn__writer_drop(qn__writer *writer);                       /* accepts NULL */

/* Files that are put in place together: each is complete and synced before the first is renamed.
 * All zero bytes: an empty batch. */
typedef struct qn__writer_batch {
    qn__writer *first, *last;
} qn__writer_batch;
/* The end of a file: `status` is that of what was added. As commit, but leaves the renaming to the
 * batch; NULL: a commit. The writer belongs to the batch then; after a failure, also one that
 * `status` is, it was dropped. Returns `status`, or why the file cannot be completed. */
qn_status qn__writer_finish(qn__writer *writer, qn__writer_batch *batch, qn_status status,
                            qn_error *err);
/* Renames the files in the order in which they were finished. After a failure the rest is dropped.
 * Frees all writers in every case. */
qn_status qn__writer_batch_commit(qn__writer_batch *batch, qn_error *err);
void qn__writer_batch_drop(qn__writer_batch *batch);

#endif
