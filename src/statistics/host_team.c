#include "statistics/host_team.h"

#include "base/sized.h"
#include "cluster/cluster.h"
#include "team/members.h"
#include "team/queue.h"
#include <quern/version.h>
#include <stdio.h>
#include <string.h>

qn_status qn__host_team_compute(const char *function, const qn_compute *compute, int threads,
                                qn_compute *out, qn_error *err) {
    const qn__sized what = {function, "options->compute", "qn_compute", sizeof *out};
    *out = (qn_compute){.size = sizeof *out};
    const qn_status status = compute ? qn__sized_take(&what, compute, out, err) : QN_OK;
    out->threads = threads ? threads : out->threads;
    return status;
}

static int is_automatic(const qn_compute *compute) {
    return !compute->devices || strcmp(compute->devices, "auto") == 0;
}

qn_status qn__host_team_split(const qn_compute *compute, int large, qn_compute *host, int *kernels,
                              qn_error *err) {
    qn__member member[QN__MAX_WORKERS];
    uint32_t count = 0;
    int others = 0, threads = 0;
    *host = *compute;
    *kernels = 0;
    qn_status status = qn_compute_check(compute, err);
    if (status != QN_OK || (is_automatic(compute) && !large))
        return status;
    status = qn__members_of(compute, member, QN__MAX_WORKERS, &count, err);
    for (uint32_t i = 0; i < count && status == QN_OK; ++i) {
        const uint32_t jobs = member[i].device->jobs;
        const int is_host = (jobs & qn__job_bit(QN__JOB_HOST)) != 0;
        threads = is_host ? member[i].threads : threads;
        *kernels |= !is_host && (jobs & QN__JOB_KERNEL) != 0;
        others |= is_host ? !member[i].device->host : !(jobs & QN__JOB_KERNEL);
    }
    *kernels = *kernels && !others;
    if (status != QN_OK || !*kernels)
        return status;
    host->devices = "cpu";
    host->shares = NULL;
    host->threads = threads ? threads : host->threads;
    return QN_OK;
}

static qn_status agree(qn_cluster *cluster, const qn_data *data, const char *what, qn_status status,
                       qn_error *err) {
    char set[160];
    if (!cluster)
        return status;
    snprintf(set, sizeof set, "%llu items of %u features, digest %s",
             (unsigned long long)data->items, data->features, qn_data_digest(data));
    const size_t size = sizeof(qn_agreement);
    const qn_agreement items[] = {
        {size, "the version of Quern", qn_version(), "install the same version everywhere"},
        {size, "the data", set,
         "give every machine the same file, or let rank 0 send it: `share.from_first`"},
        {size, "what is computed", what, "start all ranks with the same options"}};
    const qn_error own = status == QN_OK ? (qn_error){0} : *err;
    return qn_cluster_agree(cluster, &own, items, (uint32_t)(sizeof items / sizeof *items), err);
}

qn_status qn__host_team_open(const qn_compute *compute, const qn__kernel_job *kernel,
                             const qn_data *data, const char *what, qn_status status,
                             qn__team **out, qn_error *err) {
    *out = NULL;
    if (status == QN_OK)
        status = qn_compute_check(compute, err);
    status = agree(compute->cluster, data, what, status, err);
    if (status != QN_OK)
        return status;
    status = qn__team_create_for(kernel, compute, out, err);
    return status == QN_OK ? QN_OK : qn__host_team_close(NULL, compute, status, err);
}

qn_status qn__host_team_close(qn__team *team, const qn_compute *compute, qn_status status,
                              qn_error *err) {
    if (status == QN_DEVICE && qn__cluster_withdraw(compute->cluster))
        qn__remedy(err, QN_DEVICE, "the other ranks continue without this one");
    else if (status != QN_OK && status != QN_CLUSTER && status != QN_DEVICE &&
             status != QN_NUMERIC && status != QN_INTERRUPTED && compute->cluster)
        qn__cluster_fail(compute->cluster, err);
    qn__team_destroy(team);
    return status;
}
