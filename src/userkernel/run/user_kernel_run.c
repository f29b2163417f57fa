/* Running a user's kernel. A run is three lists of steps: what can fail on one rank alone, then, if
 * all ranks agree, the work, then the files. What a run makes, and who releases it:
 *
 *   made                              by               released by
 *   writers of files                  open_files       end_run (qn__user_files_close)
 *   lock and state of the checkpoint  set_checkpoint   end_run (qn__user_checkpoint_end)
 *   outputs that are mapped files     make_arrays      end_run (qn__user_files_close)
 *   team, totals, trace               work             end_work
 *
 * Outputs and series in memory, and compiled code, stay with the kernel: results are read from
 * them, and the next run replaces or uses them. qn_kernel_free releases them. */
#include "base/files/remote.h"
#include "base/argument.h"
#include "base/memory.h"
#include "base/sized.h"
#include "base/system/clock.h"
#include "base/system/float_state.h"
#include "statistics/host_team.h"
#include "userkernel/run/user_checkpoint.h"
#include "userkernel/run/user_devices.h"
#include "userkernel/run/user_divide_run.h"
#include "userkernel/run/user_files.h"
#include "userkernel/run/user_iterate.h"
#include "userkernel/run/user_outputs.h"
#include "userkernel/run/user_ranks.h"
#include "userkernel/run/user_space.h"
#include "userkernel/run/user_watch.h"
#include <string.h>

/* ------------------------------------------------------------------ options */

void qn_kernel_options_init(qn_kernel_options *options) {
    QN__OWN_FLOATS;
    if (options)
        *options = (qn_kernel_options){.size = sizeof *options, .iterations = 1};
}

static qn_status check_options(const qn_kernel_options *o, qn_compute *compute, qn_error *err) {
    if (compute->threads < 0 || compute->threads > 4096) {
        qn__fail(err, QN_USAGE, "a kernel cannot run on %d threads", compute->threads);
        qn__at(err, "`kernel.threads`");
        return qn__remedy(err, QN_USAGE, "give 1 to 4096, or 0 for every core");
    }
    if (o->grain > (uint64_t)1 << 32) {
        qn__fail(err, QN_USAGE, "the grain has more than 2^32 items");
        qn__at(err, "`kernel.grain`");
        return qn__remedy(err, QN_USAGE, "leave it out");
    }
    return qn_compute_check(compute, err);
}

/* ------------------------------------------------------------------ the job */

static void fill_job(qn_kernel *k, const uint64_t shape[QN_KERNEL_DIMENSIONS], uint64_t grain) {
    qn__user_job *job = &k->job;
    *job = (qn__user_job){.source = &k->source,
                          .items_of_grain = (int64_t)grain,
                          .stop = &k->stop,
                          .seed = k->seed,
                          .cluster = k->divided ? NULL : k->compute.cluster};
    const uint32_t skip = QN_KERNEL_DIMENSIONS - k->source.dimensions;
    for (uint32_t d = 0; d < QN_KERNEL_DIMENSIONS; d++)
        job->extent[d] = d < skip ? 1 : (int64_t)shape[d - skip];
}

static void place_arrays(qn_kernel *k) {
    qn__user_job *job = &k->job;
    for (uint32_t i = 0; i < k->source.parts; i++) {
        job->array[i] = k->part[i].array.data;
        job->scalar[i] = &k->part[i].scalar;
        for (uint32_t d = 0; d < k->part[i].array.dimensions; d++)
            job->length[i * QN__USER_DIMENSIONS + d] = (int64_t)k->part[i].array.shape[d];
    }
}

static qn_status overflow(const qn_kernel *k, uint32_t part, qn_error *err) {
    const qn__user_part *p = &k->source.part[part];
    qn__fail(err, QN_NUMERIC, "the sum \"%s\" is beyond the range of %s", p->name,
             qn__user_type_word(p->type));
    qn__at(err, "SUM(%s, %s) in %s", qn__user_type_word(p->type), p->name, k->name);
    return qn__remedy(err, QN_NUMERIC, "scale what the items add, or sum another type");
}

static qn_status take_bins(qn_kernel *k, uint32_t part, qn__user_bins *bins, qn_error *err) {
    const qn__user_part *p = &k->source.part[part];
    const size_t size = qn__user_type_size(qn__user_part_type(p));
    char *to = k->part[part].array.data;
    for (uint32_t i = 0; i < p->bins; i++) {
        uint64_t value = 0;
        if (qn__user_bins_value(bins, p, i, &value)) {
            memcpy(to + i * size, &value, size);
            continue;
        }
        overflow(k, part, err);
        qn__at(err, "bin %u", (unsigned)i);
        return QN_NUMERIC;
    }
    return QN_OK;
}

