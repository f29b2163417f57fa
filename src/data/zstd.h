/* Decompression of zstd (RFC 8878), with several frames, by libzstd.so.1. It is opened when the
 * first compressed file is read; without it that file is refused. */
#ifndef QN_DATA_ZSTD_H
#define QN_DATA_ZSTD_H

#include "base/error.h"
#include <stddef.h>

typedef struct qn__zstd qn__zstd;

/* 1 when a file that begins with these bytes is zstd: a frame, or one to skip before it. */
int qn__is_zstd(const uint8_t *first, size_t size);

/* The library with its version, "" where it is missing. Static. */
const char *qn__zstd_library(void);

/* QN_UNSUPPORTED, with the name of the package, where the library is missing. */
qn_status qn__zstd_need(qn_error *err);

/* Reads from `fd`, which stays the caller's, as does `path` (for messages); both must outlive *out.
 * `file_size` bounds what the file may unpack to: 1,032 times as much, as gzip cannot exceed, and
 * 64 MiB. Fails with QN_MEMORY or QN_UNSUPPORTED. */
qn_status qn__zstd_create(int fd, const char *path, uint64_t file_size, qn__zstd **out,
                          qn_error *err);
/* Decompresses the next `size` bytes; *got is the number of bytes: fewer only at the end. Fails
 * with QN_INPUT if the file is not zstd, is truncated, or unpacks to too much. */
qn_status qn__zstd_read(qn__zstd *zstd, void *bytes, size_t size, size_t *got, qn_error *err);
void qn__zstd_destroy(qn__zstd *zstd); /* accepts NULL */

/* Decompresses a block in memory. 1 when it gives exactly `made` bytes. After qn__zstd_need. */
int qn__zstd_block(const uint8_t *from, size_t size, uint8_t *to, size_t made);

#endif
