/* Converts interleaved pixels to planes, one for each channel. */
#ifndef QN_IMAGE_PLANES_H
#define QN_IMAGE_PLANES_H

#include <stdint.h>

/* `pixels`: [row][column][channel]; `planes`: [channel][row][column]. 1 or 3 channels. */
void qn__planes_of(const uint8_t *pixels, uint32_t height, uint32_t width, uint32_t channels,
                   uint8_t *planes);

#endif
