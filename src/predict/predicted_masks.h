/* Predicted masks as PNG files (docs/exactness.md 24.79). */
#ifndef QN_PREDICT_PREDICTED_MASKS_H
#define QN_PREDICT_PREDICTED_MASKS_H

#include "data/table/data.h"

/* Masks of the items of `data`, rows x columns classes each, row after row. An item whose first
 * class is QN__NO_TARGET has no prediction, and gets no file. A file has the size of the original
 * image (24.16); rows x columns where `as_given` is 1, and where items are not images. */
typedef struct qn__predicted_masks {
    const qn_data *data;
    uint64_t first, end; /* the items that get files */
    const uint8_t *answers;
    uint32_t rows, columns;
    int as_given;
    int (*may)(void *user); /* as of qn__writer_ask */
    void *user;
} qn__predicted_masks;

/* Whether qn__predicted_masks_write may write files with the names of all items into `folder`:
 * those that are there must be such files, which nobody changed. Fails with QN_INPUT (one is not;
 * two items would have one file), QN_IO or QN_MEMORY. */
qn_status qn__predicted_masks_check(const qn_data *data, const char *folder, qn_error *err);

/* Writes a file for each into `folder`, which is made where it is missing. Fails as
 * qn__predicted_masks_check does, then before anything is written, and with QN_BUSY. */
qn_status qn__predicted_masks_write(const qn__predicted_masks *masks, const char *folder,
                                    qn_error *err);

/* Writes the mask of one item as the file `name` of the folder; folders on the way are made. Fails
 * as qn__predicted_masks_write. */
qn_status qn__predicted_mask_write(const qn__predicted_masks *masks, uint64_t item,
                                   const char *folder, const char *name, qn_error *err);

#endif
