/* What the ranks have exchanged while they prepared a run, on rank 0. A rank that joins prepares
 * itself with it, as if it had been there: instead of a reduction it takes the total that the
 * others had. It also reads tables that are spread over ranks from rank 0, before it is let in. */
#ifndef QN_CLUSTER_RUN_HISTORY_H
#define QN_CLUSTER_RUN_HISTORY_H

#include "cluster/cluster.h"

typedef enum qn__run_history_state {
    QN__RUN_HISTORY_NONE,
    QN__RUN_HISTORY_KEPT,  /* on rank 0: totals are added */
    QN__RUN_HISTORY_WHOLE, /* on rank 0: what a rank needs to join */
    QN__RUN_HISTORY_TAKEN  /* on a rank that joins: totals come from it */
} qn__run_history_state;

typedef struct qn__run_history {
    qn__run_history_state state;
    uint8_t *bytes; /* of each total: the number of its words, and these */
    uint64_t size, capacity, at;
    qn__reduction now; /* the reduction that was begun */
    int64_t *part;     /* of a rank that joins */
    uint64_t space;    /* words of it */
} qn__run_history;

/* Adds a total; without memory, or where there are too many, the history ends. */
void qn__run_history_add(qn__run_history *h, const int64_t *total);
/* On a rank that joins: space for its part. QN_MISMATCH: the others made another reduction. */
qn_status qn__run_history_begin(qn__run_history *h, const qn__reduction *reduction, qn_error *err);
const int64_t *qn__run_history_total(qn__run_history *h);
/* QN_MISMATCH: the others made further reductions. */
qn_status qn__run_history_check_end(const qn__run_history *h, qn_error *err);
void qn__run_history_release(qn__run_history *h);

/* Bytes of a history; more are not kept. */
#define QN__RUN_HISTORY_MOST (UINT64_C(1) << 28)

/* For the door (cluster_history.c): bytes of a table, or of the history (QN__RUN_HISTORY_TABLE);
 * `count` 0: its size, 8 bytes. 0: there are none. `user` is the cluster. */
#define QN__RUN_HISTORY_TABLE UINT64_MAX
int qn__run_history_supply(void *user, uint64_t table, uint64_t first, uint64_t count, void *to);

#endif
