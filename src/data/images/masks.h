/* Masks: PNG files of the names of the images, whose pixels are classes (docs/exactness.md 24.78).
 */
#ifndef QN_DATA_IMAGES_MASKS_H
#define QN_DATA_IMAGES_MASKS_H

#include "base/system/threads.h"
#include "data/table/data.h"

/* Reads the value of `options->ignore`: 255 where nothing is said. Fails with QN_USAGE. */
qn_status qn__masks_ignored(const char *ignore, uint32_t *out, qn_error *err);

/* Reads the masks of all items, whose names and sizes are known, from the folder
 * `options->masks`. */
qn_status qn__masks_read(const qn_data_options *options, qn__pool *pool, qn_data *data,
                         qn_error *err);

#endif