static qn_status take_results(qn_kernel *k, qn__user_total *total, qn_error *err) {
    for (uint32_t i = 0; i < k->source.parts; i++) {
        const qn__user_part *p = &k->source.part[i];
        qn__user_bound *b = &k->part[i];
        uint64_t value = 0, item = (uint64_t)total[i].item;
        if (p->use < QN__USER_SUM)
            continue;
        if (p->bins > 0) {
            const qn_status status = take_bins(k, i, total[i].bins, err);
            if (status != QN_OK)
                return status;
            continue;
        }
        if (!qn__user_total_value(&total[i], p, &value))
            return overflow(k, i, err);
        const int extreme = qn__user_use_is_extreme(p->use);
        b->count = total[i].count;
        b->has_value = !extreme || b->count > 0;
        qn__user_type_print(p->use == QN__USER_COUNT ? QN__USER_U64 : p->type, &value, b->text);
        for (uint32_t d = k->source.dimensions; d-- > 0; item /= k->report.shape[d])
            b->item[d] = extreme ? item % k->report.shape[d] : 0;
    }
    return QN_OK;
}

/* Of inputs, of results, or of both. */
static qn_status digest_arrays(qn_kernel *k, int inputs, int results, qn__pool *pool,
                               qn_error *err) {
    qn_status status = QN_OK;
    for (uint32_t i = 0; i < k->source.parts && status == QN_OK; i++) {
        qn__user_bound *b = &k->part[i];
        const qn__user_part *p = &k->source.part[i];
        if (k->divided && (k->divided->input[i].first || p->use == QN__USER_OUTPUT))
            continue; /* qn__user_divide_digest */
        if (p->use < QN__USER_OUTPUT ? inputs : results && qn__user_part_is_written(p))
            status = qn__user_array_digest(&b->array, pool, b->digest, err);
        else if (results && b->wants_series)
            status = qn__user_array_digest(&b->series, pool, b->series_digest, err);
    }
    return status;
}

static qn_status digest(qn_kernel *k, int inputs, int results, qn_error *err) {
    qn__pool *pool;
    const int threads = k->compute.threads ? k->compute.threads : qn__cores();
    qn_status status = qn__pool_create(threads, 1, &pool, err);
    if (status == QN_OK)
        status = digest_arrays(k, inputs, results, pool, err);
    qn__pool_destroy(pool);
    return status;
}

static void fill_report(qn_kernel *k) {
    const uint32_t skip = QN_KERNEL_DIMENSIONS - k->source.dimensions;
    for (uint32_t d = skip; d < QN_KERNEL_DIMENSIONS; d++)
        k->report.shape[d - skip] = (uint64_t)k->job.extent[d];
    k->report.items = (uint64_t)qn__user_job_items(&k->job);
    k->report.iterations = k->iterations;
    k->report.cached = k->code.cached;
    k->report.compiler = k->code.compiler;
    k->report.note = k->code.note;
    k->report.checkpoint_note = k->checkpoint.note;
}

/* Those in parts have a digest after the run, the others get it before. */
static qn_status check_inputs(qn_kernel *k, int in_parts, qn_error *err) {
    qn_status status = QN_OK;
    for (uint32_t i = 0; i < k->source.parts && status == QN_OK; i++) {
        qn__user_bound *b = &k->part[i];
        if (k->source.part[i].use >= QN__USER_OUTPUT || b->in_parts != in_parts)
            continue;
        if (!in_parts && b->array.data)
            status = qn__user_array_digest(&b->array, NULL, b->digest, err);
        if (status != QN_OK || !*b->digest || strcmp(b->digest, b->wanted) == 0)
            continue;
        qn__fail(err, QN_MISMATCH, "the array for \"%s\" is not the one that the recipe names",
                 k->source.part[i].name);
        qn__at(err, "%s", b->path ? b->path : k->name);
        status = qn__remedy(err, QN_MISMATCH, "name the right one: add `kernel.input` %s=FILE.npy",
                            k->source.part[i].name);
    }
    return status;
}

/* ------------------------------------------------------------------ before the work */

typedef struct run {
    qn_kernel *kernel;
    qn_kernel_options options;
    int is_replay, digests; /* digests: those of all arrays are wanted */
    qn__user_files files;
    qn_compute compute; /* of the team */
    qn__team *team;
    qn__user_total *total; /* of each part */
} run;

