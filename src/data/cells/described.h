/* What a file says about its columns, without its rows. */
#ifndef QN_DATA_CELLS_DESCRIBED_H
#define QN_DATA_CELLS_DESCRIBED_H

#include "base/error.h"
#include <stddef.h>
#include <stdint.h>

typedef struct qn__described_column {
    char *name;
    const char *type; /* a constant */
    int may_miss;
} qn__described_column;

typedef struct qn__described {
    qn__described_column *column;
    size_t columns;
    uint64_t items;
} qn__described;

void qn__described_release(qn__described *described);

#endif
