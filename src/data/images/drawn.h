/* Items that can be written as images: bytes with one or three channels. */
#ifndef QN_DATA_IMAGES_DRAWN_H
#define QN_DATA_IMAGES_DRAWN_H

#include "data/table/data.h"

/* QN_INPUT, with a remedy, when the items are not images of bytes with 1 or 3 channels. */
qn_status qn__drawn_check(const qn_data *data, qn_error *err);

/* The pixels of an item with these values, [row][column][channel]; `out` has space for its
 * features.
 */
void qn__drawn_pixels(const qn_data *data, const uint8_t *value, uint8_t *out);

#endif
