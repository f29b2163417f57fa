/* The text of a CSV file. A plain file is read piece by piece, each thread into its own buffer. So
 * a large file takes little memory, and one that is truncated meanwhile is an error. The contents
 * of a gzip file are kept in memory completely. */
#ifndef QN_DATA_TEXT_CSV_TEXT_H
#define QN_DATA_TEXT_CSV_TEXT_H

#include "data/bytes/source.h"
#include "data/text/csv_header.h"
#include <quern/data.h>
#include <stddef.h>

typedef struct qn__csv_text qn__csv_text;

/* `source` must outlive the text; nothing else may read from it. */
qn_status qn__csv_text_open(qn__source *source, int threads, qn__csv_text **out, qn_error *err);
void qn__csv_text_close(qn__csv_text *text);

/* Reads the header. The lines after it are `size` bytes from `begin` on, without the line ends at
 * the end of the file. */
qn_status qn__csv_text_header(qn__csv_text *text, const char *path, const qn__csv_keys *keys,
                              const qn_data_options *options, qn__csv_header *header, size_t *begin,
                              size_t *size, qn_error *err);
/* Where the text ends without the empty lines at its end, but not before `least`. */
qn_status qn__csv_text_end(qn__csv_text *text, size_t least, size_t *end, qn_error *err);
size_t qn__csv_text_size(const qn__csv_text *text);

/* `size` bytes from `from` on, valid until the same thread's next call. NULL: they could not be
 * read; qn__csv_text_status has the reason. */
const char *qn__csv_text_at(qn__csv_text *text, int thread, size_t from, size_t size);

/* The first failure of a thread, if there was one. */
qn_status qn__csv_text_status(const qn__csv_text *text, qn_error *err);

/* These bytes are not needed any more, until qn__csv_text_renew, which reads all from the file
 * again where some were forgotten. */
void qn__csv_text_forget(const qn__csv_text *text, const char *begin, const char *end);
qn_status qn__csv_text_renew(qn__csv_text *text, qn_error *err);

#endif
