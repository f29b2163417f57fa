/* The first line of a CSV file: its separator, whether it is a header, which column is the
 * label. */
#ifndef QN_DATA_CSV_HEADER_H
#define QN_DATA_CSV_HEADER_H

#include "data/csv.h"

typedef struct qn__csv_header {
    const char *path;
    qn__csv_shape shape;
    char **names;        /* of the columns, or NULL if the first line is data */
    const char *body;    /* start of the first item's line */
    const char *end;     /* end of the last item's line, without line ends */
    uint64_t first_line; /* line number of the body, from 1 */
} qn__csv_header;

/* Reads the first line of a text of `size` bytes. The body is never empty. Release after QN_OK in
 * any case, while the text is still valid. */
qn_status qn__csv_header_read(const char *text, size_t size, const char *path,
                              const qn_data_options *options, qn__csv_header *out, qn_error *err);
/* Transfers the names of the features to the caller, who frees each and the list, which NULL ends:
 * all columns except the label's. NULL if the first line is data. */
char **qn__csv_header_take_names(qn__csv_header *header);
void qn__csv_header_release(qn__csv_header *header);

/* Reports an invalid row. Returns QN_INPUT. */
qn_status qn__csv_refuse_row(const qn__csv_header *header, const qn__row_failure *failure,
                             qn_error *err);

#endif
