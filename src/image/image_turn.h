/* Pixels as they are to be seen, by the orientation of Exif: docs/exactness.md 23.3. */
#ifndef QN_IMAGE_IMAGE_TURN_H
#define QN_IMAGE_IMAGE_TURN_H

#include "image/image_head.h"

/* `pixels` and `out`: [row][column][channel], of head->height x head->width and of the image as it
 * is seen; 1 or 3 channels. */
void qn__image_turn(const uint8_t *pixels, const qn__image_head *head, uint32_t channels,
                    uint8_t *out);

#endif