typedef qn_status step(run *r, qn_error *err);

static qn_status take_steps(run *r, step *const *steps, qn_error *err) {
    qn_status status = QN_OK;
    for (; *steps && status == QN_OK; steps++)
        status = (*steps)(r, err);
    return status;
}

/* Copies the options, and what they say of devices and ranks. */
static qn_status take_options(const char *function, const qn_kernel_options *options, run *r,
                              qn_error *err) {
    qn_kernel_options *own = &r->options;
    qn_kernel *k = r->kernel;
    const qn__sized what = {function, "options", "qn_kernel_options", sizeof *own};
    qn_kernel_options_init(own);
    qn_status status = options ? qn__sized_take(&what, options, own, err) : QN_OK;
    if (status == QN_OK)
        status = qn__host_team_compute(function, own->compute, own->threads, &k->compute, err);
    if (status != QN_OK)
        return status;
    if (own->devices)
        k->compute.devices = own->devices;
    if (qn_cluster_ranks(k->compute.cluster) < 2)
        k->compute.cluster = NULL;
    atomic_store(&k->cluster, k->compute.cluster);
    r->digests = r->is_replay || own->recipe;
    r->files = (qn__user_files){.kernel = k, .recipe = own->recipe};
    return QN_OK;
}

/* A replay writes no file. */
static qn_status open_files(run *r, qn_error *err) {
    const qn_status status = r->is_replay ? QN_OK : qn__user_files_open_own(&r->files, err);
    if (status != QN_OK || r->is_replay || !qn_cluster_is_writer(r->kernel->compute.cluster))
        return status;
    return qn__user_files_open(&r->files, err);
}

static qn_status compare_inputs(run *r, qn_error *err) {
    return r->is_replay ? check_inputs(r->kernel, 0, err) : QN_OK;
}

static qn_status check_settings(run *r, qn_error *err) {
    qn_kernel *k = r->kernel;
    const uint64_t iterations = k->is_recipe ? k->iterations : r->options.iterations;
    qn_status status = check_options(&r->options, &k->compute, err);
    if (status == QN_OK)
        status = qn__user_iterations_set(k, iterations, err);
    return status;
}

static qn_status set_checkpoint(run *r, qn_error *err) {
    if (r->kernel->divided && r->options.checkpoint) {
        qn__fail(err, QN_UNSUPPORTED, "a run with arrays in parts writes no checkpoint");
        qn__at(err, "`kernel.checkpoint`");
        return qn__remedy(err, QN_UNSUPPORTED, "leave it out, or give every rank the whole arrays");
    }
    return qn__user_checkpoint_set(r->kernel, &r->options, err);
}

static qn_status find_space(run *r, qn_error *err) {
    qn_kernel *k = r->kernel;
    uint64_t shape[QN_KERNEL_DIMENSIONS];
    qn_status status = qn__user_space_find(k, shape, err);
    if (status == QN_OK)
        status = qn__user_overlaps_check(k, err);
    if (status == QN_OK)
        status = qn__user_paths_check(k, err);
    if (status == QN_OK)
        fill_job(k, shape, r->options.grain);
    return status == QN_OK ? qn__user_divide_space(k, shape, err) : status;
}

static qn_status choose_devices(run *r, qn_error *err) {
    return qn__user_devices_choose(r->kernel, err);
}

static qn_status make_arrays(run *r, qn_error *err) {
    qn_kernel *k = r->kernel;
    fill_report(k);
    const qn_status status = qn__user_outputs_make(k, k->report.shape, err);
    if (status != QN_OK)
        return status;
    place_arrays(k);
    return qn__user_series_make(k, err);
}

/* A checkpoint names its inputs by their digests, and ranks compare theirs. */
static qn_status read_checkpoint(run *r, qn_error *err) {
    qn_kernel *k = r->kernel;
    qn_status status = k->compute.cluster || k->checkpoint.path ? digest(k, 1, 0, err) : QN_OK;
    if (status == QN_OK)
        status = qn__user_checkpoint_read(k, err);
    k->report.resumed_from = k->checkpoint.from + k->checkpoint.items;
    k->job.begin = (int64_t)k->checkpoint.items;
    qn__user_iterate_from(k);
    return status;
}

static step *const preparation[] = {compare_inputs, open_files,      check_settings,
                                    set_checkpoint, find_space,      choose_devices,
                                    make_arrays,    read_checkpoint, NULL};

/* ------------------------------------------------------------------ the work */

