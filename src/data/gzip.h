/* Unpacking of gzip, one member after the other, from a file descriptor. */
#ifndef QN_DATA_GZIP_H
#define QN_DATA_GZIP_H

#include "base/error.h"
#include <stddef.h>

typedef struct qn__gzip qn__gzip;

/* Reads from `fd`, which stays the caller's, as does `path` (for messages); both must outlive *out.
 * Fails with QN_MEMORY, or QN_UNSUPPORTED in a build without zlib. */
qn_status qn__gzip_create(int fd, const char *path, qn__gzip **out, qn_error *err);
/* Unpacks the next `size` bytes; *got tells how many there were: fewer only at the end. Fails with
 * QN_INPUT where the file is not gzip or is cut off. */
qn_status qn__gzip_read(qn__gzip *gzip, void *bytes, size_t size, size_t *got, qn_error *err);
void qn__gzip_destroy(qn__gzip *gzip); /* accepts NULL */

#endif
