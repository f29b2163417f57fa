/* What a training reports of itself. */
#include "run/trainer_state.h"
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* The end of run.json, for a report that is complete. */
static qn_status end_record(qn_train *t, const qn_train_report *report, qn_error *err) {
    qn_model *model;
    if (t->job.step < t->job.steps)
        return qn__record_end(t->record, report, NULL, "interrupted", err);
    qn_status status = qn_train_model(t, &model, err);
    if (status == QN_OK)
        status = qn__record_end(t->record, report, qn_model_digest(model), "finished", err);
    qn_model_free(model);
    return status;
}

static qn_status tell_unrecorded(const qn_train *t, qn_error *err) {
    if (err && t->unrecorded.status != QN_OK)
        *err = t->unrecorded;
    return t->unrecorded.status;
}

const qn_worker_report *qn_train_workers(qn_train *t, uint32_t *count) {
    double rate;
    return qn__team_report(t->job.team, t->seconds, count, &rate);
}

/* ", " between names; what does not fit is left out. */
static void add_name(qn_rank_report *r, const char *name) {
    const size_t used = strlen(r->worker_names), room = sizeof r->worker_names - used;
    if (used + strlen(name) + 3 <= sizeof r->worker_names)
        snprintf(r->worker_names + used, room, "%s%s", used ? ", " : "", name);
}

/* What this rank says of itself; `rate` is that of its workers together. */
static void describe_rank(const qn_train_report *report, double rate, qn_rank_report *r) {
    double weighted = 0, weights = 0;
    memset(r, 0, sizeof *r);
    if (gethostname(r->host, sizeof r->host - 1) != 0)
        r->host[0] = 0;
    r->workers = report->workers;
    r->rate = rate;
    for (uint32_t i = 0; i < report->workers; ++i) {
        const qn_worker_report *w = &report->worker[i];
        add_name(r, w->name);
        r->items += w->items;
        weighted += w->rate * w->busy;
        weights += w->rate;
    }
    r->busy = weights > 0 ? weighted / weights : 0;
}

qn_status qn_train_report_get(qn_train *t, qn_train_report *report, qn_error *err) {
    double rate = 0;
    memset(report, 0, sizeof *report);
    qn_status status = qn__train_failed(t, err);
    if (status != QN_OK)
        return status;
    report->seconds = t->seconds;
    /* Before the scores, whose time is no part of T. */
    report->worker = qn__team_report(t->job.team, t->seconds, &report->workers, &rate);
    describe_rank(report, rate, t->ranks);
    report->ranks = 1;
    report->rank = t->ranks;
    status = qn__train_score(t, err);
    if (status != QN_OK)
        return status;
    report->seconds_training = t->training;
    report->seconds_choosing = qn__team_trial_seconds(t->job.team);
    report->steps_repeated = qn__team_repeated(t->job.team);
    report->bound = rate > 0 ? (double)t->items / rate : 0;
    report->seconds_to_first_step = t->first_step - t->opened;
    report->items = t->items;
    report->steps = t->steps;
    report->resumed_from = t->resumed_from;
    report->train = t->train_score;
    report->valid = t->valid_score;
    report->test = t->test_score;
    report->classes = t->job.layer[t->job.program.layers - 1].out;
    report->confusion = t->confusion;
    status = t->record ? end_record(t, report, err) : QN_OK;
    return status == QN_OK ? tell_unrecorded(t, err) : status;
}
