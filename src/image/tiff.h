/* TIFF, the first image, by libtiff, opened at run time. */
#ifndef QN_IMAGE_TIFF_H
#define QN_IMAGE_TIFF_H

#include "base/system/library.h"
#include "image/image_head.h"

/* As qn__image_head_read, for a file that qn__tiff_is (tiff_tags.h). head->other is
 * that of a camera's RAW file where it is one. */
qn_status qn__tiff_head(const uint8_t *bytes, size_t size, qn__image_head *head, qn_error *err);

/* As qn__image_decode; `kept` is not used. */
qn_status qn__tiff_decode(void **kept, const uint8_t *bytes, size_t size,
                          const qn__image_head *head, uint32_t channels, uint8_t *pixels,
                          qn_error *err);

extern qn__optional_library qn__libtiff;

#endif
