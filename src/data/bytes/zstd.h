/* zstd (RFC 8878) in memory, by libzstd.so.1, which is opened when it is first needed. Files of it
 * are read through packing.h. */
#ifndef QN_DATA_BYTES_ZSTD_H
#define QN_DATA_BYTES_ZSTD_H

#include "base/error.h"
#include <stddef.h>

/* QN_UNSUPPORTED, with the name of the package, where the library is missing. */
qn_status qn__zstd_need(qn_error *err);

/* Decompresses a block in memory. 1 when it gives exactly `made` bytes. After qn__zstd_need. */
int qn__zstd_block(const uint8_t *from, size_t size, uint8_t *to, size_t made);

#endif
