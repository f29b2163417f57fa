/* Divides the runs of a search among the ranks. Every rank computes the same division from the same
 * facts, so no messages about it are needed. */
#ifndef QN_SEARCH_SEARCH_SHARE_H
#define QN_SEARCH_SEARCH_SHARE_H

#include "base/error.h"
#include <stdint.h>

typedef struct qn__share_rank {
    int present;
    uint32_t workers; /* runs that it can make at a time */
    uint32_t busy;    /* runs that it has */
    uint64_t made;    /* runs that it has made, and their time together */
    double seconds;
} qn__share_rank;

typedef struct qn__share {
    uint64_t runs, done, next; /* `next`: no run before it is free */
    uint32_t ranks;
    qn__share_rank *rank;
    uint32_t *owner; /* of each run: a rank, or one of those below */
} qn__share;

#define QN__SHARE_FREE (UINT32_MAX - 1)
#define QN__SHARE_DONE UINT32_MAX

/* All runs are free, no rank is present. The caller closes it also after a failure. */
qn_status qn__share_open(qn__share *s, uint64_t runs, uint32_t ranks, qn_error *err);
void qn__share_close(qn__share *s);

/* A run is done, made by `rank` in so many seconds; a `rank` that is not below the number of ranks:
 * in an earlier, interrupted search. */
void qn__share_done(qn__share *s, uint64_t run, uint32_t rank, double seconds);

/* The rank is gone, and its runs are free again. */
void qn__share_lose(qn__share *s, uint32_t rank);

/* Gives the next free run to a rank that has a free worker: that with the least time a run, or
 * whose time is not known. A slow rank gets none when others, which have work, would still make all
 * free runs before it would make one. 0: there is nothing to give. */
int qn__share_give(qn__share *s, uint64_t *run, uint32_t *rank);

#endif
