/* The costs of this machine's devices: measured one call at a time, on all ranks at once, because
 * cores that share memory and clock slow each other down. Of ranks that share memory, whole steps
 * are measured. */
#include <quern/plan.h>

#include "base/argument.h"
#include "base/memory.h"
#include "base/sized.h"
#include "base/system/clock.h"
#include "base/system/float_state.h"
#include "base/system/threads.h"
#include "cluster/reduction/packed_words.h"
#include "job/train_job.h"
#include "model/formats/recipe_options.h"
#include "model/recipe/defaults.h"
#include "model/recipe/model_source.h"
#include "num/philox.h"
#include "plan/plan_recipe.h"
#include "team/members.h"
#include "team/speed.h"
#include "train/random_items.h"
#include <math.h>
#include <pthread.h>
#include <string.h>

enum {
    MOST_RANKS = 64,
    MOST_SAMPLES = 512,
    FEWEST = 3,    /* calls of a size */
    TOGETHER = 16, /* whole steps that are timed as one, fewer if they are long: some devices return
                      before a step is complete */
    WARM_CALLS = 2, /* the first calls include one-time costs */
    LONGEST = 3600
};

typedef struct one_rank {
    struct measuring *all;
    uint32_t rank;
    qn__member member[QN_PLAN_CALLS * 4];
    uint32_t members;
    int threads;
    cpu_set_t cores;
    qn_plan_cost cost[QN_PLAN_CALLS * 4];
    int64_t *sums, *part;
    unsigned char *message;
    uint64_t message_bytes;
    qn_error error;
    pthread_t thread;
} one_rank;

typedef struct measuring {
    qn__train_job job;
    qn__permutation order; /* items come from all over the memory, as in a training */
    const qn_compute *compute;
    double seconds; /* of each device */
    int crowded;    /* 1: more threads than cores */
    int goes_on;    /* 1: one more sample; rank 0 decides for all */
    uint32_t ranks, most_members;
    pthread_barrier_t together;
    one_rank *rank;
} measuring;

/* What is computed in each step: all layers, or those after the outputs that are kept. */
static const qn__program *program_of(const measuring *m) {
    return m->job.features ? &m->job.features->second : &m->job.program;
}

/* ------------------------------------------------------------------------------ a single device */

typedef struct bench {
    const qn__device_table *device;
    qn__worker *worker;
    const measuring *all;
    one_rank *rank;
    uint32_t index;   /* of the device among those of its table */
    uint64_t batches; /* done so far; selects the next batch */
    int together;     /* steps */
    qn__adam_powers powers;
} bench;

static qn__batch next_batch(bench *b) {
    const qn__program *p = program_of(b->all);
    const qn__feed *feed = &b->all->job.feed;
    const uint64_t in_data = feed->items / p->batch;
    return (qn__batch){.feed = feed,
                       .order = &b->all->order,
                       .first = b->batches++ % in_data * p->batch,
                       .items = p->batch};
}

/* ------------------------------------------------------------------- memory that ranks share
 *
 * In a step the words of a part are read by other cores, and those of the totals are written by
 * them. So a core must fetch them from another core's cache, or take them away from it, which costs
 * about as much as adding them. So whole steps are measured. */

typedef struct segment {
    uint64_t first, end;
    uint32_t parts; /* that are added up in it */
} segment;

static int shares_memory(const bench *b) { return b->all->ranks > 1; }

static segment own_segment(const bench *b) {
    const uint64_t n = program_of(b->all)->parameters, ranks = b->all->ranks, r = b->rank->rank;
    if (!shares_memory(b))
        return (segment){0, n, 1};
    return (segment){n * r / ranks, n * (r + 1) / ranks, b->all->ranks};
}

static int64_t *totals_of(const bench *b) {
    return shares_memory(b) ? b->all->rank[0].sums : b->rank->sums;
}

/* A share as a rank computes it. A device that is the only one writes the sums in place; otherwise
 * it clears sums, computes grains, and the sums are fetched. */
