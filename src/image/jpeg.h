/* JPEG by the TurboJPEG interface of libjpeg-turbo, opened at run time: plain functions, while the
 * interface of libjpeg is a struct whose layout depends on how the library was built. */
#ifndef QN_IMAGE_JPEG_H
#define QN_IMAGE_JPEG_H

#include "base/system/library.h"
#include "image/image_head.h"

/* As qn__image_decode. *handle begins as NULL and is released with qn__jpeg_end. */
qn_status qn__jpeg_decode(void **handle, const uint8_t *bytes, size_t size,
                          const qn__image_head *head, uint32_t channels, uint8_t *pixels,
                          qn_error *err);
void qn__jpeg_end(void *handle); /* accepts NULL */

extern qn__optional_library qn__turbojpeg;

#endif
