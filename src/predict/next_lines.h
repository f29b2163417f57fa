/* Lines of CSV about tokens that come next (docs/formats.md). */
#ifndef QN_PREDICT_NEXT_LINES_H
#define QN_PREDICT_NEXT_LINES_H

#include "base/text/text.h"
#include "data/table/data.h"
#include "job/next_counts.h"
#include <quern/tokenizer.h>

typedef struct qn__next_lines {
    const qn_data *data;
    const qn__next_counts *counts;
    uint32_t positions;
    int each;                /* 1: a line for each token; 0: one for each item */
    qn_tokenizer *tokenizer; /* NULL: tokens have numbers only */
} qn__next_lines;

void qn__next_header(const qn__next_lines *lines, qn__text *text);
/* What there is about an item; without `each` about a text. */
void qn__next_add_lines(const qn__next_lines *lines, uint64_t item, qn__text *text);

#endif
