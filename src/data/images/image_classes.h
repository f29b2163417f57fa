/* The classes of images from the folders in which they lie. */
#ifndef QN_DATA_IMAGES_IMAGE_CLASSES_H
#define QN_DATA_IMAGES_IMAGE_CLASSES_H

#include "data/images/image_files.h"
#include "data/table/data.h"

/* Labels the items of `data`, which are the files whose mark is QN__FILE_ITEM, in their order. The
 * class is the folder at the top of a file's name; a folder that holds all other folders does not
 * count. Clutter (image_clutter.h) lies nowhere, by QN__RULE_FILES. No labels where no file lies in
 * a folder. Fails with QN_INPUT (some files lie in folders and some do not, a name that is not
 * UTF-8, names that are not numbers with the task "regress") or QN_MEMORY. */
qn_status qn__image_classes(const qn__image_files *files, const uint8_t *marks,
                            const qn_data_options *options, qn_data *data, qn_error *err);

#endif
