/* The rounds of a user kernel.
 *
 * In one process there is one round: outputs are written in place, and only sums, extremes and the
 * first fault are words of the host job. Among ranks outputs are words, too: one rank writes those
 * of a grain, the others add zeros. Rounds then bound the memory, let ranks of changing speed get
 * other shares, and are the moments at which a run can be stopped. Grains are taken in an order
 * that scatters them over the index space, so that a range of them costs what any other of its
 * length does, even if one half of the space costs much more than the other. */
#include "userkernel/execution/user_run.h"

#include "base/memory.h"
#include "base/system/clock.h"
#include "base/system/float_state.h"
#include "cluster/cluster.h"
#include "userkernel/execution/user_device.h"
#include "userkernel/execution/user_device_sums.h"
#include "userkernel/execution/user_fault.h"
#include "userkernel/execution/user_steps.h"
#include <pthread.h>
#include <string.h>

/* Items that one process computes at once, at least. */
enum { AT_ONCE = 4096 };
/* The first round is this part of the grains, at least so many for each rank and at most so many; a
 * round is at most so many times the one before, because the next grains may be more expensive. */
enum { PROBE = 64, OF_A_PROBE = 4, MOST_OF_A_PROBE = 16, GROWTH = 4 };
/* Seconds of a round: not more, and no less unless little is left. */
static const double LONG_ROUND = 0.5, SHORT_ROUND = 0.02;
static const double LONG_CALL = 0.005; /* seconds that a thread computes without a look around */
static const double TICK = 0.1;        /* seconds between two reports of progress */

/* Places of the words. Added: the nanoseconds of all threads, then the totals. Then each rank's own
 * places: its first faulty item + 1, its threads, the time of its last run, and of each part the
 * number of an extreme, or of each of its bins, and its item + 1. Then the outputs. */
enum { FAULT, THREADS, SECONDS, EXTREMES };
typedef struct layout {
    uint64_t total[QN__USER_PARTS], ranks, of_a_rank, extreme[QN__USER_PARTS];
    uint64_t output[QN__USER_PARTS], words;
} layout;

typedef struct round {
    qn__user_job *job;
    int64_t items, grain;
    uint32_t grains, ranks, rank; /* of the job */
    int in_rounds;                /* 1: only between rounds it can be stopped */
    uint64_t stride;
    uint32_t from, count; /* grains of this round */
    int64_t slowest;      /* nanoseconds of the last run, of the slowest rank */
    layout at;
    atomic_int_fast64_t faulty; /* the first item that is known to be impossible, or INT64_MAX */
    atomic_int_fast64_t done;   /* items of this process */
    pthread_t caller;
    pthread_mutex_t lock;
    int64_t device_faulty; /* the first faulty item that a device found, and what is wrong */
    uint64_t device_fault;
    uint32_t threads;                   /* that have finished in this round */
    qn__user_total own[QN__USER_PARTS]; /* extremes of this rank */
} round;

/* ------------------------------------------------------------------ grains */

static int is_extreme(const qn__user_part *p) { return qn__user_use_is_extreme(p->use); }

