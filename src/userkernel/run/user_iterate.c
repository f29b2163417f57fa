/* The loop over iterations. What NEXT(output, input) carries has two places, the array of the
 * output and a spare one, which alternate:
 *
 *   iteration   reads           writes
 *   0           the input       the output
 *   1           the output      the spare
 *   2           the spare       the output
 *
 * So the input is never changed. At the end the newest numbers are moved to the output. Between
 * two runs of the job is decided how many iterations to compute at once (user_tune.c) and who
 * computes them (user_choice.c), and a checkpoint is written where one is due. No result depends
 * on that. */
#include "userkernel/run/user_iterate.h"
#include "userkernel/run/user_outputs.h"

#include "base/argument.h"
#include "base/memory.h"
#include "base/system/clock.h"
#include "base/system/float_state.h"
#include "userkernel/execution/user_scan.h"
#include "userkernel/execution/user_steps.h"
#include "userkernel/run/user_checkpoint.h"
#include "userkernel/run/user_choice.h"
#include "userkernel/run/user_divide_run.h"
#include "userkernel/run/user_state_file.h"
#include "userkernel/run/user_tune.h"
#include "userkernel/run/user_watch.h"
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

/* More would take longer than any machine lasts, and items times iterations fit in 128 bits. */
#define MOST_ITERATIONS ((uint64_t)1 << 48)

qn_status qn__user_iterations_set(qn_kernel *k, uint64_t iterations, qn_error *err) {
    k->iterations = iterations;
    if (iterations == 0 || iterations > MOST_ITERATIONS) {
        qn__fail(err, QN_USAGE, "a kernel cannot run %s",
                 iterations ? "more than 2^48 times" : "0 times");
        qn__at(err, "`kernel.iterations`");
        return qn__remedy(err, QN_USAGE, "give 1 to 2^48, or leave it out for 1");
    }
    if (k->iterations == 1 || k->source.has_next || k->source.iteration[0] || k->source.has_random)
        return QN_OK;
    qn__fail(err, QN_USAGE, "the kernel has no NEXT, so all %" PRIu64 " iterations are the same",
             k->iterations);
    qn__at(err, "%s", k->name);
    return qn__remedy(err, QN_USAGE,
                      "declare NEXT(output, input); or leave `kernel.iterations` out");
}

/* ------------------------------------------------------------------ series */

qn_status qn_kernel_series(qn_kernel *k, const char *name, const char *path, qn_error *err) {
    QN__OWN_FLOATS;
    QN__NEED_AS(k, "kernel", err);
    QN__NEED(name, err);
    const uint32_t i = qn__user_part_named(k, name);
    if (i == QN__USER_PARTS || !qn__user_has_series(&k->source.part[i])) {
        qn__fail(err, QN_USAGE,
                 "the kernel has no SUM, MIN, MAX or COUNT \"%s\" that is one number", name);
        qn__at(err, "%s", k->name);
        return qn__remedy(err, QN_USAGE, "name one of these for `kernel.series`");
    }
    char *copy = path ? qn__copy_text(path, err) : NULL;
    if (path && !copy)
        return QN_MEMORY;
    qn__user_series_release(&k->part[i]);
    k->part[i].series_path = copy;
    k->part[i].wants_series = 1;
    return QN_OK;
}

/* Wide enough for every number of the part: int64, uint64 or float64. */
static qn__user_type series_type(const qn__user_part *p) {
    return p->use == QN__USER_COUNT           ? QN__USER_U64
           : qn__user_type_is_real(p->type)   ? QN__USER_F64
           : qn__user_type_is_signed(p->type) ? QN__USER_I64
                                              : QN__USER_U64;
}

qn_status qn__user_series_make(qn_kernel *k, qn_error *err) {
    qn_status status = QN_OK;
    for (uint32_t i = 0; i < k->source.parts && status == QN_OK; i++) {
        qn__user_array *a = &k->part[i].series;
        if (!k->part[i].wants_series)
            continue;
        qn__user_array_release(a);
        *a = (qn__user_array){.type = series_type(&k->source.part[i]), .dimensions = 1};
        a->shape[0] = k->iterations;
        status = qn__user_array_make(a, err);
    }
    return status;
}