static double one_share(bench *b, uint32_t grains) {
    const uint64_t n = program_of(b->all)->parameters;
    const qn__batch batch = next_batch(b);
    qn__tally tally = {0};
    const double begun = qn__now();
    const int in_place = b->rank->members == 1 && b->device->in_place;
    const qn__job job = {.kind = QN__JOB_TRAIN, .batch = &batch};
    const qn__outlet to = {.words = in_place ? b->rank->part : NULL, .tally = &tally};
    if (!in_place)
        memset(b->rank->part, 0, n * sizeof *b->rank->part);
    b->device->run(b->worker, &job, 0, grains, &to, &b->rank->error);
    if (in_place)
        return qn__now() - begun;
    if (b->rank->error.status == QN_OK)
        b->device->collect(b->worker, b->rank->part, &tally, &b->rank->error);
    return qn__now() - begun;
}

static qn__update small_update(bench *b) {
    const qn__program *p = program_of(b->all);
    qn__update update;
    qn__update_begin(p, 1e-6f, p->batch, &b->powers, &update);
    update.step = 1;
    return update;
}

static double one_update(bench *b, uint32_t unused) {
    const qn__update update = small_update(b);
    (void)unused;
    const double begun = qn__now();
    b->device->update(b->worker, &update, totals_of(b), &b->rank->error);
    return qn__now() - begun;
}

/* Several whole steps, each with the next batch announced. */
static double one_step(bench *b, uint32_t unused) {
    qn__tally tally = {0};
    qn__batch next = next_batch(b);
    (void)unused;
    const double begun = qn__now();
    for (int i = 0; i < b->together && b->rank->error.status == QN_OK; ++i) {
        const qn__update update = small_update(b);
        const qn__batch batch = next;
        next = next_batch(b);
        b->device->train_step(b->worker, &batch, &next, &update, &tally, &b->rank->error);
    }
    if (b->device->flush && b->rank->error.status == QN_OK)
        b->device->flush(b->worker, &tally, &b->rank->error);
    return (qn__now() - begun) / b->together;
}

/* Adds the parts of all ranks, as ranks do: each its segment. */
static double one_adding(bench *b, uint32_t unused) {
    enum { BLOCK = 4096 };
    const segment own = own_segment(b);
    const one_rank *all = b->all->rank, *self = b->rank;
    (void)unused;
    const double begun = qn__now();
    for (uint64_t at = own.first; at < own.end; at += BLOCK) {
        const uint64_t n = own.end - at < BLOCK ? own.end - at : BLOCK;
        int64_t *to = totals_of(b) + at;
        if (own.parts > 1)
            memcpy(to, self->part + at, n * sizeof *to);
        for (uint32_t r = own.parts > 1; r < own.parts; ++r) {
            const int64_t *part = all[(self->rank + r) % b->all->ranks].part + at;
            for (uint64_t i = 0; i < n; ++i)
                to[i] = (int64_t)((uint64_t)to[i] + (uint64_t)part[i]);
        }
    }
    return qn__now() - begun;
}

/* As many words are sent as parts as there are of totals, which are rounded unless the step clips:
 * blocks of each in turns. */
static double one_packing(bench *b, uint32_t unused) {
    enum { BLOCK = 4096 };
    const qn__program *p = program_of(b->all);
    const uint64_t n = p->parameters;
    uint64_t bytes = 0;
    (void)unused;
    const double begun = qn__now();
    for (uint64_t at = 0; at < n; at += BLOCK) {
        const uint64_t words = n - at < BLOCK ? n - at : BLOCK;
        const int rounds = at / BLOCK % 2 && p->clip == 0.0f;
        bytes += (rounds ? qn__words_pack_rounded : qn__words_pack)(b->rank->part + at, words,
                                                                    b->rank->message + bytes);
    }
    b->rank->message_bytes = bytes;
    return qn__now() - begun;
}

static double one_unpacking(bench *b, uint32_t unused) {
    const uint64_t n = program_of(b->all)->parameters;
    qn__packed_words packed = {b->rank->message, b->rank->message_bytes};
    (void)unused;
    const double begun = qn__now();
    qn__words_unpack(&packed, n, 1, b->rank->sums);
    return qn__now() - begun;
}

