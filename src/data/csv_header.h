/* The first line of a CSV file: its separator, whether it is a header, which column is the label.
 */
#ifndef QN_DATA_CSV_HEADER_H
#define QN_DATA_CSV_HEADER_H

#include "data/csv.h"

typedef struct qn__csv_header {
    const char *path;
    qn__csv_shape shape;
    char **names;        /* of the columns, or NULL when the first line is data */
    const char *body;    /* where the first item's line begins */
    const char *end;     /* behind the last item's line, without line ends */
    uint64_t first_line; /* number of the body's first line, from 1 */
} qn__csv_header;

/* Reads the first line of a text of `size` bytes. The body is never empty. Release in any case
 * after QN_OK, before the text goes away. */
qn_status qn__csv_header_read(const char *text, size_t size, const char *path,
                              const qn_data_options *options, qn__csv_header *out, qn_error *err);
/* Hands the names of the features to the caller, who frees each and the list, which NULL ends: all
 * columns' but the label's. NULL when the first line is data. */
char **qn__csv_header_take_names(qn__csv_header *header);
void qn__csv_header_release(qn__csv_header *header);

/* The message for a row that is wrong. Returns QN_INPUT. */
qn_status qn__csv_refuse_row(const qn__csv_header *header, const qn__row_failure *failure,
                             qn_error *err);

#endif
