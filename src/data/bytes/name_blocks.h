/* Many short texts that live equally long, one after the other in large blocks: a list can have
 * millions of names. Begins as {0}. */
#ifndef QN_DATA_BYTES_NAME_BLOCKS_H
#define QN_DATA_BYTES_NAME_BLOCKS_H

#include "base/error.h"
#include <stddef.h>

typedef struct qn__name_blocks {
    struct qn__name_block *last;
    size_t used, capacity; /* of that one */
} qn__name_blocks;

/* A copy, which can be changed in place; NULL: memory is short. */
char *qn__name_blocks_add(qn__name_blocks *names, const char *text, qn_error *err);
void qn__name_blocks_release(qn__name_blocks *names);

#endif
