#include "job/shown_targets.h"

#include "base/memory.h"
#include "base/system/threads.h"
#include "job/token_check.h"
#include "num/philox.h"
#include <stdatomic.h>

/* Targets that one thread counts. */
enum { FEW = 1 << 20 };

typedef struct counting {
    const qn__train_job *job;
    qn__batch batch; /* the items of the epoch so far */
    char *space;     /* of each thread: targets, then what qn__shown needs */
    size_t each;
    atomic_ullong next, count;
} counting;

static void count_items(void *context, int thread) {
    counting *c = context;
    const qn__program *p = &c->job->program;
    char *space = c->space + (size_t)thread * c->each;
    uint8_t *targets = (uint8_t *)space + (qn__shown_space(p) + 7) / 8 * 8;
    uint64_t count = 0, place;
    while ((place = atomic_fetch_add(&c->next, 1)) < c->job->running.items) {
        const uint64_t item = qn__permutation_at(c->batch.order, place);
        qn__batch own = c->batch;
        own.first = place;
        qn__batch_show(&own, p, 0, item, targets, space);
        for (uint32_t k = 0; k < p->answers; ++k)
            count += targets[k] != QN__IGNORED;
    }
    atomic_fetch_add(&c->count, count);
}

/* They differ in each epoch, and nobody kept them. */
static qn_status count_moved(const qn__train_job *job, const qn__permutation *order, uint32_t epoch,
                             uint64_t *count, qn_error *err) {
    const qn__program *p = &job->program;
    const int few = job->running.items < FEW / p->answers, threads = few ? 1 : job->threads;
    counting c = {.job = job,
                  .batch = {.feed = &job->feed, .order = order, .epoch = epoch},
                  .each = (qn__shown_space(p) + 7 + p->answers + 63) / 64 * 64};
    qn__pool *pool;
    if (!(c.space = qn__alloc((uint64_t)threads * c.each, 1, err)))
        return QN_MEMORY;
    const qn_status status = qn__pool_create(threads, 0, &pool, err);
    if (status == QN_OK) {
        qn__pool_run(pool, count_items, &c);
        qn__pool_destroy(pool);
        *count = c.count;
    }
    qn__free(c.space);
    return status;
}

/* The item at a position of an epoch, as the steps take them. */
static uint64_t item_at(const qn__train_job *job, const qn__permutation *order, uint32_t epoch,
                        uint64_t position) {
    const qn__batch at = {.order = order, .first = position, .epoch = epoch};
    return qn__permutation_at(order, job->groups ? *qn__length_groups_places(job->groups, &at, 1)
                                                 : position);
}

qn_status qn__shown_targets(const qn__train_job *job, uint64_t *count, qn_error *err) {
    const uint64_t items = job->running.items, step = job->step > 0 ? job->step - 1 : 0;
    const uint32_t epoch = (uint32_t)(step / job->steps_per_epoch);
    qn__permutation order;
    *count = 0;
    if (job->program.next) {
        const uint32_t tokens = qn__program_classes(&job->program);
        qn__permutation_begin(&order, job->feed.items, job->recipe.seed, QN__PURPOSE_ORDER, epoch);
        for (uint64_t i = 0; i < items; ++i)
            *count += qn__next_count(job->items.train, item_at(job, &order, epoch, i), tokens);
        return QN_OK;
    }
    if (items == job->items.train->items && !job->program.moves_answers) {
        *count = qn__several_count_all(job->items.train);
        return QN_OK;
    }
    qn__permutation_begin(&order, job->feed.items, job->recipe.seed, QN__PURPOSE_ORDER, epoch);
    if (job->program.moves_answers)
        return count_moved(job, &order, epoch, count, err);
    for (uint64_t i = 0; i < items; ++i)
        *count += qn__several_count(job->items.train, item_at(job, &order, epoch, i));
    return QN_OK;
}