static int goes_on(const bench *b) { return b->worker && b->rank->error.status == QN_OK; }

/* The typical time of a call; all ranks start together. Ranks that share a core take turns for
 * milliseconds, so most short calls do not notice the others: then it is the mean. */
static double time_of(bench *b, double (*what)(bench *, uint32_t), uint32_t size, double seconds) {
    double sample[MOST_SAMPLES];
    const int crowded = b->rank->all->crowded;
    uint32_t count = 0;
    pthread_barrier_wait(&b->rank->all->together);
    const double warm = qn__now() + seconds;
    for (int i = 0; i < WARM_CALLS && (i == 0 || qn__now() < warm) && goes_on(b); ++i)
        what(b, size);
    const double begun = qn__now(), until = begun + seconds;
    while (goes_on(b) && (crowded || count < MOST_SAMPLES) && (count < FEWEST || qn__now() < until))
        sample[count++ % MOST_SAMPLES] = what(b, size);
    if (crowded && count > 0)
        return (qn__now() - begun) / count;
    return count > 0 ? qn__median(sample, count) : 0;
}

/* ------------------------------------------------------------------------------- steps in common
 */

enum { SHARE, ADDING, UPDATE, PARTS };

/* One more step? Rank 0 decides, so that all do the same number of them. */
static int all_go_on(bench *b, uint32_t count, double until) {
    measuring *all = b->rank->all;
    if (b->rank->rank == 0)
        all->goes_on = count < MOST_SAMPLES && (count < FEWEST || qn__now() < until);
    pthread_barrier_wait(&all->together);
    return all->goes_on;
}

/* The typical times of the parts of a step in which each rank computes so many grains. All ranks
 * begin each part together. Ranks that share cores take turns, so a part of theirs has its time
 * until the last rank has ended it, and the mean counts. */
static void time_steps(bench *b, uint32_t grains, double seconds, double took[PARTS]) {
    static double (*const part[PARTS])(bench *, uint32_t) = {one_share, one_adding, one_update};
    double sample[PARTS][MOST_SAMPLES], sum[PARTS] = {0};
    const int crowded = b->rank->all->crowded;
    uint32_t count = 0;
    double until = 0;
    for (int warm = WARM_CALLS; warm > 0 || all_go_on(b, count, until); warm -= warm > 0) {
        for (int i = 0; i < PARTS; ++i) {
            pthread_barrier_wait(&b->rank->all->together);
            const double begun = qn__now();
            double own = goes_on(b) ? part[i](b, grains) : 0;
            if (crowded) {
                pthread_barrier_wait(&b->rank->all->together);
                own = qn__now() - begun;
            }
            sample[i][count] = own;
            sum[i] += warm > 0 ? 0 : own;
        }
        if (warm == 1)
            until = qn__now() + seconds;
        count += warm == 0;
    }
    for (int i = 0; i < PARTS; ++i)
        took[i] = crowded ? sum[i] / count : qn__median(sample[i], count);
}

/* 1, 2, 3, 4, 6, 8, 12, 16, ... and all grains of a batch. */
static uint32_t sizes_of(uint32_t units, uint32_t *size) {
    uint32_t count = 0, next = 1;
    while (next < units && count < QN_PLAN_CALLS - 1) {
        size[count++] = next;
        next = next < 3 ? next + 1 : next & (next - 1) ? next / 3 * 4 : next / 2 * 3;
    }
    size[count++] = units;
    return count;
}

/* The counter of the device, or this rank's part of that of all processors; 0: it has none. */
static double joules_of(const bench *b) {
    double joules = 0;
    if (!b->device || !b->device->energy || !b->device->energy(b->index, &joules))
        return 0;
    return b->device->host ? joules / b->all->ranks : joules;
}

/* The sums of the last share as a message, and what it costs. */
static void measure_messages(bench *b, qn_plan_cost *c, double seconds) {
    const uint64_t n = program_of(b->all)->parameters;
    c->pack = time_of(b, one_packing, 0, seconds);
    c->word_bytes = (double)b->rank->message_bytes / (double)n;
    memset(b->rank->sums, 0, n * sizeof *b->rank->sums);
    c->unpack = time_of(b, one_unpacking, 0, seconds);
}

