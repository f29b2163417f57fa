/* The shape of images in formats that do not store it (qn_data_options.shape). */
#ifndef QN_DATA_TABLE_SHAPE_H
#define QN_DATA_TABLE_SHAPE_H

#include "data/table/data.h"

/* Reads a text such as "3x32x32" into channels, rows and columns; 1 channel for "28x28". Fails with
 * QN_USAGE; `field` is for messages. */
qn_status qn__shape_read(const char *text, const char *field, uint32_t shape[3], qn_error *err);

/* Sets channels, rows and columns of the table by a text "28x28" (rows x columns) or "3x32x32"
 * (channels x rows x columns). Fails with QN_USAGE (no such text) or QN_INPUT (its product is not
 * the number of features, or some features are categories); `path` is for messages. */
qn_status qn__shape_set(qn_data *data, const char *text, const char *path, qn_error *err);

#endif
