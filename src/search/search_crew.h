/* The workers of this process that make runs of a search: a thread each, with cores or a device of
 * its own. */
#ifndef QN_SEARCH_SEARCH_CREW_H
#define QN_SEARCH_SEARCH_CREW_H

#include "search/search_state.h"

typedef struct qn__crew qn__crew;

typedef struct qn__made {
    uint64_t run;
    qn_search_result result;
    qn_error err;
    qn_status status; /* QN_OK: `result` is set; else `err` */
} qn__made;

/* Starts workers for at most `runs` runs. The caller closes *out. Fails with QN_MEMORY or
 * QN_USAGE. */
qn_status qn__crew_open(qn_search *search, uint64_t runs, qn__crew **out, qn_error *err);
uint32_t qn__crew_workers(const qn__crew *crew);

/* Gives a run to a free worker: at most so many at a time as there are workers. */
void qn__crew_give(qn__crew *crew, uint64_t run);

/* Waits until a run is made, or for so many seconds. */
void qn__crew_wait(qn__crew *crew, double seconds);

/* Takes runs that are made, at most `capacity`; returns how many. */
uint32_t qn__crew_take(qn__crew *crew, qn__made *to, uint32_t capacity);

/* Frees the data of a fold, all of whose runs are done on all ranks. */
void qn__crew_drop_fold(qn__crew *crew, uint32_t number);

/* Ends the runs in progress after their step, and frees everything. Accepts NULL. */
void qn__crew_close(qn__crew *crew);

#endif
