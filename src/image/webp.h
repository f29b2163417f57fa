/* WebP, the first picture, by libwebp, opened at run time. */
#ifndef QN_IMAGE_WEBP_H
#define QN_IMAGE_WEBP_H

#include "base/system/library.h"
#include "image/image_head.h"

int qn__webp_is(const uint8_t *bytes, size_t size);

/* As qn__image_head_read, for a file that qn__webp_is. */
qn_status qn__webp_head(const uint8_t *bytes, size_t size, qn__image_head *head, qn_error *err);

/* As qn__image_decode; `kept` is not used. */
qn_status qn__webp_decode(void **kept, const uint8_t *bytes, size_t size,
                          const qn__image_head *head, uint32_t channels, uint8_t *pixels,
                          qn_error *err);

extern qn__optional_library qn__libwebp;

#endif
