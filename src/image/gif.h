/* GIF, the first picture, by giflib, opened at run time. */
#ifndef QN_IMAGE_GIF_H
#define QN_IMAGE_GIF_H

#include "base/system/library.h"
#include "image/image_head.h"

int qn__gif_is(const uint8_t *bytes, size_t size);

/* As qn__image_head_read, for a file that qn__gif_is. */
qn_status qn__gif_head(const uint8_t *bytes, size_t size, qn__image_head *head, qn_error *err);

/* As qn__image_decode; `kept` is not used. */
qn_status qn__gif_decode(void **kept, const uint8_t *bytes, size_t size, const qn__image_head *head,
                         uint32_t channels, uint8_t *pixels, qn_error *err);

extern qn__optional_library qn__giflib;

#endif
