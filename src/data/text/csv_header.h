/* The first lines of a CSV file: its separator, whether it has a header, which columns are read.
 *
 * csv_header.c finds the first line and the names, csv_guess.c decides whether they are names,
 * csv_faults.c says what is wrong. The columns that options name: data/cells/columns.h. */
#ifndef QN_DATA_TEXT_CSV_HEADER_H
#define QN_DATA_TEXT_CSV_HEADER_H

#include "data/bytes/folder_keys.h"
#include "data/table/schema.h"
#include "data/text/csv.h"

/* Where lines are looked at before the table is read: those after the first line that begin within
 * this many bytes of the file, this many at most, at least one. */
#define QN__LOOK_BYTES ((size_t)1 << 20)
enum { QN__LOOK_LINES = 100 };

typedef struct qn__csv_header {
    qn__columns table;
    const char *text;    /* where the file begins */
    const char *body;    /* where the first item's line begins */
    const char *end;     /* after the last item's line, without line ends and blanks */
    uint64_t first_line; /* number of the body's first line, from 1 */
    uint32_t rules;      /* of reading, that made the first line what it is */
    char *note;          /* what was decided where the text was ambiguous, or NULL */
    uint64_t own;        /* columns of the file itself; those from names of folders follow */
} qn__csv_header;

/* Columns from names of folders (folder_keys.h). */
typedef struct qn__csv_keys {
    const qn__folder_key *key;
    size_t count;
} qn__csv_keys;

/* Reads the first lines of a text of `size` bytes. The body is never empty. The columns of folders
 * follow those of the file, but for names that the file has itself. Release in any case after
 * QN_OK, before the text goes away. */
qn_status qn__csv_header_read(const char *text, size_t size, const char *path,
                              const qn__csv_keys *keys, const qn_data_options *options,
                              qn__csv_header *out, qn_error *err);
void qn__csv_header_release(qn__csv_header *header);
/* 1 when text after these lines cannot change what was decided about the header. */
int qn__csv_header_is_settled(const qn__csv_header *header);

/* Empty lines at the end of the text, and blanks after its last cell, are not part of it. A tab may
 * separate an empty cell. */
static inline int qn__csv_is_ending(char c) { return c == '\n' || c == '\r' || c == ' '; }

/* What comes before the first line: empty lines and comments. */
typedef struct qn__csv_prefix {
    const char *comment; /* after the '#' of the last one, or NULL */
    const char *comment_end;
    uint64_t lines;
} qn__csv_prefix;
/* Skips them, and a mark of UTF-8; returns where the first line begins. */
const char *qn__csv_skip_prefix(const char *at, const char *end, qn__csv_prefix *out);

/* What one pass over a line finds; quoted cells may hold line ends. */
typedef struct qn__csv_line {
    const char *begin, *end; /* of its text; '\n', or the end of the file, follows */
    uint64_t columns;
    uint64_t numbers, texts; /* cells of these contents (qn__cell_content) */
    uint64_t line_ends;      /* inside quotes */
    int broken;              /* a quote that is not closed, or text after a closed one */
} qn__csv_line;
qn__csv_line qn__csv_line_walk(const char *at, const char *end, char separator);

/* Checks that the first line of a file is that of a CSV file; fails with QN_INPUT. `header` says
 * where it is and what separates cells. */
qn_status qn__csv_check_first_line(const qn__csv_header *header, const qn__csv_line *line,
                                   qn_error *err);
/* The one of , ; and tab that separates the cells of a first line. */
char qn__csv_find_separator(const char *at, const char *end);
/* A column's name: the cell with doubled quotes made single, and U+FFFD for what is not UTF-8. */
char *qn__csv_copy_name(const qn__cell *cell, qn_error *err);

/* Whether a line is a header, by the lines after it (docs/exactness.md 2.1.4). `commas`: numbers
 * may have a decimal comma. */
typedef struct qn__csv_guess {
    int is_header;
    const char *note; /* in which there was a doubt; a constant text, or NULL */
} qn__csv_guess;
qn_status qn__csv_guess_header(const qn__csv_header *header, const qn__csv_line *line, int commas,
                               qn__csv_guess *out, qn_error *err);

/* Messages. Both return QN_INPUT: `what` of err is set already for a line; a row says it itself. */
qn_status qn__csv_refuse_line(const char *path, uint64_t line, const char *remedy, qn_error *err);
qn_status qn__csv_refuse_row(const qn__csv_header *header, const qn__row_failure *failure,
                             qn_error *err);
/* There is a header, on that line, and nothing after it. */
qn_status qn__csv_refuse_empty(const char *path, uint64_t line, qn_error *err);

#endif
