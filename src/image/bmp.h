/* Windows and OS/2 bitmaps: docs/exactness.md 2.1.10. */
#ifndef QN_IMAGE_BMP_H
#define QN_IMAGE_BMP_H

#include "image/image_head.h"

int qn__bmp_is(const uint8_t *bytes, size_t size);

/* As qn__image_head_read, for a file that qn__bmp_is. */
qn_status qn__bmp_head(const uint8_t *bytes, size_t size, qn__image_head *head, qn_error *err);

/* As qn__image_decode; `kept` is not used. */
qn_status qn__bmp_decode(void **kept, const uint8_t *bytes, size_t size, const qn__image_head *head,
                         uint32_t channels, uint8_t *pixels, qn_error *err);

#endif
