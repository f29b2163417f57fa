/* Blocks of open files, fetched by a few threads: those that a reader waits for, and those that it
 * will need if it goes on as it does. */
#ifndef QN_STORE_FETCH_H
#define QN_STORE_FETCH_H

#include "store/cached.h"

/* Returns when the bytes are there. Fails as qn__remote_fetch. */
qn_status qn__cached_fetch(qn__cached *file, uint64_t from, uint64_t size, qn_error *err);

/* Begins to fetch the bytes, as many as there is space for in the queue. */
void qn__fetch_plan(qn__cached *file, uint64_t from, uint64_t size);

/* Ends the requests of a file; returns when none is left. */
void qn__fetch_stop(qn__cached *file);

#endif
