/* The order in which all items of a table in a file are read once.
 *
 * A reading before this one has left some of the file in the kernel's file cache: what it read
 * last, if memory does not hold all. In the order of the file each page would have given way to
 * those before it when its turn comes. So a walk begins where the cached end of the file begins,
 * and takes what is before it at last. */
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

/* These items are not needed in the file cache any more. What is read next then needs no space of
 * pages that are still to come. */
void qn__file_walk_drop(const qn__file_walk *walk, uint64_t from, uint64_t end);

#endif
