/* Columns whose numbers lose most of their precision as float32, and are not kept exactly. */
#ifndef QN_DATA_CELLS_ROUNDED_H
#define QN_DATA_CELLS_ROUNDED_H

#include "data/table/data.h"

/* Adds a note about features and targets whose range is so small compared with their magnitude that
 * fewer than half of a float32's bits distinguish them. `as_text`: the file holds texts of numbers,
 * which are rounded as they are read. Fails with QN_MEMORY. */
qn_status qn__note_rounded(qn_data *data, int as_text, qn_error *err);

#endif