/* Every rank makes the same measurements in the same order. A rank that failed or has fewer devices
 * takes part in the barriers only. */
static void measure_device(bench *b, qn_plan_cost *c) {
    const qn__program *p = program_of(b->all);
    const uint32_t units = (p->batch + p->grain - 1) / p->grain;
    uint32_t size[QN_PLAN_CALLS];
    const uint32_t count = sizes_of(units, size);
    const double each = b->all->seconds / (count + 5.0);
    double took[PARTS] = {0};
    for (uint32_t i = 0; i < count; ++i) {
        const int last = i + 1 == count;
        const double begun = qn__now(), before = last ? joules_of(b) : 0;
        c->grains[i] = size[i];
        if (shares_memory(b))
            time_steps(b, size[i], each, took);
        else
            took[SHARE] = time_of(b, one_share, size[i], each);
        c->seconds[i] = took[SHARE];
        if (last && before > 0)
            c->watts = fmax(joules_of(b) - before, 0) / (qn__now() - begun);
    }
    c->calls = count;
    c->grain = p->grain;
    measure_messages(b, c, each);
    memset(b->rank->sums, 0, p->parameters * sizeof *b->rank->sums);
    if (!shares_memory(b)) {
        took[UPDATE] = time_of(b, one_update, 0, each);
        took[ADDING] = time_of(b, one_adding, 0, each);
    }
    c->update = took[UPDATE];
    const segment own = own_segment(b);
    const double added = 8.0 * (double)(own.end - own.first) * (own.parts > 1 ? own.parts + 1 : 3);
    c->adding = took[ADDING] > 0 ? added / took[ADDING] : 0;
    const double steps = each / fmax(c->seconds[count - 1], 1e-9);
    b->together = steps < 2 ? 2 : steps < TOGETHER ? (int)steps : TOGETHER;
    if (b->all->ranks == 1 && b->device && b->device->train_step)
        c->step = time_of(b, one_step, 0, each);
}

/* ---------------------------------------------------------------------------------------- ranks */

static void open_bench(bench *b, const qn__member *m) {
    qn_compute compute = *b->all->compute;
    compute.threads = m->threads ? m->threads : b->rank->threads;
    b->device = m->device;
    b->index = m->index;
    b->device->open(m->index, &compute, program_of(b->all), &b->worker, &b->rank->error);
    const qn__state state = qn__features_state(b->all->job.features, &b->all->job.state);
    if (b->worker)
        b->device->load(b->worker, &state, &b->rank->error);
}

static void *rank_body(void *argument) {
    one_rank *r = argument;
    measuring *all = r->all;
    qn__float_state_set();
    if (!all->crowded)
        (void)pthread_setaffinity_np(pthread_self(), sizeof r->cores, &r->cores);
    for (uint32_t i = 0; i < all->most_members; ++i) {
        bench b = {.all = all, .rank = r, .powers = {1, 1}};
        if (i < r->members && r->error.status == QN_OK)
            open_bench(&b, &r->member[i]);
        measure_device(&b, &r->cost[i]);
        if (b.worker)
            b.device->close(b.worker);
    }
    return NULL;
}

/* Devices that cannot compute the job are left out, unless they were named. */
static qn_status leave_out(const measuring *m, qn__member *member, uint32_t *members,
                           qn_error *err) {
    uint32_t kept = 0;
    for (uint32_t i = 0; i < *members; ++i) {
        qn_device_info info = {.size = sizeof(qn_device_info), .id = "the device"};
        if (member[i].device->supports(program_of(m))) {
            member[kept++] = member[i];
            continue;
        }
        member[i].device->describe(member[i].index, &info, NULL);
        if (!member[i].optional)
            return qn__member_lacks(info.id, member[i].device, program_of(m), err);
    }
    *members = kept;
    return QN_OK;
}

