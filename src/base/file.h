/* Reading files whole and writing them so that nothing is ever half there. */
#ifndef QN_BASE_FILE_H
#define QN_BASE_FILE_H

#include "base/error.h"
#include <stddef.h>
#include <stdint.h>

/* The bytes of a file, read to its end, with a NUL behind the last. Folders, devices, missing files
 * and the like fail with QN_IO and say which it is; `out` is then empty. So does a FIFO that has no
 * writer within five seconds. */
typedef struct qn__bytes {
    const uint8_t *data;
    size_t size;
} qn__bytes;
qn_status qn__file_read(const char *path, qn__bytes *out, qn_error *err);
void qn__bytes_release(qn__bytes *bytes);

/* A file under construction: bytes go to a temporary file in the same folder (unique to the
 * process); commit syncs it, renames it over `path` and syncs the folder; drop removes it. After
 * any failure the old `path` is untouched, and commit has dropped the temporary file. create fails
 * early when the folder is missing or not writable, or the old file is write-protected.
 *
 * A symbolic link is followed and stays. The new file gets the permissions of the old one, or
 * those of the umask. A device, a pipe or a name such as /dev/stdout is written to directly.
 * After a failed add, further adds and commit do nothing and report the same failure. */
typedef struct qn__writer qn__writer;
qn_status qn__writer_create(const char *path, qn__writer **out, qn_error *err);
/* The same for a file that only its owner may read and write, whatever the old one allowed. */
qn_status qn__writer_create_private(const char *path, qn__writer **out, qn_error *err);
qn_status qn__writer_add(qn__writer *writer, const void *bytes, size_t size, qn_error *err);
/* Has commit ask, once all is synced and nothing is left but the renaming: 0 makes it fail with
 * QN_BUSY, the old file untouched. */
void qn__writer_ask(qn__writer *writer, int (*may)(void *user), void *user);
qn_status qn__writer_commit(qn__writer *writer, qn_error *err); /* frees the writer in every case */
void qn__writer_drop(qn__writer *writer);                       /* accepts NULL */

#endif