/* The bytes of a number as those of its series. */
static uint64_t widen(const qn__user_part *p, uint64_t value) {
    char text[40];
    float narrow;
    uint64_t wide = 0;
    if (p->use == QN__USER_COUNT || qn__user_type_size(p->type) == 8)
        return value;
    if (p->type == QN__USER_F32) {
        memcpy(&narrow, &value, sizeof narrow);
        memcpy(&wide, &(double){(double)narrow}, sizeof wide);
        return wide;
    }
    qn__user_type_print(p->type, &value, text);
    qn__user_type_read(series_type(p), text, &wide);
    return wide;
}

/* Adds the results of an iteration to the series. */
static qn_status add_to_series(qn_kernel *k, uint64_t iteration, qn__user_total *total,
                               qn_error *err) {
    for (uint32_t i = 0; i < k->source.parts; i++) {
        const qn__user_part *p = &k->source.part[i];
        uint64_t value = 0;
        if (!k->part[i].wants_series)
            continue;
        const int extreme = qn__user_use_is_extreme(p->use);
        const int fits = qn__user_total_value(&total[i], p, &value);
        if (fits && (!extreme || total[i].count > 0)) {
            ((uint64_t *)k->part[i].series.data)[iteration] = widen(p, value);
            continue;
        }
        if (fits)
            qn__fail(err, QN_NUMERIC, "no item gave a number for \"%s\", which has a series",
                     p->name);
        else
            qn__fail(err, QN_NUMERIC, "the sum \"%s\" is beyond the range of %s", p->name,
                     qn__user_type_word(p->type));
        qn__at(err, "iteration %" PRIu64, iteration);
        return fits ? qn__remedy(err, QN_NUMERIC,
                                 "assign it in every iteration, or leave out `kernel.series` %s",
                                 p->name)
                    : qn__remedy(err, QN_NUMERIC, "scale what the items add, or sum another type");
    }
    return QN_OK;
}

/* ------------------------------------------------------------------ iterations */

/* What changes from one run of the job to the next. */
typedef struct loop {
    qn__user_array spare[QN__USER_PARTS];  /* of outputs that are carried: they alternate */
    qn__mapped_file *file[QN__USER_PARTS]; /* of a spare, or NULL */
    int in_spare;                          /* 1: the newest ones are there */
    int series;                            /* 1: there are series */
    qn__pool *pool;                        /* for prefix sums; NULL: there are none */
    qn__user_kept kept;
    qn__user_tune tune;
    /* Who computes. A device that computes alone keeps the newest state: the host has an older one,
     * of iteration `kept_at`, from which others go on if it fails. */
    qn__user_choice choice;
    qn__user_device *device; /* of the job; NULL: only processors */
    int64_t grain;           /* items of one, as the caller wants it */
    int alone;               /* 1: the team is one device */
    uint64_t kept_at;
    int kept_in_spare, is_kept;
    double kept_time, bring_seconds;
    /* Of own rows: items per second, 0: unknown; and the items of the last run. */
    double pace;
    int64_t computed;
} loop;

static int is_carried(const qn_kernel *k, uint32_t part) {
    return k->source.part[part].use == QN__USER_OUTPUT && k->source.part[part].next;
}

static int has_series(const qn_kernel *k) {
    for (uint32_t i = 0; i < k->source.parts; i++)
        if (k->part[i].wants_series)
            return 1;
    return 0;
}

