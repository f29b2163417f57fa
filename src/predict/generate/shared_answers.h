/* Answers shared over ranks. Each rank computes some answers whole, as it would alone, and all get
 * the tokens of all: a round is a host job of the team whose grains are answers. So shares follow
 * measured speeds, and the answers of a rank that dies are computed by others. */
#ifndef QN_PREDICT_GENERATE_SHARED_ANSWERS_H
#define QN_PREDICT_GENERATE_SHARED_ANSWERS_H

#include "predict/generate/generator.h"
#include "team/portion.h"
#include "team/queue.h"

typedef struct qn__shared_answers {
    qn_cluster *cluster;
    qn__team *team;
    qn__portion portion;
    qn__member member[QN__MAX_WORKERS]; /* this rank's devices, for its reader */
    uint32_t members;
    uint32_t first, end; /* the answers of the round, or of the next one: first == end */
    uint64_t words;      /* of the round */
    qn_status (*complete)(qn_generator *g, uint32_t from, uint32_t to, qn_error *err);
} qn__shared_answers;

/* Collective: ranks compare the model, the prompts and the options. `status` is the result of this
 * rank's own checks, with `err` (not NULL) filled if it is not QN_OK; all fail where one does. Sets
 * g->shared, and binds the thread to this rank's part of the machine. `complete` completes the
 * answers from..to-1 on this rank. */
qn_status qn__shared_open(qn_generator *g, const qn_compute *compute,
                          qn_status (*complete)(qn_generator *g, uint32_t from, uint32_t to,
                                                qn_error *err),
                          qn_status status, qn_error *err);
void qn__shared_close(qn__shared_answers *shared); /* accepts NULL */

/* Collective: completes the answers of a round on all ranks. *more is 0 after the last one. */
qn_status qn__shared_round(qn_generator *g, int *more, qn_error *err);

/* The end of a collective call: the other ranks fail with this one. Returns `status`. */
qn_status qn__shared_end(const qn__shared_answers *shared, qn_status status, qn_error *err);

#endif
