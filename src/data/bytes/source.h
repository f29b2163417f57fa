/* The bytes of an input file, plain or decompressed, through one interface.
 *
 * Messages name the path and, for compressed files, the offset in the file. */
#ifndef QN_DATA_BYTES_SOURCE_H
#define QN_DATA_BYTES_SOURCE_H

#include "base/error.h"
#include "data/bytes/packing.h"
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

typedef struct qn__source qn__source;

/* Opens a regular file and detects by their magic numbers how it is packed. "PATH.npz:PART" opens
 * PATH.npz, and "PATH.zip:PART" the file PART in the archive PATH.zip. Fails with QN_INPUT
 * (missing, a directory, empty), QN_IO or QN_UNSUPPORTED (the library that unpacks it is missing).
 */
qn_status qn__source_open(const char *path, qn__source **out, qn_error *err);
void qn__source_close(qn__source *source); /* accepts NULL */
/* Opens the file of `source` again, from its beginning; nothing may be read from `source` after. */
qn_status qn__source_again(const qn__source *source, qn__source **out, qn_error *err);
/* The same beside `source`, which can be read on; its messages do not name the file. Not of a part
 * of an archive. */
qn_status qn__source_beside(const qn__source *source, qn__source **out, qn_error *err);
/* Called by a reader of a whole file at its end, with its status. Returns QN_INPUT where the file
 * changed since it was opened, so that the reader may have mixed two states of it; else `status`.
 */
qn_status qn__source_end(const qn__source *source, qn_status status, qn_error *err);
/* Other processes may write to the file while it is read: the reader itself ensures that it sees
 * one state. */
void qn__source_share(qn__source *source);

/* Opens as qn__source_open does, but a folder is not a failure: it has no bytes to read. */
qn_status qn__source_open_any(const char *path, qn__source **out, qn_error *err);
int qn__source_is_folder(const qn__source *source);
/* The address of a database server (server_address.h), which qn__source_open_any takes too: nothing
 * is opened, and the source has no bytes. NULL: the source is not an address. qn__source_path is
 * then the address as messages show it. */
const char *qn__source_address(const qn__source *source);

qn__packing qn__source_packing(const qn__source *source);
const char *qn__source_path(const qn__source *source);
/* The text after the colon of "PATH.npz:PART"; NULL: no part was named. */
const char *qn__source_part(const qn__source *source);
/* The same text of a path; the result points into `path`. */
const char *qn__source_part_in(const char *path);
/* 1 when it is the standard input. */
int qn__source_is_stream(const qn__source *source);
/* The open file, for pread in parallel with this source. */
int qn__source_descriptor(const qn__source *source);
/* The state of the file when it was opened. */
const struct stat *qn__source_stamp(const qn__source *source);
/* Bytes of the file itself: the compressed ones. */
uint64_t qn__source_file_size(const qn__source *source);
/* Bytes that a file of this size can have once unpacked, at most. */
uint64_t qn__source_unpacked_most(const qn__source *source);

/* Copies the next `size` bytes; *got is the number of bytes: fewer only at the end. */
qn_status qn__source_read(qn__source *source, void *bytes, size_t size, size_t *got, qn_error *err);
/* The first bytes, at most 512, without consuming them: only before the first read. */
qn_status qn__source_peek(qn__source *source, uint8_t *bytes, size_t size, size_t *got,
                          qn_error *err);

/* A buffer from malloc with a readable, zeroed margin of 64 bytes after `size`. */
typedef struct qn__buffer {
    uint8_t *data;
    size_t size;
} qn__buffer;

/* Reads up to `wanted` bytes (SIZE_MAX: all that is left). The buffer grows with the data, not with
 * `wanted`, except for plain files, whose size is known. The caller frees out->data with free(). */
qn_status qn__source_take(qn__source *source, size_t wanted, qn__buffer *out, qn_error *err);

/* The whole content in memory. Only before the first read. The text is valid until
 * qn__contents_release; it is not NUL-terminated. */
typedef struct qn__contents {
    const char *data;
    size_t size;
    void *memory;                 /* from malloc; NULL: `file` has the text */
    struct qn__mapped_file *file; /* or NULL */
} qn__contents;
qn_status qn__source_contents(qn__source *source, qn__contents *out, qn_error *err);
/* The same where memory may not hold the content: it is then that of a file, which the system loads
 * as it is read. A plain file is used where it lies; what is unpacked goes to a file of the cache
 * folder. With `change` the text may be written to. Fails with QN_MEMORY where that cannot be. */
qn_status qn__source_contents_of_any_size(qn__source *source, int change, qn__contents *out,
                                          qn_error *err);
/* Space for `size` bytes that the caller writes, in a file of the cache folder where memory may not
 * hold them; `path` is for messages. */
qn_status qn__contents_make(uint64_t size, const char *path, qn__contents *out, qn_error *err);
/* Tells while they are written from the beginning to the end: the first `bytes` bytes are written.
 */
void qn__contents_wrote(const qn__contents *contents, size_t bytes);
/* Tells the system that bytes [from, to) are no longer needed, so that they no longer count as
 * memory of the process. */
void qn__contents_forget(const qn__contents *contents, size_t from, size_t to);
void qn__contents_release(qn__contents *contents);

#endif
