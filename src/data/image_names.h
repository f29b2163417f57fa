/* What a table of images keeps of its files: their names, and a note of those that are left out. */
#ifndef QN_DATA_IMAGE_NAMES_H
#define QN_DATA_IMAGE_NAMES_H

#include "data/data.h"
#include "data/image_files.h"

/* The items' names are those of the files that are not broken: broken[i] is 0. */
qn_status qn__image_names(const qn__image_files *files, const uint8_t *broken, qn_data *data,
                          qn_error *err);

/* Sets data->note to what is told to people: the files that were left out, and what `cache` says of
 * the cache, unless that is "". */
qn_status qn__image_note(const qn__image_files *files, const uint8_t *broken, const char *cache,
                         qn_data *data, qn_error *err);

#endif
