/* The order in which all items of a table in a file are read once.
 *
 * An earlier pass has left the end of the file in the kernel's file cache, if memory does not hold
 * all of it. A second pass from the beginning would evict each cached page before it reaches it. So
 * a walk begins where the cached end of the file begins, and reads the rest of the file last. */
#ifndef QN_DATA_AHEAD_FILE_WALK_H
#define QN_DATA_AHEAD_FILE_WALK_H

#include "data/table/data.h"
#include <stdatomic.h>

typedef struct qn__file_walk {
    const qn_data *data;
    uint64_t items, chunks, first; /* of a chunk; in all; the chunk to begin with */
    _Atomic uint64_t next;
} qn__file_walk;

/* `data`, which has its values in a file, must outlive the walk. Also begins it again. */
void qn__file_walk_begin(qn__file_walk *walk, const qn_data *data);

/* Takes the next items, *from .. *end-1; 0: there are none. Any threads. */
int qn__file_walk_next(qn__file_walk *walk, uint64_t *from, uint64_t *end);

/* Drops these items from the file cache, so that the next pages to be read do not evict cached
 * pages that are still needed. */
void qn__file_walk_drop(const qn__file_walk *walk, uint64_t from, uint64_t end);

#endif
