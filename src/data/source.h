/* The bytes of an input file, as they lie or out of gzip, without the reader knowing which.
 *
 * Messages name the path and, for compressed files, the byte of the file at which it went wrong. */
#ifndef QN_DATA_SOURCE_H
#define QN_DATA_SOURCE_H

#include "base/error.h"
#include <stddef.h>
#include <stdint.h>

typedef struct qn__source qn__source;

/* Opens a regular file, looks for gzip's magic number and, finding it, reads what is inside. Fails
 * with QN_INPUT (missing, a directory, empty), QN_IO or QN_UNSUPPORTED (gzip without zlib). */
qn_status qn__source_open(const char *path, qn__source **out, qn_error *err);
void qn__source_close(qn__source *source); /* accepts NULL */

int qn__source_is_gzip(const qn__source *source);
const char *qn__source_path(const qn__source *source);
/* The open file, for reading at any place (pread) beside this source. */
int qn__source_descriptor(const qn__source *source);
/* Bytes of the file itself: for gzip, the compressed ones. */
uint64_t qn__source_file_size(const qn__source *source);

/* Copies the next `size` bytes and tells in *got how many there were: fewer only at the end. */
qn_status qn__source_read(qn__source *source, void *bytes, size_t size, size_t *got, qn_error *err);
/* The first bytes, at most 16, without taking them: only before the first read. */
qn_status qn__source_peek(qn__source *source, uint8_t *bytes, size_t size, size_t *got,
                          qn_error *err);

/* A plain buffer from malloc with a readable, zeroed margin of 64 bytes behind `size`. */
typedef struct qn__buffer {
    uint8_t *data;
    size_t size;
} qn__buffer;

/* Reads up to `wanted` bytes (SIZE_MAX: all that is left). The buffer grows with what really comes,
 * never by what `wanted` alone says, except for plain files, whose size the system vouches for.
 * The caller frees out->data with free(). */
qn_status qn__source_take(qn__source *source, size_t wanted, qn__buffer *out, qn_error *err);

/* Everything from the first byte on, in memory. Only before the first read. The text lives until
 * qn__contents_release; it is not NUL-terminated. */
typedef struct qn__contents {
    const char *data;
    size_t size;
    void *memory;
} qn__contents;
qn_status qn__source_contents(qn__source *source, qn__contents *out, qn_error *err);
/* Tells the system that bytes [from, to) are not needed any more, so that they do not count as
 * memory of the process. */
void qn__contents_forget(const qn__contents *contents, size_t from, size_t to);
void qn__contents_release(qn__contents *contents);

#endif
