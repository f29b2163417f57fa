/* Predicted tags as lines of CSV (docs/exactness.md 25.48). */
#ifndef QN_PREDICT_TAG_LINES_H
#define QN_PREDICT_TAG_LINES_H

#include "base/text/text.h"
#include "data/table/data.h"

typedef struct qn__tag_lines {
    const qn_data *data;
    const uint8_t *answers;   /* `positions` of each item */
    uint32_t positions, rows; /* rows: tokens of the model's embedding */
    const qn__schema *table;  /* the model's names of classes; NULL: it has none */
} qn__tag_lines;

/* The tags of an item as one text with spaces between: of its words where the table knows them,
 * else of its tokens. -100 stands for a word without a token. From qn__text_take: the caller frees
 * it; NULL if out of memory. */
char *qn__tag_line(const qn__tag_lines *lines, uint64_t item, qn_error *err);

/* The same of the labels of the data. */
char *qn__tag_line_of_labels(const qn__tag_lines *lines, uint64_t item, qn_error *err);

#endif