static uint64_t common_divisor(uint64_t a, uint64_t b) {
    while (b > 0) {
        const uint64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

/* Consecutive multiples of the golden ratio are spread evenly, however many there are. */
static uint64_t stride_of(uint32_t grains) {
    uint64_t stride = ((uint64_t)grains * 2654435769u >> 32) + 1;
    while (common_divisor(stride, grains) != 1)
        stride++;
    return stride;
}

/* The first item of the k-th grain. */
static int64_t first_of(const round *r, uint32_t k) {
    return r->job->begin + (int64_t)(k * r->stride % r->grains) * r->grain;
}

/* Items of so many grains. */
static int64_t count_of(const round *r, int64_t first, uint32_t grains) {
    return r->items - first < r->grain * grains ? r->items - first : r->grain * grains;
}

/* Grains, at most so many, that are computed at once: alone, few items have a cost of their own.
 * `each`: seconds of an item; 0: unknown. A long call would delay progress and a stop. */
static uint32_t neighbours(const round *r, double each, uint32_t most) {
    const int64_t many = AT_ONCE / r->grain;
    double grains = r->ranks == 1 && many > 0 ? (double)many : 1;
    const double fit = each > 0 ? LONG_CALL / (each * (double)r->grain) : 1;
    grains = grains < fit ? grains : fit;
    return grains < 1 ? 1 : grains < most ? (uint32_t)grains : most;
}

/* ------------------------------------------------------------------ words */

static void lay_out(round *r) {
    const qn__user_source *s = r->job->source;
    layout *at = &r->at;
    uint64_t words = 1;
    at->of_a_rank = EXTREMES;
    for (uint32_t i = 0; i < s->parts; i++) {
        at->total[i] = words;
        words += qn__user_total_words(&s->part[i]);
        at->extreme[i] = at->of_a_rank;
        at->of_a_rank += !is_extreme(&s->part[i]) ? 0
                         : s->part[i].bins > 0    ? 2 * s->part[i].bins
                                                  : 2;
    }
    at->ranks = words;
    words += r->ranks * at->of_a_rank;
    for (uint32_t i = 0; i < s->parts && r->ranks > 1; i++) {
        at->output[i] = words;
        if (s->part[i].use == QN__USER_OUTPUT)
            words += (uint64_t)r->count * (uint64_t)r->grain * qn__user_part_each(&s->part[i]) /
                     sizeof(int64_t);
    }
    at->words = words;
}

/* Where the words of an output begin, of the k-th grain. */
static uint64_t output_at(const round *r, uint32_t part, uint32_t k) {
    const uint64_t size = qn__user_part_each(&r->job->source->part[part]);
    return r->at.output[part] + (k - r->from) * ((uint64_t)r->grain * size / sizeof(int64_t));
}

/* The kernel counts from item 0, which may be in front of the words. */
static void place_outputs(const round *r, qn__user_thread *t, uint32_t k, int64_t *words) {
    const qn__user_source *s = r->job->source;
    const uintptr_t first = (uintptr_t)first_of(r, k);
    for (uint32_t i = 0; i < s->parts; i++)
        if (s->part[i].use == QN__USER_OUTPUT)
            t->array[i] = (void *)((uintptr_t)(words + output_at(r, i, k)) -
                                   first * qn__user_part_each(&s->part[i]));
}

/* ------------------------------------------------------------------ the host job */

static void *open_thread(void *context, qn_error *err) {
    const round *r = context;
    return qn__user_stepper_open(r->job, err);
}

static void note_progress(round *r, int64_t items, double now) {
    qn__user_job *job = r->job;
    const int64_t done = atomic_fetch_add(&r->done, items) + items;
    if (!job->progress || r->ranks > 1 || !pthread_equal(pthread_self(), r->caller))
        return;
    if (now - job->told < TICK)
        return;
    job->told = now;
    job->progress(job->user, done);
    qn__float_state_set();
}

static int is_stopped(const round *r) {
    if (r->ranks > 1)
        return qn__cluster_stopping(r->job->cluster);
    return r->job->stop && atomic_load_explicit(r->job->stop, memory_order_relaxed);
}

/* Ranks stop together, after a round. */
static int is_stopped_within(const round *r) { return !r->in_rounds && is_stopped(r); }

/* Grains after a faulty item need not be computed; those before it are, so the first faulty item
 * of all is found. */
static qn_status compute_grains(void *context, void *scratch, uint32_t first, uint32_t count,
                                int64_t *words, qn_error *err) {
    round *r = context;
    qn__user_stepper *stepper = scratch;
    qn__user_thread *t = stepper->thread;
    const double begun = qn__now();
    (void)err;
    qn__float_state_set();
    const uint32_t end = r->from + first + count;
    double at = begun;
    for (uint32_t k = r->from + first, more; k < end; k += more) {
        more = r->job->steps > 1 ? 1 : neighbours(r, t->item_seconds, end - k);
        const int64_t item = first_of(r, k), items = count_of(r, item, more);
        if (r->ranks > 1)
            place_outputs(r, t, k, words);
        else if (is_stopped_within(r))
            break;
        qn__user_steps(r->job, stepper, item, items, &r->faulty);
        const double now = qn__now();
        t->item_seconds = (now - at) / (double)items;
        at = now;
        note_progress(r, items, now);
    }
    t->seconds += qn__now() - begun;
    return QN_OK;
}

/* ------------------------------------------------------------------ by a device */

static uint32_t device_span(void *context, uint32_t first, uint32_t most, int64_t *words,
                            qn__kernel_span *out) {
    const round *r = context;
    const qn__user_device *d = r->job->device;
    const uint32_t k = r->from + first, grains = r->ranks == 1 ? most : 1;
    const int64_t item = first_of(r, k);
    if (r->ranks == 1 && (is_stopped_within(r) || item > atomic_load(&r->faulty)))
        return 0;
    out->first = (uint64_t)item;
    out->count = (uint64_t)count_of(r, item, grains);
    for (uint32_t i = 0; i < d->job.arrays; i++)
        if (d->array[i].use == QN__KERNEL_WRITTEN)
            out->to[i] = r->ranks > 1
                             ? (char *)(words + output_at(r, d->of[i], k))
                             : (char *)r->job->array[d->of[i]] + (size_t)item * d->array[i].each;
    return grains;
}

static void device_fault(void *context, uint64_t item, uint64_t fault) {
    round *r = context;
    pthread_mutex_lock(&r->lock);
    if ((int64_t)item < r->device_faulty) {
        r->device_faulty = (int64_t)item;
        r->device_fault = fault;
    }
    pthread_mutex_unlock(&r->lock);
    qn__user_fault_note(&r->faulty, (int64_t)item);
}

static int device_take(void *context, void *scratch, int64_t *words, uint64_t first, uint64_t count,
                       const void *const *values, double seconds) {
    round *r = context;
    (void)words;
    qn__user_thread *t = ((const qn__user_stepper *)scratch)->thread;
    const qn__user_device *d = r->job->device;
    const void *array[2 * QN__USER_PARTS] = {NULL};
    qn__float_state_set();
    for (uint32_t i = 0; i < d->job.arrays; i++)
        array[d->of[i]] = values[i];
    qn__user_take_values(r->job, t, array, (int64_t)first, (int64_t)count);
    t->seconds += seconds;
    note_progress(r, (int64_t)count, qn__now());
    return r->ranks > 1 ||
           (!is_stopped_within(r) && (int64_t)(first + count) <= atomic_load(&r->faulty));
}

static void device_sum(void *context, void *scratch, const int64_t *words) {
    const round *r = context;
    qn__user_thread *t = ((const qn__user_stepper *)scratch)->thread;
    if (t->adds)
        qn__user_device_sums_take(r->job->source, words, t->total);
}

/* The arrays of this run, and the functions of a round. */
void qn__user_job_bind(qn__user_job *job) {
    qn__user_device *d = job->device;
    const qn__user_call call = qn__user_call_of(job, job->array, job->iteration);
    qn__user_device_bind(job->source, &call, d);
    for (uint32_t i = 0; i < d->job.arrays; i++)
        d->array[i].unwanted = d->array[i].use == QN__KERNEL_VALUES && job->without_totals;
    d->job.without_totals = job->without_totals;
    d->job.sum = d->job.total_words > 0 ? device_sum : NULL;
    d->job.fetch = job->iteration + 1 >= job->iterations;
    d->job.span = device_span;
    d->job.take = device_take;
    d->job.fault = device_fault;
}

/* ------------------------------------------------------------------ the end of a thread */

static void put_totals(round *r, qn__user_thread *t, int64_t *words) {
    const qn__user_source *s = r->job->source;
    int64_t *own = words + r->at.ranks + r->rank * r->at.of_a_rank;
    words[0] += (int64_t)(t->seconds * 1e9);
    own[SECONDS] = (int64_t)(r->job->own_seconds * 1e9);
    own[THREADS] = ++r->threads;
    if (atomic_load(&r->faulty) != INT64_MAX)
        own[FAULT] = atomic_load(&r->faulty) + 1;
    for (uint32_t i = 0; i < s->parts; i++) {
        if (qn__user_total_words(&s->part[i]) > 0)
            qn__user_total_put(&t->total[i], &s->part[i], words + r->at.total[i]);
        if (!is_extreme(&s->part[i]))
            continue;
        if (s->part[i].bins > 0) {
            qn__user_bins_tell(t->total[i].bins, &s->part[i], &own[r->at.extreme[i]]);
            continue;
        }
        qn__user_total_merge(&r->own[i], &s->part[i], &t->total[i]);
        if (!r->own[i].has_value)
            continue;
        memcpy(&own[r->at.extreme[i]], &r->own[i].value, sizeof *own);
        own[r->at.extreme[i] + 1] = r->own[i].item + 1;
    }
}

/* qn__host_job: several workers may finish at the same time. */
static void finish_thread(void *context, void *scratch, int64_t *words) {
    round *r = context;
    pthread_mutex_lock(&r->lock);
    put_totals(r, ((const qn__user_stepper *)scratch)->thread, words);
    pthread_mutex_unlock(&r->lock);
}

/* ------------------------------------------------------------------ a round's results */

/* Every rank has the same words, so all know the same faults. Returns the threads of all ranks. */
static int64_t take_places(round *r, const int64_t *words, qn__user_total *total) {
    const qn__user_source *s = r->job->source;
    int64_t threads = 0, faulty = INT64_MAX;
    for (uint32_t rank = 0; rank < r->ranks; rank++) {
        const int64_t *place = words + r->at.ranks + rank * r->at.of_a_rank;
        threads += place[THREADS];
        if (place[SECONDS] > r->slowest)
            r->slowest = place[SECONDS];
        if (place[FAULT] > 0 && place[FAULT] - 1 < faulty)
            faulty = place[FAULT] - 1;
        for (uint32_t i = 0; i < s->parts; i++) {
            const int64_t *extreme = place + r->at.extreme[i];
            if (is_extreme(&s->part[i]) && s->part[i].bins > 0)
                qn__user_bins_hear(total[i].bins, &s->part[i], extreme);
            else if (is_extreme(&s->part[i]) && extreme[1] > 0)
                qn__user_total_offer(&total[i], &s->part[i], (uint64_t)extreme[0], extreme[1] - 1);
        }
    }
    if (faulty < atomic_load(&r->faulty))
        atomic_store(&r->faulty, faulty);
    return threads;
}

static void take_outputs(const round *r, const int64_t *words) {
    const qn__user_source *s = r->job->source;
    for (uint32_t i = 0; i < s->parts; i++) {
        const size_t size = qn__user_part_each(&s->part[i]);
        char *to = r->job->array[i];
        for (uint32_t k = r->from; k < r->from + r->count && s->part[i].use == QN__USER_OUTPUT; k++)
            memcpy(to + (size_t)first_of(r, k) * size, words + output_at(r, i, k),
                   (size_t)count_of(r, first_of(r, k), 1) * size);
    }
}

static void take_words(round *r, const int64_t *words, qn__user_total *total) {
    const qn__user_source *s = r->job->source;
    for (uint32_t i = 0; i < s->parts; i++)
        if (qn__user_total_words(&s->part[i]) > 0)
            qn__user_total_take(&total[i], &s->part[i], words + r->at.total[i]);
    const int64_t threads = take_places(r, words, total);
    if (words[0] > 0)
        r->job->pace = r->count * (double)threads * 1e9 / (double)words[0];
    if (r->ranks > 1)
        take_outputs(r, words);
}

static qn_status run_round(round *r, qn__team *team, qn__user_total *total, qn_error *err) {
    const int64_t *words;
    lay_out(r);
    r->threads = 0;
    memset(r->own, 0, sizeof r->own);
    const qn__host_job host = {.context = r,
                               .open = open_thread,
                               .close = qn__user_stepper_close,
                               .grains = compute_grains,
                               .finish = finish_thread,
                               .words = r->at.words,
                               .apart = 1,
                               .uneven = 1,
                               .kernel = r->job->device ? &r->job->device->job : NULL};
    const qn_status status = qn__team_run(team, &host, r->count, &words, err);
    if (status == QN_OK)
        take_words(r, words, total);
    return status;
}

/* ------------------------------------------------------------------ the job */

/* Grains of the next round, the same on all ranks: they follow from the job and from words. */
static uint32_t next_count(const round *r) {
    const uint32_t left = r->grains - r->from;
    const int64_t bytes = r->grain * qn__user_job_bytes(r->job);
    const int64_t capacity = r->ranks > 1 && bytes > 0 ? QN__USER_ROUND_BYTES / bytes : left;
    const uint32_t half = left / 2;
    double count = half;
    if (!r->in_rounds)
        return left;
    if (r->job->iteration > 0) /* the iterations before have shown what the ranks can do */
        return capacity < 1 ? 1 : capacity < left ? (uint32_t)capacity : left;
    if (r->job->pace <= 0) {
        /* However many grains there are, it is short: ranks can be stopped only between rounds. */
        const uint32_t low = r->ranks * OF_A_PROBE, high = r->ranks * MOST_OF_A_PROBE;
        count = r->grains / PROBE < low ? low : r->grains / PROBE > high ? high : r->grains / PROBE;
    } else {
        count = count > r->job->pace * SHORT_ROUND ? count : r->job->pace * SHORT_ROUND;
        count = count < r->job->pace * LONG_ROUND ? count : r->job->pace * LONG_ROUND;
        if (r->count > 0 && count > (double)r->count * GROWTH)
            count = (double)r->count * GROWTH;
    }
    count = count < (double)capacity ? count : (double)capacity;
    return count < 1 ? 1 : count < left ? (uint32_t)count : left;
}

static qn_status tell_fault(const round *r, qn_error *err) {
    const int64_t item = atomic_load(&r->faulty);
    if (r->job->steps > 1)
        return qn__fail(err, QN_NUMERIC, "an item of one of the iterations fails");
    if (item == r->device_faulty)
        return qn__user_fault_tell(r->job, r->device_fault, item, err);
    if (!r->job->grain) {
        qn__fail(err, QN_NUMERIC, "an item of the kernel is not possible; another rank found it");
        return qn__remedy(err, QN_NUMERIC, "see the message of that rank");
    }
    qn__user_thread *t = qn__user_thread_open(r->job, err);
    if (!t)
        return QN_MEMORY;
    const qn_status status =
        qn__user_fault_tell(r->job, qn__user_item_fault(r->job, t, item), item, err);
    qn__user_thread_close(t);
    return status;
}

static int is_last(const round *r) {
    return r->from == r->grains && r->job->iteration + r->job->steps >= r->job->iterations;
}

/* A state with a faulty item is none to go on from. */
static void keep(const round *r, qn__user_total *total, int stopped) {
    if (r->job->after_round && r->from < r->grains && atomic_load(&r->faulty) == INT64_MAX)
        r->job->after_round(r->job->keeper, r->job->begin + r->from * r->grain, total, stopped);
}

static qn_status run_rounds(round *r, qn__team *team, qn__user_total *total, qn_error *err) {
    qn_status status = QN_OK;
    while (status == QN_OK && r->from < r->grains) {
        r->count = next_count(r);
        status = run_round(r, team, total, err);
        r->from += r->count;
        r->job->computed += r->count;
        const int stopped = status == QN_OK && is_stopped(r);
        if (status == QN_OK)
            keep(r, total, stopped);
        if (stopped && (!r->in_rounds || !is_last(r)))
            return qn__fail(err, QN_INTERRUPTED, "the run of the kernel was stopped");
        if (status == QN_OK && r->ranks > 1 && r->job->progress)
            r->job->progress(r->job->user, r->job->begin + r->from * r->grain);
        qn__float_state_set();
    }
    return status == QN_OK && atomic_load(&r->faulty) != INT64_MAX ? tell_fault(r, err) : status;
}

qn_status qn__user_job_run(qn__user_job *job, qn__team *team, qn__user_total *total,
                           qn_error *err) {
    round *r = qn__alloc(1, sizeof *r, err);
    if (!r)
        return QN_MEMORY;
    r->job = job;
    r->items = job->end > 0 ? job->end : qn__user_job_items(job);
    r->grain = qn__user_job_grain(job);
    r->grains = (uint32_t)((r->items - job->begin + r->grain - 1) / r->grain);
    r->ranks = qn_cluster_ranks(job->cluster);
    r->rank = qn_cluster_rank(job->cluster);
    r->in_rounds = r->ranks > 1 || job->after_round;
    r->stride = r->ranks > 1 && !job->after_round ? stride_of(r->grains) : 1;
    if (job->device)
        qn__user_job_bind(job);
    r->caller = pthread_self();
    if (job->told <= 0)
        job->told = qn__now();
    r->device_faulty = INT64_MAX;
    atomic_init(&r->faulty, INT64_MAX);
    atomic_init(&r->done, job->begin);
    const double begun = qn__now();
    qn_status status = QN_OK;
    if (pthread_mutex_init(&r->lock, NULL) != 0)
        status = qn__fail(err, QN_MEMORY, "cannot make a mutex");
    if (status == QN_OK) {
        status = run_rounds(r, team, total, err);
        job->faulty = atomic_load(&r->faulty);
        pthread_mutex_destroy(&r->lock);
    }
    job->own_seconds = qn__now() - begun;
    job->seconds = r->ranks > 1 ? (double)r->slowest * 1e-9 : job->own_seconds;
    qn__free(r);
    return status;
}

qn_status qn__user_job_bring(qn__user_job *job, qn__team *team, qn_error *err) {
    const int64_t *words;
    if (!job->device || !job->device->job.resident)
        return QN_OK;
    qn__user_job_bind(job);
    job->device->job.bring = 1;
    const qn__host_job host = {.words = 1, .apart = 1, .kernel = &job->device->job};
    const qn_status status = qn__team_run(team, &host, 1, &words, err);
    job->device->job.bring = 0;
    return status;
}
