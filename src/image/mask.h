/* PNG files whose pixels are numbers of classes: of one grey channel, or of a palette. */
#ifndef QN_IMAGE_MASK_H
#define QN_IMAGE_MASK_H

#include "image/image_head.h"
#include "image/resize.h"

/* Refuses files that are not PNG, or have colours without a palette, opacity or 16 bits: QN_INPUT,
 * without a place. `head` is that of the file. */
qn_status qn__mask_check(const uint8_t *bytes, size_t size, const qn__image_head *head,
                         qn_error *err);

/* The values of the pixels, or their places in the palette: height x width bytes. Fails as
 * qn__image_decode does. */
qn_status qn__mask_decode(const uint8_t *bytes, size_t size, const qn__image_head *head,
                          uint8_t *pixels, qn_error *err);

/* The nearest pixel for each of resize->height x resize->width (docs/exactness.md 24.78). Fails as
 * qn__resize_planes does. */
qn_status qn__resize_nearest(const qn__resize *resize, const uint8_t *pixels, uint32_t height,
                             uint32_t width, uint8_t *to, qn_error *err);

/* The contrary (24.16): the classes of an image of `height` x `width` pixels by those of `rows` x
 * `columns` areas of what was made of it; QN__OUTSIDE where a crop has cut the image off. */
enum { QN__OUTSIDE = 255 };
qn_status qn__resize_undo(const qn__resize *resize, const uint8_t *mask, uint32_t rows,
                          uint32_t columns, uint32_t height, uint32_t width, uint8_t *to,
                          qn_error *err);

/* The colour of class `number` < 256: red, green and blue. */
void qn__mask_colour(uint32_t number, uint8_t colour[3]);

/* A PNG file of indices into a palette of 256 colours, which tell classes apart; else as
 * qn__png_encode. A chunk in it marks it (24.79). */
qn_status qn__mask_encode(const uint8_t *pixels, uint32_t height, uint32_t width, uint8_t **file,
                          size_t *size, qn_error *err);

/* Whether these are the bytes of a file that qn__mask_encode made, and nobody changed. */
int qn__mask_is_made(const uint8_t *bytes, size_t size);

#endif