/* Consecutive cores for each rank; devices other than the CPU in turn. */
static qn_status divide(measuring *m, qn_error *err) {
    qn__member member[QN_PLAN_CALLS * 4];
    cpu_set_t mask;
    uint32_t members, dealt = 0;
    const int cores = m->compute->threads ? m->compute->threads : qn__cores();
    qn_status status = qn__members_of(m->compute, member, QN_PLAN_CALLS * 4, &members, err);
    if (status == QN_OK)
        status = leave_out(m, member, &members, err);
    if (status != QN_OK)
        return status;
    if ((uint32_t)cores < m->ranks || sched_getaffinity(0, sizeof mask, &mask) != 0) {
        qn__fail(err, QN_USAGE, "%d cores cannot be divided among %u ranks", cores, m->ranks);
        return qn__remedy(err, QN_USAGE, "give fewer `plan.ranks`");
    }
    m->crowded = m->ranks > 1 && cores > CPU_COUNT(&mask);
    for (uint32_t i = 0; i < members; ++i) {
        const int host = member[i].device->host;
        for (uint32_t r = 0; r < m->ranks; ++r)
            if (host || dealt % m->ranks == r)
                m->rank[r].member[m->rank[r].members++] = member[i];
        dealt += !host;
    }
    for (uint32_t r = 0, core = 0; r < m->ranks; ++r) {
        one_rank *k = &m->rank[r];
        const uint32_t end = (uint32_t)cores * (r + 1) / m->ranks;
        k->threads = (int)(end - (uint32_t)cores * r / m->ranks);
        for (int left = k->threads; core < CPU_SETSIZE && left > 0; ++core)
            if (CPU_ISSET(core, &mask)) {
                CPU_SET(core, &k->cores);
                --left;
            }
        m->most_members = k->members > m->most_members ? k->members : m->most_members;
    }
    return QN_OK;
}

static qn_status make_ranks(measuring *m, qn_error *err) {
    m->rank = qn__alloc(m->ranks, sizeof *m->rank, err);
    if (!m->rank)
        return QN_MEMORY;
    const uint64_t n = program_of(m)->parameters;
    for (uint32_t r = 0; r < m->ranks; ++r) {
        m->rank[r].all = m;
        m->rank[r].rank = r;
        m->rank[r].sums = qn__alloc(n, sizeof(int64_t), err);
        m->rank[r].part = qn__alloc(n, sizeof(int64_t), err);
        m->rank[r].message = qn__alloc(qn__words_most(n), 1, err);
        if (!m->rank[r].sums || !m->rank[r].part || !m->rank[r].message)
            return QN_MEMORY;
    }
    return divide(m, err);
}

static qn_status run_ranks(measuring *m, qn_error *err) {
    if (pthread_barrier_init(&m->together, NULL, m->ranks) != 0)
        return qn__fail_memory(err, 1, sizeof m->together);
    uint32_t started = 0;
    for (; started < m->ranks; ++started)
        if (qn__thread_start(&m->rank[started].thread, NULL, rank_body, &m->rank[started]) != 0)
            break;
    /* The running threads wait for the missing one: this thread takes its place in the barriers,
     * without cores of its own. */
    for (uint32_t r = started; r < m->ranks; ++r)
        rank_body(&m->rank[r]);
    for (uint32_t r = 0; r < started; ++r)
        pthread_join(m->rank[r].thread, NULL);
    pthread_barrier_destroy(&m->together);
    for (uint32_t r = 0; r < m->ranks; ++r)
        if (m->rank[r].error.status != QN_OK) {
            if (err)
                *err = m->rank[r].error;
            return m->rank[r].error.status;
        }
    return QN_OK;
}

static void tell(const measuring *m, qn_plan_cost *cost, uint32_t capacity, uint32_t *count) {
    const size_t stride = capacity > 0 ? cost->size : 0;
    for (uint32_t r = 0; r < m->ranks; ++r)
        for (uint32_t i = 0; i < m->rank[r].members && *count < capacity; ++i) {
            const qn__member *member = &m->rank[r].member[i];
            qn_plan_cost c = m->rank[r].cost[i];
            qn_device_info info = {.size = sizeof(qn_device_info), .id = ""};
            member->device->describe(member->index, &info, NULL);
            memcpy(c.id, info.id, sizeof c.id);
            c.rank = r;
            qn__sized_give(QN__SIZED("cost", qn_plan_cost), &c, (char *)cost + (*count)++ * stride,
                           stride);
        }
}