static qn_status open_loop(const qn_kernel *k, int threads, loop *l, qn_error *err) {
    qn_status status = QN_OK;
    l->device = k->job.device;
    l->alone = l->device && l->device->job.resident;
    l->grain = k->job.items_of_grain;
    l->choice.settled = 1;
    l->series = has_series(k);
    l->is_kept = 1;
    l->kept_at = k->checkpoint.from;
    l->kept_time = qn__now();
    if (k->source.has_scan)
        status = qn__pool_create(threads, 1, &l->pool, err);
    l->tune = (qn__user_tune){.threads = threads, .grain = k->job.items_of_grain};
    for (uint32_t i = 0; i < k->source.parts && status == QN_OK && k->iterations > 1; i++)
        if (is_carried(k, i))
            status = qn__user_spare_make(k, i, &l->spare[i], &l->file[i], err);
    return status;
}

/* The results move to where they are expected: memory of the caller and files keep their place. */
static void settle_outputs(qn_kernel *k, loop *l) {
    for (uint32_t i = 0; i < k->source.parts && l->in_spare; i++) {
        if (!is_carried(k, i))
            continue;
        const qn__user_array newest = l->spare[i];
        if ((k->part[i].lent && !k->divided) || k->part[i].array.map) {
            memcpy(k->part[i].array.data, newest.data, qn__user_array_bytes(&newest));
        } else {
            l->spare[i] = k->part[i].array;
            k->part[i].array = newest;
        }
    }
}

/* Rows of neighbours were around them meanwhile. */
static void give_own_rows(const qn_kernel *k) {
    for (uint32_t i = 0; i < k->source.parts; i++)
        if (k->part[i].lent && is_carried(k, i) && k->part[i].array.own_bytes > 0) {
            const qn__user_array own = qn__user_divide_own(k, i);
            memcpy(k->part[i].own.data, own.data, qn__user_array_bytes(&own));
        }
}

static void close_loop(qn_kernel *k, loop *l) {
    k->job.device = l->device;
    qn__user_kept_release(&l->kept);
    pthread_mutex_destroy(&l->kept.lock);
    qn__pool_destroy(l->pool);
    for (uint32_t i = 0; i < k->source.parts; i++)
        if (l->file[i])
            qn__mapped_file_close(l->file[i]);
        else
            qn__user_array_release(&l->spare[i]);
}

/* Sets the arrays of the next run: it reads the newest state and writes the other places. */
static void connect(qn_kernel *k, const loop *l, uint64_t iteration) {
    qn__user_job *job = &k->job;
    for (uint32_t i = 0; i < k->source.parts; i++) {
        if (!is_carried(k, i))
            continue;
        const uint32_t input = k->source.part[i].next - 1;
        const int to_spare = iteration > 0 && !l->in_spare;
        job->array[i] = to_spare ? l->spare[i].data : k->part[i].array.data;
        job->array[input] = iteration == 0 ? k->part[input].array.data
                            : to_spare     ? k->part[i].array.data
                                           : l->spare[i].data;
    }
    job->iteration = (int64_t)iteration;
    job->iterations = (int64_t)k->iterations;
}

void qn__user_iterate_from(qn_kernel *k) {
    for (uint32_t i = 0; i < k->source.parts && k->checkpoint.from > 0; i++)
        if (is_carried(k, i))
            k->job.array[k->source.part[i].next - 1] = k->part[i].array.data;
    k->job.iteration = (int64_t)k->checkpoint.from;
}

/* Seconds after which ranks look at each other, and the part of the items that is computed first,
 * to know the speed. */
static const double LOOK = 0.3;
enum { FIRST = 64, FASTER = 4 };

/* Computes own items from job->begin to `end`, as long as that takes less than LOOK. */
static qn_status run_items(qn_kernel *k, loop *l, qn__team *team, qn__user_total *total,
                           int64_t end, qn_error *err) {
    qn__user_job *job = &k->job;
    qn_status status = QN_OK;
    for (double spent = 0; status == QN_OK && job->begin < end && spent < LOOK;
         spent += job->own_seconds) {
        const int64_t left = end - job->begin;
        const int64_t some = left / FIRST + 1;
        double count = l->pace > 0 ? l->pace * LOOK : (double)some;
        count = count < FASTER * (double)l->computed || l->computed == 0
                    ? count
                    : FASTER * (double)l->computed;
        job->end = job->begin + (count < (double)left ? (int64_t)count + 1 : left);
        job->end = job->end < end ? job->end : end;
        status = qn__user_job_run(job, team, total, err);
        l->computed = job->end - job->begin;
        l->pace = job->own_seconds > 0 ? (double)l->computed / job->own_seconds : 0;
        job->begin = job->end;
    }
    return status;
}

