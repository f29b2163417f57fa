/* Reading from a file descriptor. */
#ifndef QN_DATA_BYTES_DESCRIPTOR_H
#define QN_DATA_BYTES_DESCRIPTOR_H

#include "base/error.h"
#include <stddef.h>
#include <stdint.h>

/* Reads `size` bytes or up to the end of the file; *got is the number read. `path` is for messages.
 * Fails with QN_IO. */
qn_status qn__descriptor_read(int fd, const char *path, void *bytes, size_t size, size_t *got,
                              qn_error *err);

/* Reads `size` bytes from byte `from` on. The file's position is neither used nor changed. Also
 * fails with QN_INPUT when the file has become too short. */
qn_status qn__descriptor_read_at(int fd, const char *path, uint64_t from, void *bytes, size_t size,
                                 qn_error *err);

#endif
