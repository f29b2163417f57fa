/* The formats of images, each in the file of its name. All but bitmaps (docs/exactness.md 2.1.10)
 * are decoded by a library that is opened at run time. JPEG's is the TurboJPEG interface of
 * libjpeg-turbo: plain functions, while the interface of libjpeg is a struct whose layout depends
 * on how the library was built. Of GIF, WebP and TIFF the first picture is read. */
#ifndef QN_IMAGE_IMAGE_FORMATS_H
#define QN_IMAGE_IMAGE_FORMATS_H

#include "base/system/library.h"
#include "image/image_head.h"

/* Whether a file that begins with these bytes is of the format; of TIFF see tiff_tags.h. */
typedef int qn__image_is_one(const uint8_t *bytes, size_t size);
qn__image_is_one qn__gif_is, qn__webp_is, qn__bmp_is;

/* As qn__image_head_read, for a file of the format. head->other is that of a camera's RAW file
 * where a TIFF file is one. */
typedef qn_status qn__image_read_head(const uint8_t *bytes, size_t size, qn__image_head *head,
                                      qn_error *err);
qn__image_read_head qn__gif_head, qn__webp_head, qn__tiff_head, qn__bmp_head;

/* As qn__image_decode. *kept begins as NULL and is released with qn__jpeg_end; only JPEG uses it.
 */
typedef qn_status qn__image_decode_one(void **kept, const uint8_t *bytes, size_t size,
                                       const qn__image_head *head, uint32_t channels,
                                       uint8_t *pixels, qn_error *err);
qn__image_decode_one qn__jpeg_decode, qn__png_decode, qn__gif_decode, qn__webp_decode,
    qn__tiff_decode, qn__bmp_decode;
void qn__jpeg_end(void *handle); /* accepts NULL */

extern qn__optional_library qn__turbojpeg, qn__libpng, qn__giflib, qn__libwebp, qn__libtiff;

#endif
