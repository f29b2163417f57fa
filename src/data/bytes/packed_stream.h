/* A compressed file, unpacked piece by piece. */
#ifndef QN_DATA_BYTES_PACKED_STREAM_H
#define QN_DATA_BYTES_PACKED_STREAM_H

#include "data/bytes/packing.h"

typedef struct qn__packed qn__packed;

/* Reads from `fd`, which stays the caller's, as does `path` (for messages); both must outlive
 * *out. Fails with QN_MEMORY, or QN_UNSUPPORTED where the library is missing. */
qn_status qn__packed_create(const qn__unpacker *unpacker, int fd, const char *path,
                            uint64_t file_size, qn__packed **out, qn_error *err);
/* Unpacks the next `size` bytes; *got is the number of bytes: fewer only at the end. Fails with
 * QN_INPUT if the file is not of this kind, is truncated, or unpacks to too much. Output goes
 * directly to `bytes`; the memory is one input buffer. */
qn_status qn__packed_read(qn__packed *packed, void *bytes, size_t size, size_t *got, qn_error *err);
void qn__packed_destroy(qn__packed *packed); /* accepts NULL */

#endif
