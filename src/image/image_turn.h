/* Applies the orientation of Exif to decoded pixels: docs/exactness.md 23.3. */
#ifndef QN_IMAGE_IMAGE_TURN_H
#define QN_IMAGE_IMAGE_TURN_H

#include "image/image_head.h"

/* `pixels` has head->height x head->width pixels, `out` qn__image_height x qn__image_width. Both
 * are [row][column][channel], with 1 or 3 channels, and do not overlap. */
void qn__image_turn(const uint8_t *pixels, const qn__image_head *head, uint32_t channels,
                    uint8_t *out);

#endif
