/* Rows about tokens that come next (docs/formats.md). */
#ifndef QN_PREDICT_NEXT_LINES_H
#define QN_PREDICT_NEXT_LINES_H

#include "data/table/data.h"
#include "data/write/sink.h"
#include "job/next_counts.h"
#include <quern/tokenizer.h>

typedef struct qn__next_lines {
    const qn_data *data;
    const qn__next_counts *counts;
    uint64_t first; /* the number of the first text, in what is written */
    uint32_t positions;
    int each;                /* 1: a row for each token; 0: one for each item */
    qn_tokenizer *tokenizer; /* NULL: tokens have numbers only */
} qn__next_lines;

/* The columns, and how many. */
enum { QN__NEXT_COLUMNS = 7 };
uint32_t qn__next_columns(const qn__next_lines *lines, qn__sink_column column[QN__NEXT_COLUMNS]);
/* What there is about an item; without `each` about a text. */
qn_status qn__next_add_rows(const qn__next_lines *lines, uint64_t item, qn__sink *sink,
                            qn_error *err);

#endif
