/* A reader of typed files as an Arrow C stream with portions (arrow_table.h). */
#ifndef QN_DATA_ARROW_ARROW_PORTIONS_H
#define QN_DATA_ARROW_ARROW_PORTIONS_H

#include "data/arrow/arrow_files.h"

typedef struct qn__portions qn__portions;

/* What a reader does; `rows`, `more` and `pieces` as in qn__arrow_source. */
typedef struct qn__portions_table {
    qn_status (*schema)(qn__portions *reader, struct ArrowSchema *out);
    qn_status (*rows)(qn__portions *reader, uint64_t *rows);
    /* *out is {0}, and stays so at the end of a portion. */
    qn_status (*next)(qn__portions *reader, struct ArrowArray *out);
    int (*more)(qn__portions *reader);
    void (*release)(qn__portions *reader);
    const char *pieces;
} qn__portions_table;

/* The state of a reader begins with this. */
struct qn__portions {
    const qn__portions_table *table;
    uint8_t *wanted;  /* the reader's, since `schema`: 1 for each column that has a use */
    uint64_t columns; /* set by `schema` */
    qn_status status; /* of the last call; `more` may set it for the next one */
    qn_error *err;
};

/* Makes the stream and the source of a reader. `name` and `pool` outlive it. */
void qn__portions_stream(qn__portions *reader, const char *name, qn__pool *pool,
                         qn__arrow_file *out);

#endif