/* Each rank computes its own rows, and gets those of neighbours before. */
static qn_status run_part(qn_kernel *k, loop *l, qn__team *team, qn__user_total *total,
                          qn_error *err) {
    qn__user_job *job = &k->job;
    const int64_t end = job->end;
    int64_t fault = INT64_MAX;
    qn_status status = QN_OK;
    int left = 1;
    job->faulty = INT64_MAX;
    const double begun = qn__now();
    if (job->iteration > 0)
        status = qn__user_divide_refresh(k, (uint32_t)l->in_spare, err);
    while (left) {
        if (status == QN_OK)
            status = run_items(k, l, team, total, end < fault ? end : fault, err);
        left = status == QN_OK && job->begin < end && job->begin < fault;
        job->own_seconds = qn__now() - begun;
        status = qn__user_divide_join(k, total, &left, &fault, status, err);
    }
    return status;
}

static qn_status run_job(qn_kernel *k, loop *l, qn__team *team, qn__user_total *total,
                         qn_error *err) {
    if (k->divided)
        return run_part(k, l, team, total, err);
    const qn_status status = qn__user_job_run(&k->job, team, total, err);
    return status == QN_OK && l->pool ? qn__user_job_scan(&k->job, l->pool, err) : status;
}

/* An item of several iterations fails: one by one they tell which. */
static qn_status find_fault(qn_kernel *k, loop *l, qn__team *team, qn__user_total *total,
                            qn_error *err) {
    const uint64_t first = (uint64_t)k->job.iteration, steps = (uint64_t)k->job.steps;
    qn_status status = QN_OK;
    k->job.steps = 1;
    for (uint64_t t = first; t < first + steps && status == QN_OK; t++) {
        connect(k, l, t);
        status = run_job(k, l, team, total, err);
        l->in_spare = t > 0 && !l->in_spare;
    }
    return status == QN_OK ? qn__fail(err, QN_NUMERIC, "several iterations fail, but not each")
                           : status;
}

/* ------------------------------------------------------------------ who computes */

/* Gives the host the state that iteration `t` reads. */
static qn_status bring(qn_kernel *k, loop *l, qn__team *team, uint64_t t, qn_error *err) {
    const double begin = qn__now();
    if (l->is_kept && l->kept_at == t)
        return QN_OK;
    connect(k, l, t);
    /* It takes the place of the older state, or the other one. */
    l->is_kept = l->kept_at == 0 || l->kept_in_spare != l->in_spare;
    const qn_status status = qn__user_job_bring(&k->job, team, err);
    if (status != QN_OK)
        return status;
    l->is_kept = 1;
    l->kept_at = t;
    l->kept_in_spare = l->in_spare;
    l->kept_time = qn__now();
    l->bring_seconds = l->kept_time - begin;
    return QN_OK;
}

/* A device's state is brought from time to time, so that a loss costs seconds, and bringing it one
 * part in fifty of the time. */
static int is_bring_due(const loop *l, qn__team *team) {
    const double since = qn__now() - l->kept_time;
    return l->device && l->device->job.resident && qn__team_workers(team) > 1 && since > 5 &&
           since > 50 * l->bring_seconds;
}

