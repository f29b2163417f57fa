/* gzip in memory. Files of it are read through packing.h. */
#ifndef QN_DATA_BYTES_GZIP_H
#define QN_DATA_BYTES_GZIP_H

#include "base/error.h"
#include <stddef.h>

/* QN_UNSUPPORTED in a build without zlib. */
qn_status qn__gzip_need(qn_error *err);
/* Unpacks gzip in memory. 1 when it gives exactly `made` bytes. After qn__gzip_need. */
int qn__gzip_block(const uint8_t *from, size_t size, uint8_t *to, size_t made);

#endif
