/* Notes for people about what the CSV reader decided where the text was ambiguous. */
#ifndef QN_DATA_TEXT_CSV_NOTES_H
#define QN_DATA_TEXT_CSV_NOTES_H

#include "data/table/data.h"
#include "data/text/csv_header.h"

/* Sets data->note, a line each about the header, a label that was chosen by default, columns of
 * dates; it stays NULL without such a line. Also sets data->comma, for columns that
 * are categories without an option. `shape` is how the columns were read, the schema of `data` is
 * complete. Fails with QN_MEMORY. */
qn_status qn__csv_look_back(const qn__csv_header *header, const qn__row_shape *shape,
                            const qn_data_options *options, qn_data *data, qn_error *err);

#endif
