/* CSV files that are one table: where the rows of each begin, and how its lines become those of the
 * table. */
#ifndef QN_DATA_TEXT_CSV_PARTS_H
#define QN_DATA_TEXT_CSV_PARTS_H

#include "data/bytes/part_files.h"
#include "data/text/csv_header.h"
#include "data/text/csv_text.h"

typedef struct qn__csv_part {
    const char *path;
    size_t begin, size;  /* its rows, from the first line on that is one */
    uint64_t first_line; /* the number of that line, from 1 */
    uint64_t cells;      /* of each line */
    uint64_t *from;      /* for each column of the files: which cell of a line it is, or UINT64_MAX:
                            none; NULL: the columns have their order */
    char
        *suffix; /* the cells of columns from names of folders, each after a separator; may be "" */
} qn__csv_part;

/* Reads the header of the table from the first lines of all files, as if they were one file
 * (docs/exactness.md 2.12). Afterwards only names, columns, shape and note count. */
qn_status qn__csv_parts_header(qn__part_files *files, const qn__csv_keys *keys,
                               const qn_data_options *options, qn__csv_header *out, qn_error *err);

/* Marks as categories those columns from names of folders that are a text in some file. */
qn_status qn__csv_parts_mark_keys(const qn__file_list *list, qn__csv_header *header, qn_error *err);

/* Finds the rows of file `i`, whose text is `text`. Fails with QN_INPUT where its columns are not
 * those of the table. For qn__csv_part_release in any case. */
qn_status qn__csv_part_find(const qn__file_list *list, size_t i, const qn__csv_header *header,
                            const qn_data_options *options, qn__csv_text *text, qn__csv_part *out,
                            qn_error *err);
/* The cells of the folders' columns of file `i`. */
qn_status qn__csv_part_add_keys(const qn__file_list *list, size_t i, const qn__csv_header *header,
                                qn__csv_part *part, qn_error *err);
void qn__csv_part_release(qn__csv_part *part);

/* Bytes of a text. */
typedef struct qn__csv_span {
    const char *begin, *end;
} qn__csv_span;

/* The memory in which a thread rewrites lines. Begins as {0}. */
typedef struct qn__csv_line_space {
    char *bytes;
    size_t size;
    qn__csv_span *cell; /* of the line */
    uint64_t cells;
} qn__csv_line_space;
void qn__csv_line_space_release(qn__csv_line_space *buffer);

/* 1 when the lines of a file are those of the table as they are. */
static inline int qn__csv_part_is_plain(const qn__csv_part *part) {
    return !part->from && !*part->suffix;
}

/* The line at `at` as a line of the table, *size bytes with its line end; *next: where the next one
 * begins. NULL: it has another number of cells, as `failure` says, or memory is short: then the
 * fault is QN__ROW_FINE. */
const char *qn__csv_part_line(const qn__csv_part *part, const qn__csv_header *header,
                              qn__csv_line_space *buffer, const char *at, const char *end,
                              const char **next, size_t *size, qn__row_failure *failure);

/* The message about a row of a file; `line` of the failure counts from the first row of the file.
 */
qn_status qn__csv_part_refuse_row(const qn__csv_part *part, const qn__csv_header *header,
                                  const qn__row_failure *failure, qn_error *err);

#endif
