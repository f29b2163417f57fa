/* What a table of images keeps of its files: their names, and a note of those that are left out.
 *
 * A byte marks each file: one of qn__file_mark, or QN__FILE_OTHER and the number of its format
 * (image/image_other.h). */
#ifndef QN_DATA_IMAGES_IMAGE_NAMES_H
#define QN_DATA_IMAGES_IMAGE_NAMES_H

#include "base/text/text.h"
#include "data/bytes/enclosed_files.h"
#include "data/table/data.h"

typedef enum qn__file_mark {
    QN__FILE_ITEM,
    QN__FILE_BROKEN,
    QN__FILE_CLUTTER,   /* image_clutter.h */
    QN__FILE_LATER,     /* of a format that the version of the model did not read */
    QN__FILE_ELSEWHERE, /* of the share of another rank */
    QN__FILE_OTHER      /* of a format that is not read */
} qn__file_mark;

/* The items' names are those of the files whose mark is QN__FILE_ITEM. `seen` has the size of each
 * file's image before it was resized, or is NULL. */
qn_status qn__image_names(const qn__enclosed_files *files, const uint8_t *marks,
                          const qn__item_size *seen, qn_data *data, qn_error *err);

/* Adds the formats that are not read to a text, with the count of each: "3 HEIC images, 1 SVG
 * drawing". Returns the count of all. */
uint64_t qn__image_others_add(const uint8_t *marks, uint64_t files, qn__text *text);

/* Sets data->note, for people: the files that were left out, the number `turned` of images whose
 * orientation was ignored, and the note `cache` of the cache, unless that is "". */
qn_status qn__image_note(const qn__enclosed_files *files, const uint8_t *marks, uint64_t turned,
                         const char *cache, qn_data *data, qn_error *err);

#endif
