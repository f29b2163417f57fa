/* PNG by libpng, opened at run time. */
#ifndef QN_IMAGE_PNG_READ_H
#define QN_IMAGE_PNG_READ_H

#include "base/system/library.h"
#include "image/image_head.h"

/* As qn__image_decode; `kept` is not used. */
qn_status qn__png_decode(void **kept, const uint8_t *bytes, size_t size, const qn__image_head *head,
                         uint32_t channels, uint8_t *pixels, qn_error *err);

extern qn__optional_library qn__libpng;

#endif
