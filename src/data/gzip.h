/* Decompression of gzip, with several members, from a file descriptor. */
#ifndef QN_DATA_GZIP_H
#define QN_DATA_GZIP_H

#include "base/error.h"
#include <stddef.h>

typedef struct qn__gzip qn__gzip;

/* Reads from `fd`, which stays the caller's, as does `path` (for messages); both must outlive *out.
 * Fails with QN_MEMORY, or QN_UNSUPPORTED in a build without zlib. */
qn_status qn__gzip_create(int fd, const char *path, qn__gzip **out, qn_error *err);
/* Decompresses the next `size` bytes; *got is the number of bytes: fewer only at the end. Fails
 * with QN_INPUT if the file is not gzip or is truncated. */
qn_status qn__gzip_read(qn__gzip *gzip, void *bytes, size_t size, size_t *got, qn_error *err);
void qn__gzip_destroy(qn__gzip *gzip); /* accepts NULL */

/* QN_UNSUPPORTED in a build without zlib. */
qn_status qn__gzip_need(qn_error *err);
/* Unpacks gzip in memory. 1 when it gives exactly `made` bytes. After qn__gzip_need. */
int qn__gzip_block(const uint8_t *from, size_t size, uint8_t *to, size_t made);
/* The CRC-32 of the bytes, by the fastest means that are there. */
uint32_t qn__gzip_sum(const void *bytes, size_t size);

#endif
