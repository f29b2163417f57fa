/* Files of typed columns that are one table: a stream of the parts of all of them.
 *
 * Columns are found by their names. Where their types differ from file to file, the stream has one
 * that holds the values of all, and the values of the others are converted. */
#ifndef QN_DATA_ARROW_ARROW_FILES_H
#define QN_DATA_ARROW_ARROW_FILES_H

#include "data/arrow/arrow_table.h"
#include "data/bytes/part_files.h"

/* A file that is open, as a source with portions; its stream is released in any case. */
typedef struct qn__arrow_file {
    qn__arrow_source source;
    struct ArrowArrayStream stream;
} qn__arrow_file;

/* Makes *out of a file. After a failure there is nothing to release. `err` is what its functions
 * fill. */
typedef qn_status qn__arrow_opener(qn__source *source, qn__pool *pool, qn__arrow_file *out,
                                   qn_error *err);

/* Reads all files, as a reader does (data/cells/readers.h). */
qn_status qn__arrow_read_files(qn__part_files *files, qn__arrow_opener *open,
                               const qn_data_options *options, qn__pool *pool, qn_data *data,
                               qn_error *err);

#endif
