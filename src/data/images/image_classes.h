/* The classes of images, from the folders that contain them. */
#ifndef QN_DATA_IMAGES_IMAGE_CLASSES_H
#define QN_DATA_IMAGES_IMAGE_CLASSES_H

#include "data/bytes/enclosed_files.h"
#include "data/table/data.h"

/* Labels the items of `data`, which are the files whose mark is QN__FILE_ITEM, in their order. The
 * class is the folder at the top of a file's name; a folder that holds all other folders of its
 * archive, or of the folder that was named, does not count. With QN__RULE_FILES clutter
 * (image_clutter.h) is not considered. If no file is in a folder, the items stay without labels.
 * Fails with QN_INPUT (some files are in folders and some are not, a name that is not UTF-8, names
 * that are not numbers with the task "regress") or QN_MEMORY. */
qn_status qn__image_classes(const qn__enclosed_files *files, const uint8_t *marks,
                            const qn_data_options *options, qn_data *data, qn_error *err);

#endif
