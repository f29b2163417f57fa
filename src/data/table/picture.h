/* Whether bytes are brightnesses or small numbers: docs/exactness.md 2.4. */
#ifndef QN_DATA_TABLE_PICTURE_H
#define QN_DATA_TABLE_PICTURE_H

#include "data/table/data.h"

/* 1 when the items are image files, one by one, in folders or in an archive. */
int qn__of_image_files(const qn_data *data);

/* 1 when the items are image files, or when the table is of bytes that use their range as pictures
 * do: none of its columns holds categories, some hold a value of 128 or more, and these are at
 * least half of those that hold a value other than 0. Depends on the values of all items alone, not
 * on their order. -1 when memory is short. */
int qn__is_picture(const qn_data *data, qn_error *err);

#endif
