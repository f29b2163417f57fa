/* Ranks that join a run. Between two steps they get the state that a checkpoint would have. */
#include "base/memory.h"
#include "base/system/clock.h"
#include "train/trainer_state.h"

void qn__train_open_door(qn_train *t) {
    if (t->cluster)
        qn__cluster_open_door(t->cluster);
}

/* What a rank knows when it has the state: how it got it is reported. */
static void note_joined(qn_train *t) {
    t->done.resumed_from = t->report.ranks.joined_after = t->job.step;
    qn__train_best_resumed(t);
}

/* Collective. `known`: this rank knows the state; the writer sends it, and all wait. */
static qn_status hand_over_whole(qn_train *t, int known, qn_error *err) {
    const size_t size = qn__train_position_bytes(t);
    unsigned char *bytes = qn__alloc(size, 1, err);
    qn_status status = bytes ? QN_OK : QN_MEMORY;
    if (status == QN_OK && known)
        status = qn__train_job_pull(&t->job, err);
    if (status == QN_OK) {
        qn__train_position_pack(t, known, bytes);
        status = qn__cluster_from_first(t->cluster, bytes, size, err);
    }
    if (status == QN_OK && !known) {
        qn__train_position_unpack(t, bytes);
        note_joined(t);
        status = qn__train_job_push(&t->job, err);
    }
    if (status == QN_OK && t->job.full.lbfgs)
        qn__lbfgs_restored(t->job.full.lbfgs); /* all ranks evaluate the point again */
    qn__free(bytes);
    return status;
}

/* Collective. The rank that writes says where the run is, and gives the rest on request, while the
 * steps go on. Where it cannot, it sends all. */
static qn_status hand_over(qn_train *t, int known, qn_error *err) {
    const size_t size = qn__train_position_head();
    unsigned char *head = qn__alloc(size, 1, err);
    if (!head)
        return QN_MEMORY;
    const uint64_t own = 1 + qn_cluster_rank(t->cluster);
    const int gives = known && !t->job.full.lbfgs && qn__cluster_is_first(t->cluster) &&
                      qn__train_give(t, NULL) == QN_OK;
    qn__train_position_pack_head(t, known, gives ? own : 0, head);
    qn_status status = qn__cluster_from_first(t->cluster, head, size, err);
    const uint64_t from = status == QN_OK ? qn__train_position_gives(head) : 0;
    if (gives && from != own)
        qn__train_giving_end(t, 1);
    if (status == QN_OK && !qn__train_position_known(head))
        status = qn__fail(err, QN_CLUSTER, "the ranks that let this one in have failed");
    else if (status == QN_OK && from == 0)
        status = hand_over_whole(t, known, err);
    else if (status == QN_OK && !known) {
        qn__train_position_unpack_head(t, head);
        note_joined(t);
        status = qn__train_get(t, (uint32_t)(from - 1), err);
    }
    qn__free(head);
    return status;
}

qn_status qn__train_let_in(qn_train *t, qn_error *err) {
    uint32_t joined;
    qn_status status = t->failed = qn__train_job_flush(&t->job, err);
    const double begun = qn__now();
    if (status == QN_OK)
        status = qn__cluster_let_in(t->cluster, &joined, err);
    qn__train_giving_end(t, 1); /* all have flushed their steps, and so have got the state */
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
