/* The report of a training. */
#include "base/argument.h"
#include "base/memory.h"
#include "base/sized.h"
#include "base/system/clock.h"
#include "base/system/float_state.h"
#include "train/precision.h"
#include "train/trainer_state.h"
#include <math.h>

/* The end of run.json, from a complete report. */
static qn_status end_record(qn_train *t, const qn_train_report *report, qn_error *err) {
    qn_model *model;
    if (t->job.step < t->job.steps)
        return qn__record_end(t->record.folder, report, NULL, "interrupted", err);
    qn_status status = qn_train_model(t, &model, err);
    if (status == QN_OK)
        status = qn__record_end(t->record.folder, report, qn_model_digest(model), "finished", err);
    qn_model_free(model);
    return status;
}

static qn_status report_unrecorded(const qn_train *t, qn_error *err) {
    if (err && t->record.incomplete.status != QN_OK)
        *err = t->record.incomplete;
    return t->record.incomplete.status;
}

const qn_worker_report *const *qn_train_workers(qn_train *t, uint32_t *count) {
    QN__OWN_FLOATS;
    double rate;
    uint32_t unwanted;
    count = count ? count : &unwanted;
    *count = 0;
    if (!t || !qn__train_is_ours(t))
        return NULL;
    const qn_worker_report *worker = qn__team_report(t->job.team, t->clock.seconds, count, &rate);
    for (uint32_t i = 0; i < *count; ++i)
        t->report.own_worker_at[i] = &worker[i];
    return t->report.own_worker_at;
}

qn_status qn_train_memory(const qn_train *train, qn_memory *memory, qn_error *err) {
    QN__OWN_FLOATS;
    QN__NEED(train, err);
    QN__NEED(memory, err);
    const qn_status status = qn__sized_check(QN__SIZED("memory", qn_memory), memory, err);
    if (status != QN_OK)
        return status;
    const qn__memory_need *need = &train->memory;
    const qn_memory own = {.size = sizeof own,
                           .all = need->all,
                           .batch = need->batch,
                           .parameters = need->parameters,
                           .program = need->program,
                           .parts = (uint64_t)need->parts,
                           .kept = need->kept};
    qn__sized_give(QN__SIZED("memory", qn_memory), &own, memory, memory->size);
    return QN_OK;
}

double qn__train_waiting(const qn_train *t) {
    qn__rank_traffic traffic;
    if (!t->cluster || t->clock.run_begun <= 0)
        return t->clock.waited;
    qn__cluster_traffic(t->cluster, &traffic);
    return traffic.waiting - t->clock.waiting_at;
}

/* ---------------------------------------------------------------------------------------- ranks */

qn_status qn__train_say(qn_train *t, qn_error *err) {
    const uint32_t ranks = qn_cluster_ranks(t->cluster);
    qn_rank_report r;
    if (!t->cluster)
        return QN_OK;
    qn__last_report *all = qn__alloc(ranks, sizeof *all, err);
    if (!all)
        return QN_MEMORY;
    qn__rank_describe(t->cluster, t->job.team,
                      t->clock.seconds +
                          (t->clock.run_begun > 0 ? qn__now() - t->clock.run_begun : 0),
                      qn__train_waiting(t), &r);
    const qn__last_report own = {.items = r.items,
                                 .steps = t->done.steps,
                                 .items_per_second = r.items_per_second,
                                 .busy = r.busy,
                                 .waiting = r.waiting};
    const qn_status status = qn__cluster_gather(t->cluster, &own, sizeof own, all, err);
    for (uint32_t i = 0; i < ranks && status == QN_OK; ++i)
        if (all[i].steps > 0)
            t->report.last[i] = all[i];
    qn__free(all);
    return status;
}

/* For a lost rank, its last report. */
static void describe_lost(qn_rank_report *r, const qn__last_report *last) {
    r->items = last->items;
    r->items_per_second = last->items_per_second;
    r->busy = last->busy;
    r->waiting = last->waiting;
}

/* Workers and ranks; *rate: the sum of the workers' items per second, each weighted by its part of
 * the steps. */
static qn_status report_ranks(qn_train *t, qn_train_report *report, double *rate, qn_error *err) {
    qn__rank_reports *all = &t->report.ranks;
    const qn_status status = qn__rank_reports_exchange(all, t->cluster, t->job.team,
                                                       t->clock.seconds, qn__train_waiting(t), err);
    if (status != QN_OK)
        return status;
    *rate = 0;
    for (uint32_t r = 0; r < all->ranks; ++r) {
        const qn__last_report *last = &t->report.last[r];
        if (!all->rank[r].lost) {
            *rate += all->rank[r].items_per_second;
            continue;
        }
        describe_lost(&all->rank[r], last);
        if (t->done.steps > 0)
            *rate += last->items_per_second * ((double)last->steps / (double)t->done.steps);
    }
    report->workers = all->workers;
    report->steps_repeated = all->repeated;
    report->worker = all->worker_at;
    report->ranks = all->ranks;
    report->rank = all->rank_at;
    return QN_OK;
}

