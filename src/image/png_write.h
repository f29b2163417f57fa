/* A PNG file of pixels, not compressed: for the few images that Quern itself draws. */
#ifndef QN_IMAGE_PNG_WRITE_H
#define QN_IMAGE_PNG_WRITE_H

#include "base/error.h"
#include <stdint.h>

/* The bytes of a PNG file of height x width pixels of 1 (grey), 3 or 4 (with opacity) bytes, row
 * after row. *file is the caller's, for qn__free. After QN_MEMORY, the only failure, it is NULL. */
qn_status qn__png_encode(const uint8_t *pixels, uint32_t height, uint32_t width, uint32_t channels,
                         uint8_t **file, size_t *size, qn_error *err);

/* Writes height x width pixels of 1, 3 or 4 bytes, row after row, to `path`, as
 * qn__writer_commit does. Fails with QN_IO or QN_MEMORY. */
qn_status qn__png_write(const char *path, const uint8_t *pixels, uint32_t height, uint32_t width,
                        uint32_t channels, qn_error *err);

#endif