/* Threads that would have nothing to do are not made. */
static qn_status open_team(run *r, qn_error *err) {
    qn_kernel *k = r->kernel;
    r->compute = k->compute;
    if (k->divided) /* each rank computes alone */
        r->compute.cluster = NULL;
    if (!r->compute.cluster && qn__user_job_items(&k->job) <= qn__user_job_grain(&k->job))
        r->compute.threads = 1;
    const qn_status status = qn__user_team_open(k, &r->compute, &r->team, err);
    if (status == QN_OK)
        qn__user_devices_report(k, r->team);
    return status;
}

static qn_status open_totals(run *r, qn_error *err) {
    r->total = qn__alloc(QN__USER_PARTS, sizeof *r->total, err);
    return r->total ? qn__user_totals_open(&r->kernel->source, r->total, err) : QN_MEMORY;
}

static qn_status iterate(run *r, qn_error *err) {
    qn_kernel *k = r->kernel;
    qn_status status = qn__user_watch_begin(k, &r->options, r->team, err);
    const double begin = qn__now();
    if (status == QN_OK)
        status = qn__user_iterate(k, r->team, r->total, err);
    k->report.seconds = qn__now() - begin;
    qn__user_devices_report(k, r->team);
    return status;
}

static qn_status report(run *r, qn_error *err) {
    const qn_status status = take_results(r->kernel, r->total, err);
    return status == QN_OK ? qn__user_watch_report(r->kernel, r->team, err) : status;
}

static step *const work[] = {open_team, open_totals, iterate, report, NULL};

/* Releases what the work made, the team last: of ranks the others fail with its status. The ranks
 * have compared the digests of the inputs before. */
static qn_status end_work(run *r, qn_status status, qn_error *err) {
    qn__user_watch_end(r->kernel, status == QN_OK || status == QN_INTERRUPTED);
    if (r->total)
        qn__user_totals_close(r->total);
    qn__free(r->total);
    const qn_kernel *k = r->kernel;
    if (status == QN_OK && r->digests)
        status = digest(r->kernel, !k->compute.cluster, 1, err);
    status = qn__host_team_close(r->team, &k->compute, status, err);
    if (status == QN_OK && k->divided)
        status = r->digests ? qn__user_divide_digest(r->kernel, status, err)
                            : qn__parts_agree(&k->divided->parts, status, err);
    return status;
}

/* ------------------------------------------------------------------ the run */

static void begin_run(qn_kernel *k) {
    k->has_run = 0;
    atomic_store(&k->stop, 0);
    qn__remote_hurry_end(&k->hurries);
    k->checkpoint.lock.file = -1;
    k->report = (qn_kernel_report){.size = sizeof k->report, .dimensions = k->source.dimensions};
}

static void end_run(run *r) {
    qn__user_checkpoint_end(r->kernel);
    qn__user_files_close(&r->files);
    qn__user_divide_close(r->kernel);
    atomic_store(&r->kernel->cluster, NULL);
    qn__remote_hurry_end(&r->kernel->hurries);
}

/* `err` is not NULL. Among ranks each one gets to qn__user_agree, also with an error. */
static qn_status run_kernel(run *r, qn_error *err) {
    qn_kernel *k = r->kernel;
    begin_run(k);
    qn_status status = qn__user_divide_open(k, err);
    if (status != QN_OK) { /* on all ranks */
        end_run(r);
        return status;
    }
    status = take_steps(r, preparation, err);
    status = qn__user_agree(k, &r->options, r->digests, status, err);
    if (status == QN_OK)
        status = end_work(r, take_steps(r, work, err), err);
    k->has_run = status == QN_OK;
    if (status == QN_OK && !r->is_replay)
        status = qn__user_files_write(&r->files, err);
    end_run(r);
    return status;
}

qn_status qn_kernel_run(qn_kernel *k, const qn_kernel_options *options, qn_error *err) {
    QN__OWN_FLOATS;
    QN__NEED_AS(k, "kernel", err);
    qn_error unwanted;
    run r = {.kernel = k};
    err = err ? err : &unwanted;
    const qn_status status = take_options(__func__, options, &r, err);
    return status == QN_OK ? run_kernel(&r, err) : status;
}

void qn_kernel_stop(qn_kernel *k) {
    if (!k)
        return;
    atomic_store(&k->stop, 1);
    qn__remote_hurry(&k->hurries);
    qn_cluster_stop(atomic_load(&k->cluster));
}

/* ------------------------------------------------------------------ after the run */