/* The fastest GPU so far, as a bit set; 0: none has computed. And all GPUs, and the processor. */
static uint64_t find_members(qn__team *team, uint64_t *cpu, uint64_t *gpus) {
    uint32_t count, best = 0;
    double rate;
    const uint64_t alive = qn__team_alive(team);
    const qn_worker_report *worker = qn__team_report(team, 1, &count, &rate);
    *cpu = *gpus = 0;
    for (uint32_t i = 0; i < count; i++) {
        const int host = strcmp(worker[i].name, "cpu") == 0;
        if (!(alive >> i & 1))
            continue;
        *(host ? cpu : gpus) |= (uint64_t)1 << i;
        if (!host &&
            (!(*gpus >> best & 1) || worker[i].items_per_second > worker[best].items_per_second))
            best = i;
    }
    return *gpus ? (uint64_t)1 << best : 0;
}

/* Arrays that are carried cross the host unless one device has all. */
static void begin_choice(const qn_kernel *k, loop *l, qn__team *team) {
    uint64_t cpu, gpus;
    if (!l->device || l->alone || k->compute.cluster || k->iterations == 1 || k->source.has_scan ||
        (k->compute.shares && *k->compute.shares))
        return;
    const uint64_t fastest = find_members(team, &cpu, &gpus);
    qn__user_choice_begin(&l->choice, cpu, gpus, fastest);
    if (!fastest && k->job.grain)
        l->choice.now = QN__WHO_CPU; /* no GPU could be opened */
}

/* Sets who computes the next run. */
static void use_devices(qn_kernel *k, loop *l, qn__team *team, uint64_t t) {
    const qn__user_who who = l->choice.now;
    const uint64_t set = l->choice.set[who] ? l->choice.set[who] : UINT64_MAX;
    if (!l->device)
        return;
    if (set != k->watch.counts.used && !k->compute.cluster) {
        qn__user_watch_change(k, team, t, set);
        qn__team_use(team, set);
    }
    l->device->job.resident = l->alone || who == QN__WHO_GPU;
    k->job.device = who == QN__WHO_CPU ? NULL : l->device;
    if (who == QN__WHO_CPU)
        return;
    k->job.steps = 1;
    k->job.items_of_grain = l->grain;
}

/* After the iterations before `t`: whom to try next, and whether the host needs the state. */
static qn_status review(qn_kernel *k, loop *l, qn__team *team, uint64_t t, int series,
                        qn_error *err) {
    const qn__user_who who = l->choice.now;
    const int tuned = l->tune.settled || l->tune.best == 0 || series;
    uint64_t cpu, gpus;
    if (!l->choice.settled && who == QN__WHO_ALL)
        l->choice.set[QN__WHO_GPU] = find_members(team, &cpu, &gpus);
    qn__user_choice_done(&l->choice, k->job.seconds, (uint64_t)k->job.steps, k->iterations - t,
                         tuned);
    const int resident = l->alone || who == QN__WHO_GPU;
    if (t < k->iterations && resident && (l->choice.now != who || is_bring_due(l, team)))
        return bring(k, l, team, t, err);
    if (!resident) {
        l->kept_at = t;
        l->kept_in_spare = l->in_spare;
        l->kept_time = qn__now();
    }
    return QN_OK;
}

/* Goes back to the last state that the host has, if a device has failed that kept newer ones and
 * others are left. Returns the iteration to go on with. */
static uint64_t go_back(qn_kernel *k, loop *l, qn__team *team, uint64_t t, qn_status *status,
                        qn_error *err) {
    uint64_t cpu, gpus;
    if (*status != QN_DEVICE || k->compute.cluster || qn__team_workers(team) == 0 || !l->is_kept)
        return t;
    qn__user_choice_lost(&l->choice);
    qn__user_watch_change(k, team, t, UINT64_MAX);
    qn__team_use(team, 0);
    k->watch.counts.at = l->kept_at;
    find_members(team, &cpu, &gpus);
    l->alone = cpu == 0 && qn__team_workers(team) == 1;
    l->in_spare = l->kept_in_spare;
    k->job.steps = 0;
    *status = QN_OK;
    *err = (qn_error){0};
    return l->kept_at;
}

/* ------------------------------------------------------------------ checkpoints */

