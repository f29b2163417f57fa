/* The page about a training at its end. */
#include "base/files/folder_make.h"
#include "base/memory.h"
#include "report/page/report_write.h"
#include "train/trainer_state.h"
#include <string.h>

/* The items whose mistakes are shown: those that the training did not see, where there are any. */
typedef struct shown {
    const qn_data *data;
    qn_data *split[2]; /* made for this, or NULL */
    const char *name;
} shown;

static qn_status choose(const qn_train *t, shown *s, qn_error *err) {
    const qn__recipe *recipe = &t->job.recipe;
    *s = (shown){t->sets.given.test, {NULL}, "the test set"};
    if (!s->data)
        *s = (shown){t->sets.given.valid, {NULL}, "the validation set"};
    if (s->data)
        return QN_OK;
    *s = (shown){t->sets.given.train, {NULL}, "the training items"};
    /* Where items are dropped, the part for validation is one of those that are left. */
    if (!(recipe->valid > 0) || recipe->missing == QN__MISSING_DROP)
        return QN_OK;
    const qn_status status = qn__data_split(t->sets.given.train, recipe->valid, recipe->seed,
                                            &s->split[0], &s->split[1], err);
    s->data = s->split[1];
    s->name = "the validation items";
    return status;
}

/* The record as it is now, of this run or continued from an earlier one. */
static qn_status read_story(const qn_train *t, const qn_train_report *report, const char *digest,
                            qn__past_run *run, qn_error *err) {
    qn__text about = {0};
    if (t->record.dir && t->record.incomplete.status == QN_OK)
        return qn__past_run_read(t->record.dir, run, err);
    qn__record_about(t->record.story, report, digest,
                     t->job.step < t->job.steps ? "interrupted" : "finished", &about);
    const qn_status status =
        qn__past_run_parse("the record", &about, qn__record_metrics(t->record.story), run, err);
    qn__text_release(&about);
    return status;
}

static qn_status write_page(const qn_train *t, const qn_train_report *report, qn_model *model,
                            qn_error *err) {
    /* Its predictions are the same on any device. */
    const qn_compute compute = {.size = sizeof compute,
                                .threads = t->options.compute.threads,
                                .isa = strcmp(t->isa, "auto") == 0 ? NULL : t->isa,
                                .devices = "cpu"};
    const char *name = "";
    qn_report_options o;
    qn__past_run run = {.epochs = 0};
    shown s;
    qn_report_options_init(&o);
    o.runs = 1;
    o.path = t->record.page;
    o.plots = t->record.plots;
    o.trace = t->record.incomplete.status == QN_OK ? t->trace.path : NULL;
    o.model = model;
    o.compute = &compute;
    qn_status status = choose(t, &s, err);
    o.data = model ? s.data : NULL;
    if (status == QN_OK)
        status = read_story(t, report, model ? qn_model_digest(model) : NULL, &run, err);
    if (status == QN_OK)
        status = qn__report_of(&o, &run, &name, s.name, &t->owner, err);
    qn__past_run_release(&run);
    qn_data_close(s.split[0]);
    qn_data_close(s.split[1]);
    return status;
}

qn_status qn__train_write_page(qn_train *t, const qn_train_report *report, qn_error *err) {
    qn_model *model = NULL;
    if (!t->record.story)
        return QN_OK;
    qn_status status = t->job.step == t->job.steps ? qn_train_model(t, &model, err) : QN_OK;
    if (status == QN_OK)
        qn__train_store(t, report, model ? qn_model_digest(model) : NULL,
                        model ? "finished" : "interrupted");
    if (status == QN_OK && (t->record.page || t->record.plots))
        status = write_page(t, report, model, err);
    if (status == QN_BUSY && !qn__train_is_writer(t))
        status = QN_OK; /* the next reduction returns the reason */
    qn_model_free(model);
    return status;
}

qn_status qn__train_open_page(qn_train *t, const qn_train_options *o, qn_error *err) {
    if (o->report && !(t->record.page = qn__copy_text(o->report, err)))
        return QN_MEMORY;
    if (o->plots && !(t->record.plots = qn__copy_text(o->plots, err)))
        return QN_MEMORY;
    if (o->plots && qn__train_is_writer(t) && qn__folder_make(o->plots, err) != QN_OK)
        return QN_IO;
    return QN_OK;
}