static qn_status check_run(const qn_kernel *k, qn_error *err) {
    if (k->has_run)
        return QN_OK;
    qn__fail(err, QN_USAGE, "the kernel has no results, because no run has succeeded");
    return qn__remedy(err, QN_USAGE, "call qn_kernel_run first");
}

qn_status qn_kernel_report_get(const qn_kernel *k, qn_kernel_report *report, qn_error *err) {
    QN__OWN_FLOATS;
    QN__NEED_AS(k, "kernel", err);
    QN__NEED(report, err);
    qn_status status = qn__sized_check(QN__SIZED("report", qn_kernel_report), report, err);
    if (status == QN_OK)
        status = check_run(k, err);
    if (status == QN_OK)
        qn__sized_give(QN__SIZED("report", qn_kernel_report), &k->report, report, report->size);
    return status;
}

qn_status qn_kernel_result_get(const qn_kernel *k, const char *name, qn_kernel_result *result,
                               qn_error *err) {
    QN__OWN_FLOATS;
    QN__NEED_AS(k, "kernel", err);
    QN__NEED(name, err);
    QN__NEED(result, err);
    qn_status status = qn__sized_check(QN__SIZED("result", qn_kernel_result), result, err);
    if (status == QN_OK)
        status = check_run(k, err);
    if (status != QN_OK)
        return status;
    const uint32_t i = qn__user_part_named(k, name);
    if (i == QN__USER_PARTS || !qn__user_use_is_result(k->source.part[i].use))
        return qn__fail(err, QN_USAGE, "the kernel has no result \"%s\"", name);
    const qn__user_bound *b = &k->part[i];
    qn_kernel_result own = {.size = sizeof own,
                            .digest = b->digest,
                            .path = b->path,
                            .value = b->has_value ? b->text : NULL,
                            .count = b->count};
    if (b->wants_series) {
        own.digest = b->series_digest;
        own.path = b->series_path;
        own.series = b->series.data;
        own.series_type = qn__user_type_numpy(b->series.type);
    }
    memcpy(own.item, b->item, sizeof own.item);
    qn__sized_give(QN__SIZED("result", qn_kernel_result), &own, result, result->size);
    return QN_OK;
}

/* ------------------------------------------------------------------ replay */

static qn_status differs(const qn_kernel *k, uint32_t part, const char *before, const char *now,
                         qn_error *err) {
    qn__fail(err, QN_DIFFERS, "the replay differs: \"%s\" is %s in the recipe, and %s now",
             k->source.part[part].name, before, now);
    return qn__remedy(err, QN_DIFFERS,
                      "either the recipe was changed, or a compiler or processor computed wrongly: "
                      "set CC to another compiler to find out");
}

static qn_status compare(const qn_kernel *k, qn_error *err) {
    for (uint32_t i = 0; i < k->source.parts; i++) {
        const qn__user_bound *b = &k->part[i];
        const qn__user_part *p = &k->source.part[i];
        if (qn__user_part_is_written(p) && strcmp(b->digest, b->wanted) != 0)
            return differs(k, i, b->wanted, b->digest, err);
        if (p->use < QN__USER_SUM || p->bins > 0)
            continue;
        const char *before = b->expects == 1 ? b->expected : "nothing";
        const char *now = b->has_value ? b->text : "nothing";
        if (strcmp(before, now) != 0)
            return differs(k, i, before, now, err);
        if (b->has_value && memcmp(b->item, b->expected_item, sizeof b->item) != 0)
            return differs(k, i, "of another item", "of this one", err);
        if (b->wants_series && strcmp(b->series_digest, b->series_wanted) != 0)
            return differs(k, i, "of another series", "of this one", err);
    }
    return QN_OK;
}

qn_status qn_kernel_replay(qn_kernel *k, const qn_kernel_options *options, qn_error *err) {
    QN__OWN_FLOATS;
    QN__NEED_AS(k, "kernel", err);
    qn_error unwanted;
    run r = {.kernel = k, .is_replay = 1};
    err = err ? err : &unwanted;
    if (!k->is_recipe) {
        qn__fail(err, QN_USAGE, "the kernel was not opened from a recipe");
        return qn__remedy(err, QN_USAGE, "open it with qn_kernel_from_recipe");
    }
    qn_status status = take_options(__func__, options, &r, err);
    if (status == QN_OK)
        status = run_kernel(&r, err);
    if (status == QN_OK)
        status = check_inputs(k, 1, err);
    return status == QN_OK ? compare(k, err) : status;
}
