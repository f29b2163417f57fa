/* An image file that a caller has in memory. */
#ifndef QN_DATA_IMAGES_IMAGE_BYTES_H
#define QN_DATA_IMAGES_IMAGE_BYTES_H

#include "data/table/data.h"

/* The table of one item that qn_data_open makes of a file with these bytes, which begin as an image
 * does. `options` say nothing of labels or columns. `name` is its place in messages, and the name
 * of the item. The caller closes *out. Fails with QN_INPUT, QN_UNSUPPORTED or QN_MEMORY. */
qn_status qn__image_of_bytes(const void *bytes, size_t size, const char *name,
                             const qn_data_options *options, qn_data **out, qn_error *err);

#endif