/* -------------------------------------------------------------------------------------- the job */

static qn_status make_job(measuring *m, const qn_train_options *o, const qn_data *data,
                          qn_error *err) {
    const qn__member cheap = {.device = qn__device_find("cpu"), .threads = 1};
    const qn_compute alone = {.size = sizeof(qn_compute),
                              .threads = 1,
                              .recompute = o->compute.recompute,
                              .cache_features = o->compute.cache_features};
    const qn__encoding_notes unheard = {.what = "the data"};
    const qn_data *const none[2] = {NULL, NULL};
    qn__recipe recipe;
    qn_status status = qn__plan_recipe(o, data, &recipe, err);
    if (status != QN_OK)
        return status;
    status = qn__train_job_create(&m->job, &recipe, data, NULL, &unheard, &alone, &cheap, 1,
                                  UINT64_MAX, err);
    if (status == QN_OK && alone.cache_features)
        status = qn__train_job_cut(&m->job, none, &alone, &cheap, 1, err);
    if (status == QN_OK)
        qn__permutation_begin(&m->order, m->job.feed.items, recipe.seed, QN__PURPOSE_ORDER, 0);
    qn__recipe_release(&recipe);
    return status;
}

static qn_status check(const qn_train_options *o, const qn_data *data, uint32_t features,
                       uint32_t ranks, double seconds, qn__network *network, qn_error *err) {
    qn_status status = QN_OK;
    if (!o->model || (!data && features < 1))
        status = qn__fail(err, QN_USAGE, "there is no job to measure for");
    else if (ranks < 1 || ranks > MOST_RANKS)
        status = qn__fail(err, QN_USAGE, "a machine cannot be measured for %u ranks", ranks);
    else if (!(seconds > 0 && seconds <= LONGEST))
        status = qn__fail(err, QN_USAGE, "a measurement cannot take %g seconds", seconds);
    if (status != QN_OK)
        return qn__remedy(err, status,
                          "give `train.model`, `plan.features` and 1 to %d `plan.ranks`",
                          MOST_RANKS);
    const qn__labels_like labels = qn__random_labels();
    return qn__model_source_read(o->model, &labels, network, err);
}

qn_status qn_plan_measure(const qn_train_options *job, const qn_data *data, uint32_t features,
                          uint32_t ranks, double seconds, qn_plan_cost *cost, uint32_t capacity,
                          uint32_t *count, qn_error *err) {
    QN__OWN_FLOATS;
    QN__NEED(count, err);
    *count = 0;
    QN__NEED(job, err);
    if (capacity > 0)
        QN__NEED(cost, err);
    qn_train_options own;
    qn_status status = qn__train_options_take(__func__, "job", job, &own, err);
    if (status == QN_OK && capacity > 0)
        status = qn__sized_check(QN__SIZED("cost[0]", qn_plan_cost), cost, err);
    if (status != QN_OK)
        return status;
    if (!data)
        qn__default_of_images(QN__TASK_CLASSIFY, &own);
    job = &own;
    measuring m = {.compute = &job->compute, .ranks = ranks, .seconds = seconds};
    qn__network network;
    qn_data *random = NULL;
    status = check(job, data, features, ranks, seconds, &network, err);
    if (status == QN_OK)
        status = qn_compute_check(&job->compute, err);
    if (status == QN_OK && !data)
        status = qn__random_items(job, &network, features, &random, err);
    if (status != QN_OK)
        return status;
    status = make_job(&m, job, data ? data : random, err);
    if (status == QN_OK)
        status = make_ranks(&m, err);
    if (status == QN_OK)
        status = run_ranks(&m, err);
    if (status == QN_OK)
        tell(&m, cost, capacity, count);
    for (uint32_t r = 0; m.rank && r < ranks; ++r) {
        qn__free(m.rank[r].sums);
        qn__free(m.rank[r].part);
        qn__free(m.rank[r].message);
    }
    qn__free(m.rank);
    qn__train_job_destroy(&m.job);
    qn_data_close(random);
    return status;
}
