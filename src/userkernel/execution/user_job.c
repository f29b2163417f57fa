/* How a job is cut into grains. It depends on the job and on the number of ranks alone, so that
 * all ranks cut it in the same way. */
#include "userkernel/execution/user_job.h"

#include <string.h>

/* Grains of a job, as many as there are items for; more if there are many ranks. */
enum { GRAINS = 1024, OF_A_RANK = 256, MOST_ITEMS = 1 << 16 };
#define MOST_GRAINS ((int64_t)1 << 31)

int64_t qn__user_job_items(const qn__user_job *job) {
    return job->extent[0] * job->extent[1] * job->extent[2];
}

qn__user_call qn__user_call_of(const qn__user_job *job, void *const *array, int64_t iteration) {
    qn__user_call call = {.array = array,
                          .scalar = job->scalar,
                          .length = job->length,
                          .seed = job->seed,
                          .iteration = iteration};
    memcpy(call.extent, job->extent, sizeof call.extent);
    return call;
}

int64_t qn__user_job_rows(const qn__user_job *job) {
    return job->extent[QN__USER_DIMENSIONS - job->source->dimensions];
}

int64_t qn__user_job_bytes(const qn__user_job *job) {
    const qn__user_source *s = job->source;
    int64_t bytes = 0;
    for (uint32_t i = 0; i < s->parts; i++)
        if (s->part[i].use == QN__USER_OUTPUT)
            bytes += qn__user_part_each(&s->part[i]);
    return bytes;
}

static int64_t eights(int64_t n) { return (n + 7) / 8 * 8; }

/* Items are computed QV_W at a time (user_lanes.inc), so smaller grains would leave lanes empty.
 * Where there are few items, more grains are better. */
static int64_t together(const qn__user_job *job, int64_t items) {
    return !job->source->tree.lanes || items < 2048 ? 1 : items < 16384 ? 32 : 64;
}

/* All ranks choose the same. The outputs of a grain fit a round. */
int64_t qn__user_job_grain(const qn__user_job *job) {
    const int64_t items = qn__user_job_items(job), ranks = qn_cluster_ranks(job->cluster);
    const int64_t grains = ranks * OF_A_RANK > GRAINS ? ranks * OF_A_RANK : GRAINS;
    int64_t grain = job->items_of_grain;
    if (grain <= 0)
        grain = items / grains < MOST_ITEMS ? items / grains : MOST_ITEMS;
    const int64_t unit = together(job, items);
    if (job->items_of_grain <= 0)
        grain = (grain + unit - 1) / unit * unit;
    const int64_t most = QN__USER_ROUND_BYTES / (qn__user_job_bytes(job) + 1) / 8 * 8;
    if (ranks > 1 && grain > most)
        grain = most;
    const int64_t least = items / MOST_GRAINS + 1;
    return eights(grain > least ? grain : least);
}