/* A disk that is full does not end a run: the report says so. */
static void note_written(qn_kernel *k, qn_status status, const qn_error *why) {
    qn__user_checkpoint *c = &k->checkpoint;
    char text[1700];
    const int first = !*c->note;
    if (status != QN_BUSY)
        snprintf(c->note, sizeof c->note, "%s%s%s", why->what, *why->where ? ": " : "", why->where);
    if (first && *c->note) {
        snprintf(text, sizeof text, "a checkpoint could not be written: %s%s%s", c->note,
                 *why->remedy ? "; " : "", why->remedy);
        qn__user_tell(k, text);
    }
    qn__float_state_set();
}

/* The writer of the ranks has all that a checkpoint needs. */
static void write_checkpoint(qn_kernel *k, const loop *l, uint64_t iteration) {
    void *state[QN__USER_PARTS] = {NULL};
    qn_error why = {0};
    if (qn_cluster_is_writer(k->compute.cluster)) {
        for (uint32_t i = 0; i < k->source.parts; i++)
            if (is_carried(k, i))
                state[i] = l->in_spare ? l->spare[i].data : k->part[i].array.data;
        const qn_status status = qn__user_checkpoint_write(k, iteration, state, &why);
        note_written(k, status, &why);
    }
    k->checkpoint.written = qn__now();
}

static qn_status save(qn_kernel *k, loop *l, qn__team *team, uint64_t iteration, qn_error *err) {
    const qn_status status = bring(k, l, team, iteration, err);
    if (status == QN_OK)
        write_checkpoint(k, l, iteration);
    return status;
}

/* The run was stopped after `iteration` iterations. */
static qn_status stop(qn_kernel *k, loop *l, qn__team *team, uint64_t iteration, qn_error *err) {
    qn_error why;
    if (iteration > k->checkpoint.from && save(k, l, team, iteration, &why) != QN_OK)
        return QN_INTERRUPTED; /* the device has failed; an older checkpoint stays as it is */
    if (iteration == 0 || *k->checkpoint.note)
        return QN_INTERRUPTED;
    return qn__remedy(err, QN_INTERRUPTED,
                      "add `kernel.resume` to continue after iteration %" PRIu64, iteration);
}

/* The last run writes one of the two places of the state: an older one there is lost. */
static void prepare_last(loop *l, int is_last) {
    if (is_last && l->kept_at > 0 && l->kept_in_spare != l->in_spare)
        l->is_kept = 0;
}

/* Between the items of a run of one iteration. */
static void save_items(void *kernel, int64_t done, qn__user_total *total, int stopped) {
    qn_kernel *k = kernel;
    qn__user_checkpoint *c = &k->checkpoint;
    qn_error why = {0};
    if (!stopped && qn__now() - c->written < c->seconds)
        return;
    if (qn_cluster_is_writer(k->compute.cluster)) {
        const qn_status status = qn__user_checkpoint_write_items(k, (uint64_t)done, total, &why);
        note_written(k, status, &why);
    }
    c->written = qn__now();
}

static qn_status stop_items(const qn_kernel *k, qn_error *err) {
    const qn__user_checkpoint *c = &k->checkpoint;
    if (c->items == 0 || *c->note)
        return QN_INTERRUPTED;
    return qn__remedy(err, QN_INTERRUPTED,
                      "add `kernel.resume` to continue after %" PRIu64 " items", c->items);
}

static void tell_continued(const qn_kernel *k) {
    const qn__user_checkpoint *c = &k->checkpoint;
    char text[128];
    if (!qn_cluster_is_writer(k->compute.cluster) || c->from + c->items == 0)
        return;
    if (c->from > 0)
        snprintf(text, sizeof text, "continued after iteration %" PRIu64, c->from);
    else
        snprintf(text, sizeof text, "continued after %" PRIu64 " items%s", c->items,
                 c->is_partial ? "; a later state in the checkpoint is not whole" : "");
    qn__user_tell(k, text);
}

