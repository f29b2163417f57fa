/* Numbers of a file that float32 holds badly, although nothing else is kept of them. */
#ifndef QN_DATA_CELLS_ROUNDED_H
#define QN_DATA_CELLS_ROUNDED_H

#include "data/table/data.h"

/* Notes features and targets that span so little beside their magnitude that float32 leaves them
 * fewer than half of its bits. `as_text`: the file holds texts of numbers, which are rounded as
 * they are read. Fails with QN_MEMORY. */
qn_status qn__note_rounded(qn_data *data, int as_text, qn_error *err);

#endif
