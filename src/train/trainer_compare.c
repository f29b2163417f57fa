/* Checks that all ranks have the same state. Each computes every update itself from the same sums.
 * A difference means a fault of Quern or of a machine, and then nothing is written. */
#include "base/digest/siphash.h"
#include "base/memory.h"
#include "train/trainer_state.h"
#include <inttypes.h>

typedef struct held {
    uint64_t present, step, digest;
} held;

/* Not cryptographic: no attacker is assumed. */
static uint64_t digest_of(const qn_train *t) {
    static const qn__siphash_key key = {{1, 2}};
    const qn__state *state = &t->job.state;
    const uint64_t bytes = t->job.program.parameters * sizeof(float);
    const qn__lbfgs *lbfgs = t->job.full.lbfgs;
    uint64_t all[2 + QN__SLOTS] = {qn__siphash_lanes(&key, state->parameters, bytes)};
    for (uint32_t i = 0; i < QN__SLOTS && state->slot[i]; ++i)
        all[1 + i] = qn__siphash_lanes(&key, state->slot[i], bytes);
    if (lbfgs && lbfgs->pairs > 0)
        all[1 + QN__SLOTS] = qn__siphash_lanes(&key, lbfgs->history, 2 * lbfgs->pairs * bytes);
    return qn__siphash(&key, all, sizeof all);
}

/* Names one rank of each of the two groups. */
static qn_status differ(const qn_train *t, const held *all, uint32_t one, uint32_t other,
                        qn_error *err) {
    qn__fail(err, QN_MISMATCH,
             "the ranks do not hold the same parameters after step %" PRIu64 ": %s has the digest "
             "%016" PRIx64 ", %s has %016" PRIx64,
             t->job.step, qn_cluster_name(t->cluster, one), all[one].digest,
             qn_cluster_name(t->cluster, other), all[other].digest);
    return qn__remedy(
        err, QN_MISMATCH,
        "nothing was written; continue from the last checkpoint with `train.resume`, test the "
        "memory of both machines, and please report it");
}

qn_status qn__train_compare(qn_train *t, qn_error *err) {
    const uint32_t ranks = qn_cluster_ranks(t->cluster);
    uint32_t first = 0;
    if (!t->cluster || ranks < 2)
        return QN_OK;
    qn_status status = qn__train_job_pull(&t->job, err);
    if (status != QN_OK)
        return qn__train_fail_all(t, status, err);
    held *all = qn__alloc(ranks, sizeof *all, err);
    if (!all)
        return qn__train_fail_all(t, QN_MEMORY, err);
    const held own = {.present = 1, .step = t->job.step, .digest = digest_of(t)};
    status = qn__cluster_gather(t->cluster, &own, sizeof own, all, err);
    while (status == QN_OK && first < ranks && !all[first].present)
        ++first;
    for (uint32_t r = first; r < ranks && status == QN_OK; ++r)
        if (all[r].present &&
            (all[r].digest != all[first].digest || all[r].step != all[first].step))
            status = differ(t, all, first, r, err);
    qn__free(all);
    if (status == QN_MISMATCH)
        t->failed = status;
    return status == QN_MISMATCH ? qn__train_fail_all(t, status, err) : status;
}