/* Sets the job of the iterations from `t` on: who computes them, what they read and write, and how
 * many are computed at once. */
static void begin_steps(qn_kernel *k, loop *l, qn__team *team, qn__user_total *total, uint64_t t) {
    qn__user_job *job = &k->job;
    qn__user_totals_clear(&k->source, total);
    if (qn__state_of_items(k))
        qn__state_totals(k, total);
    job->begin = (int64_t)k->checkpoint.items;
    if (k->divided)
        qn__user_divide_items(k, &job->begin, &job->end);
    use_devices(k, l, team, t);
    connect(k, l, t);
    const uint64_t most = qn__user_checkpoint_ahead(k, t, k->iterations - t);
    const int one = l->series || job->device || k->divided;
    qn__user_tune_next(&l->tune, job, one ? 1 : (int64_t)most);
    prepare_last(l, t + (uint64_t)job->steps == k->iterations);
    job->without_totals = !l->series && t + (uint64_t)job->steps < k->iterations;
}

/* After the iterations from `t` on, which succeeded. */
static qn_status end_steps(qn_kernel *k, loop *l, qn__team *team, qn__user_total *total, uint64_t t,
                           qn_error *err) {
    const uint64_t next = t + (uint64_t)k->job.steps;
    qn_status status = QN_OK;
    l->in_spare = t > 0 && !l->in_spare;
    if (l->series)
        status = add_to_series(k, t, total, err);
    if (status == QN_OK && qn__user_checkpoint_due(k, next))
        status = save(k, l, team, next, err);
    return status == QN_OK ? review(k, l, team, next, l->series, err) : status;
}

static qn_status run_loop(qn_kernel *k, loop *l, qn__team *team, qn__user_total *total,
                          qn_error *err) {
    qn__user_job *job = &k->job;
    qn_status status = QN_OK;
    job->kept = &l->kept;
    job->after_round = qn__state_of_items(k) ? save_items : NULL;
    job->keeper = k;
    tell_continued(k);
    begin_choice(k, l, team);
    for (uint64_t t = k->checkpoint.from; t < k->iterations && status == QN_OK;
         t += (uint64_t)job->steps) {
        begin_steps(k, l, team, total, t);
        status = run_job(k, l, team, total, err);
        if (status == QN_MEMORY && job->steps > 1 && !k->compute.cluster) {
            qn__user_tune_give_up(&l->tune);
            job->steps = 0; /* they are computed again, one by one */
            status = QN_OK;
            continue;
        }
        if (status == QN_NUMERIC && job->steps > 1)
            return find_fault(k, l, team, total, err);
        if (status == QN_INTERRUPTED && job->after_round)
            status = stop_items(k, err);
        else if (status == QN_INTERRUPTED && k->checkpoint.path)
            status = stop(k, l, team, t, err);
        if (!job->device)
            qn__user_tune_done(&l->tune, job);
        if (status == QN_OK)
            status = end_steps(k, l, team, total, t, err);
        t = go_back(k, l, team, t, &status, err);
    }
    return status;
}

qn_status qn__user_iterate(qn_kernel *k, qn__team *team, qn__user_total *total, qn_error *err) {
    loop *l = qn__alloc(1, sizeof *l, err);
    if (!l)
        return QN_MEMORY;
    if (pthread_mutex_init(&l->kept.lock, NULL) != 0) {
        qn__free(l);
        return qn__fail(err, QN_MEMORY, "cannot make a mutex");
    }
    qn_status status =
        open_loop(k, k->report.threads > 0 ? k->report.threads : qn__cores(), l, err);
    if (status == QN_OK && k->divided)
        qn__user_divide_places(k, l->spare);
    if (status == QN_OK)
        status = run_loop(k, l, team, total, err);
    if (status == QN_OK)
        settle_outputs(k, l);
    if (status == QN_OK && k->divided)
        give_own_rows(k);
    if (k->divided)
        qn__user_divide_places(k, NULL);
    close_loop(k, l);
    qn__free(l);
    return status;
}
