#include "job/memory_need.h"

#include "base/available.h"
#include "device/device.h"
#include "team/members.h"
#include "team/queue.h"
#include <quern/cluster.h>
#include <stdio.h>

/* What a process of the command takes before it has a job: measured, 14 MiB. */
#define PROGRAM ((uint64_t)16 << 20)

static uint64_t sum(uint64_t a, uint64_t b) { return a > UINT64_MAX - b ? UINT64_MAX : a + b; }

/* The host's state, a model to write, the best epoch's parameters; and where several devices or
 * ranks share a step, each one's sums and the copy for a device that fails. */
static uint64_t of_job(const qn__program *p, int best, uint32_t members, int ranks) {
    const uint64_t state = 1 + qn__optimizer_slots(p->optimizer), words = sizeof(int64_t);
    uint64_t bytes = (state + 1 + (uint64_t)best) * sizeof(float);
    if (members > 1)
        bytes += 2 * members * words + state * sizeof(float);
    if (ranks)
        bytes += 2 * words;
    return bytes * p->parameters; /* below 2^64: qn__network_program */
}

static void fill(const qn__program *p, int best, const qn_compute *compute,
                 const qn__member *members, uint32_t count, qn__memory_need *out) {
    *out = (qn__memory_need){.program = PROGRAM};
    for (uint32_t i = 0; i < count; ++i) {
        if (!members[i].device->memory)
            continue;
        qn_compute own = *compute;
        own.threads = members[i].threads ? members[i].threads : compute->threads;
        const uint64_t fixed = members[i].device->memory(&own, p, 0);
        const uint64_t all = members[i].device->memory(&own, p, p->batch);
        out->parameters = sum(out->parameters, fixed);
        out->batch = sum(out->batch, all - fixed);
    }
    out->parameters =
        sum(out->parameters, of_job(p, best, count, qn_cluster_ranks(compute->cluster) > 1));
    out->all = sum(sum(out->batch, out->parameters), out->program);
}

qn_status qn__memory_need_of(const qn__program *program, int best, const qn_compute *compute,
                             const qn__member *members, uint32_t count, qn__memory_need *out,
                             qn_error *err) {
    qn__member found[QN__MAX_WORKERS];
    if (!members) {
        const qn_status status = qn__members_of(compute, found, QN__MAX_WORKERS, &count, err);
        if (status != QN_OK)
            return status;
    }
    fill(program, best, compute, members ? members : found, count, out);
    return QN_OK;
}

/* "1.5 GiB" */
static const char *show(uint64_t bytes, char text[24]) {
    const int large = bytes >= (uint64_t)1 << 30;
    snprintf(text, 24, "%.1f %s", (double)bytes * (large ? 0x1p-30 : 0x1p-20),
             large ? "GiB" : "MiB");
    return text;
}

/* The largest half, quarter and so on of the batch that fits; 0: none does. */
static uint32_t fitting(const qn__program *program, int best, const qn_compute *compute,
                        const qn__member *members, uint32_t count, uint64_t most) {
    qn__program smaller = *program;
    qn__memory_need need;
    for (smaller.batch /= 2; smaller.batch > 0; smaller.batch /= 2) {
        smaller.grain = smaller.grain < smaller.batch ? smaller.grain : smaller.batch;
        if (qn__memory_need_of(&smaller, best, compute, members, count, &need, NULL) == QN_OK &&
            need.all - need.program <= most)
            return smaller.batch;
    }
    return 0;
}

qn_status qn__memory_need_check(const qn__program *program, int best, const qn_compute *compute,
                                const qn__member *members, uint32_t count, qn__memory_need *out,
                                qn_error *err) {
    uint32_t index = 0, ranks = 1;
    char all[24], batch[24], parameters[24], left[24];
    const qn_status status = qn__memory_need_of(program, best, compute, members, count, out, err);
    const qn__memory_need need = *out;
    if (status != QN_OK)
        return status;
    qn_cluster_local(compute->cluster, &index, &ranks);
    const uint64_t available = qn__available_memory() / (ranks ? ranks : 1);
    if (need.all - need.program <= available)
        return QN_OK;
    qn__fail(err, QN_MEMORY,
             "the training takes about %s of memory beside its data (%s for a batch of %u items, "
             "%s for the parameters), and %s are available%s",
             show(need.all, all), show(need.batch, batch), program->batch,
             show(need.parameters, parameters), show(available, left),
             ranks > 1 ? " for each rank on this machine" : "");
    const uint32_t fits = fitting(program, best, compute, members, count, available);
    qn__at(err, fits ? "`train.batch`" : "`train.model`");
    if (fits)
        return qn__remedy(err, QN_MEMORY,
                          "with `train.batch` %u it fits; or use a machine with more memory", fits);
    return qn__remedy(err, QN_MEMORY,
                      "make the layers narrower, or use a machine with more memory");
}
