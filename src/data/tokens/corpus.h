/* The files of a corpus as texts. */
#ifndef QN_DATA_TOKENS_CORPUS_H
#define QN_DATA_TOKENS_CORPUS_H

#include "data/bytes/source.h"
#include "data/tokens/models/token_kind.h"

typedef struct qn__corpus {
    qn__token_text *text; /* one a document */
    size_t count, capacity;
    struct qn__corpus_file *file; /* what has their bytes; NULL: the caller */
    size_t files;
} qn__corpus;

/* Reads files, plain or compressed; "-" is the standard input. A file is a document; of an archive
 * (enclosed_texts.h) each file is one. Together they may be larger than
 * memory: large ones are mapped. After a failure nothing has to be released. */
qn_status qn__corpus_open(const char *const *paths, size_t count, qn__corpus *out, qn_error *err);
/* The same of an open file, which belongs to the corpus in any case. */
qn_status qn__corpus_of_source(qn__source *source, qn__corpus *out, qn_error *err);
/* Fails with QN_INPUT where a file has changed since it was opened; else returns `status`. */
qn_status qn__corpus_end(const qn__corpus *corpus, qn_status status, qn_error *err);
void qn__corpus_close(qn__corpus *corpus);

#endif
