/* Host jobs: functions over grains, by all live members and ranks. */
#include "team/team_share.h"

#include <string.h>

/* Speeds that were measured for another function say nothing about this one. */
static void forget_speeds(qn__team *t, const qn__host_job *job) {
    if (t->sharing.measured == job->grains)
        return;
    for (uint32_t i = 0; i < t->count; ++i)
        qn__speed_reset(&t->sharing.host.of[i].speed);
    memset(&t->reduction.cost[QN__REDUCTION_OTHER], 0, sizeof t->reduction.cost[0]);
    t->sharing.measured = job->grains;
}

static qn__share share_host(qn__team *t, const qn__host_job *job, uint32_t grains) {
    forget_speeds(t, job);
    t->sharing.host.keeps = job->apart;
    return (qn__share){.job = {.kind = QN__JOB_HOST, .host = job},
                       .reduction = QN__REDUCTION_OTHER,
                       .queue = &t->sharing.host,
                       .span = "grains",
                       .unit = "grains",
                       .grains = grains,
                       .pieces = grains,
                       .each = 1,
                       .most = grains,
                       .words = job->words,
                       .items = grains,
                       .apart = job->apart};
}

void qn__team_use(qn__team *t, uint64_t set) { t->sharing.used = set; }

static uint64_t used(const qn__team *t) {
    const uint64_t alive = qn__team_alive(t);
    return alive & t->sharing.used ? alive & t->sharing.used : alive;
}

qn_status qn__team_run(qn__team *t, const qn__host_job *job, uint32_t grains, const int64_t **words,
                       qn_error *err) {
    qn__tally tally;
    qn_status status;
    *words = NULL;
    do {
        if (!qn__team_alive(t))
            return qn__team_no_worker(err);
        status = qn__team_wait(t, 0, err);
        const qn__share share = share_host(t, job, grains);
        if (status == QN_OK)
            status = qn__team_sum(t, &share, used(t), !t->cluster, words, &tally, err);
    } while (status == QN_DEVICE && qn__team_alive(t) && !(job->kernel && job->kernel->resident));
    if (t->cluster && (status == QN_OK || status == QN_NUMERIC))
        qn__team_reduction_end(t);
    if (status == QN_DEVICE && !qn__team_alive(t)) /* a host job has no checkpoint */
        qn__remedy(err, QN_DEVICE, "start again, with other devices in `compute.devices`");
    return status;
}