typedef struct ending {
    qn_train *train;
    const qn_train_report *report;
} ending;

static qn_status end_record_of(void *context, qn_error *err) {
    const ending *e = context;
    qn_train *t = e->train;
    const uint64_t epochs = t->job.step / t->job.steps_per_epoch;
    if (!qn__train_may_record(t) && !t->record.folder)
        return QN_OK; /* it had ended before */
    qn_status status = qn__train_take_record(t, epochs, err);
    if (status == QN_OK)
        status = end_record(t, e->report, err);
    return qn__train_recorded(t, status, err) ? status : QN_OK;
}

/* Once for a step: the writer rank computes and sends it. A failed device leaves it unset. */
static qn_status look_at_rounding(qn_train *t, qn_error *err) {
    if (t->job.program.arith == QN__ARITH_F32 || !qn__train_is_writer(t) ||
        (t->rounding.shares.bits && t->rounding.step == t->job.step))
        return QN_OK;
    qn_status status = t->job.kept.step == t->job.step ? QN_OK : qn__train_job_pull(&t->job, err);
    if (status == QN_OK)
        status = qn__precision_of(&t->job, &t->rounding.shares, err);
    t->rounding.step = t->job.step;
    return status;
}

/* The record and the page. One call for both: where the record fails, no rank waits for the page.
 */
static qn_status write_files_of(void *context, qn_error *err) {
    const ending *e = context;
    const qn_status status = e->train->record.dir ? end_record_of(context, err) : QN_OK;
    return status == QN_OK ? qn__train_write_page(e->train, e->report, err) : status;
}

static qn_status write_files(qn_train *t, const qn_train_report *report, qn_error *err) {
    ending end = {t, report};
    /* A file of runs may be wanted on one rank alone. */
    if (!t->record.dir && !t->cluster && !t->record.story)
        return QN_OK;
    return qn__by_writer(t->cluster, write_files_of, &end, err);
}

static qn_status fill(qn_train *t, qn_train_report *report, qn_error *err) {
    double rate = 0;
    qn_status status = qn__train_failed(t, err);
    if (status != QN_OK)
        return status;
    report->seconds = t->clock.seconds;
    /* before the scores, whose time is not part of T */
    status = report_ranks(t, report, &rate, err);
    if (status == QN_OK)
        status = qn__train_score(t, err);
    if (status == QN_OK)
        status = qn__train_evaluate(t, err);
    if (status == QN_OK)
        status = look_at_rounding(t, err);
    if (status != QN_OK)
        return qn__train_fail_all(t, status, err);
    report->seconds_training = t->clock.training;
    report->seconds_choosing = qn__team_trial_seconds(t->job.team);
    report->bound = rate > 0 ? (double)t->done.items / rate : 0;
    report->seconds_to_first_step = t->clock.first_step - t->clock.opened;
    report->items = t->done.items;
    report->steps = t->done.steps;
    report->resumed_from = t->done.resumed_from;
    report->train = t->scores.train;
    report->valid = t->scores.valid;
    report->test = t->scores.test;
    report->real = t->job.recipe.task == QN__TASK_REGRESS;
    report->next = t->job.program.next;
    report->weighted = t->job.items.weights != NULL;
    report->valid_weighted = t->sets.valid == t->job.items.valid && t->job.items.weights != NULL;
    if (t->job.full.lbfgs) {
        const qn__lbfgs *lbfgs = t->job.full.lbfgs;
        report->iterations = t->job.step;
        report->converged = lbfgs->known && qn__lbfgs_converged(lbfgs);
        report->largest_slope = lbfgs->known ? lbfgs->largest : (double)NAN;
    }
    report->classes = report->real ? 0 : qn__program_classes(&t->job.program);
    report->confusion = t->scores.confusion;
    report->valid_evaluation = t->sets.judged[0].evaluation;
    report->test_evaluation = t->sets.judged[1].evaluation;
    if (t->job.recipe.table) {
        report->class_names = t->job.recipe.table->classes;
        report->class_name = (const char *const *)t->job.recipe.table->class_name;
    }
    t->rounding.shares.size = sizeof t->rounding.shares;
    report->rounding = &t->rounding.shares;
    status = write_files(t, report, err);
    return status == QN_OK ? report_unrecorded(t, err) : status;
}

qn_status qn_train_report_get(qn_train *t, qn_train_report *report, qn_error *err) {
    QN__OWN_FLOATS;
    QN__NEED_AS(t, "train", err);
    QN__NEED(report, err);
    const qn__sized *what = QN__SIZED("report", qn_train_report);
    qn_train_report own = {.size = sizeof own};
    qn_status status = qn__sized_check(what, report, err);
    if (status == QN_OK)
        status = qn__train_enter(t, __func__, err);
    if (status != QN_OK)
        return status;
    status = qn__train_leave(t, fill(t, &own, err));
    qn__sized_give(what, &own, report, report->size);
    return status;
}
