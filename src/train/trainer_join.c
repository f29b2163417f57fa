/* Ranks that join a run. Between two steps they get the state that a checkpoint would have. */
#include "base/memory.h"
#include "base/system/clock.h"
#include "train/trainer_state.h"

void qn__train_open_door(qn_train *t) {
    if (t->cluster)
        qn__cluster_open_door(t->cluster);
}

/* Collective. `known`: this rank knows the state; the writer sends it. */
static qn_status hand_over(qn_train *t, int known, qn_error *err) {
    const size_t size = qn__train_position_bytes(t);
    unsigned char *bytes = qn__alloc(size, 1, err);
    qn_status status = bytes ? QN_OK : QN_MEMORY;
    if (status == QN_OK && known)
        status = qn__train_job_pull(&t->job, err);
    if (status == QN_OK) {
        qn__train_position_pack(t, known, bytes);
        status = qn__cluster_from_first(t->cluster, bytes, size, err);
    }
    if (status == QN_OK && !qn__train_position_known(bytes))
        status = qn__fail(err, QN_CLUSTER, "the ranks that let this one in have failed");
    if (status == QN_OK && !known) {
        qn__train_position_unpack(t, bytes);
        t->done.resumed_from = t->report.ranks.joined_after = t->job.step;
        qn__train_best_resumed(t);
        status = qn__train_job_push(&t->job, err);
    }
    if (status == QN_OK && t->job.full.lbfgs)
        qn__lbfgs_restored(t->job.full.lbfgs); /* all ranks evaluate the point again */
    qn__free(bytes);
    return status;
}

qn_status qn__train_let_in(qn_train *t, qn_error *err) {
    uint32_t joined;
    qn_status status = t->failed = qn__train_job_flush(&t->job, err);
    const double begun = qn__now();
    if (status == QN_OK)
        status = qn__cluster_let_in(t->cluster, &joined, err);
    if (status == QN_OK && joined < qn_cluster_ranks(t->cluster))
        status = hand_over(t, 1, err);
    qn__train_span(t, "let in", begun);
    return status;
}

qn_status qn__train_come_in(qn_train *t, qn_error *err) {
    qn_status status = qn__cluster_enter(t->cluster, err);
    if (status == QN_OK)
        status = hand_over(t, 0, err);
    t->owner = qn__owner_of(t->cluster);
    return status;
}
