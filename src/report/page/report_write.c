#include "report/page/report_write.h"

#include "base/argument.h"
#include "base/files/folder_make.h"
#include "base/markup.h"
#include "base/memory.h"
#include "base/sized.h"
#include "base/system/float_state.h"
#include "data/images/drawn.h"
#include "report/page/page.h"
#include "report/record/run_open.h"
#include <inttypes.h>
#include <string.h>

enum { MOST_MISTAKES = 1000, MOST_REPEATS = 100, MISTAKES = 24, SEED = 1 };

static const qn_report_options defaults = {
    .size = sizeof(qn_report_options), .mistakes = MISTAKES, .seed = SEED};

void qn_report_options_init(qn_report_options *options) {
    if (options)
        *options = defaults;
}

/* --------------------------------------------------------------------------------------- options
 */

static qn_status refuse(qn_error *err, const char *remedy, const char *what) {
    qn__fail(err, QN_USAGE, "%s", what);
    return qn__remedy(err, QN_USAGE, "%s", remedy);
}

static qn_status check(const qn_report_options *o, qn_error *err) {
    if (!o->path && !o->plots)
        return refuse(err, "name a file with `report.path`, or a folder with `report.plots`",
                      "a report needs a place");
    if (o->runs < 1 || o->runs > QN__PAGE_RUNS)
        return refuse(err, "name one run, or up to 32 to compare", "a report is of 1 to 32 runs");
    if (o->runs > 1 && o->model)
        return refuse(err, "leave `report.model` out, or name one run",
                      "a comparison of runs takes no model");
    if (o->runs > 1 && o->trace)
        return refuse(err, "leave `report.trace` out, or name one run",
                      "a comparison of runs takes no trace");
    if (o->data && !o->model)
        return refuse(err, "name the model with `report.model`, or leave `report.data` out",
                      "items need a model that predicts them");
    if (o->importance > 0 && !o->data)
        return refuse(err, "name items with labels with `report.data`",
                      "the importance of columns needs items");
    if (o->mistakes > MOST_MISTAKES)
        return refuse(err, "give `report.mistakes` at most 1000",
                      "too many mistakes were asked for");
    if (o->importance > MOST_REPEATS)
        return refuse(err, "give `report.importance` at most 100",
                      "too many shuffles of each column were asked for");
    if (o->compute && o->compute->size > 0 && o->compute->cluster)
        return refuse(err, "make the report on one rank", "a report is made without other ranks");
    return QN_OK;
}

/* The model of the run, where its record says which that is. */
static qn_status check_model(const qn_model *model, const qn__past_run *run, qn_error *err) {
    const char *digest = qn__past_run_text(run, "model");
    if (!model || !*digest || strcmp(digest, qn_model_digest(model)) == 0)
        return QN_OK;
    qn__fail(err, QN_MISMATCH, "the model is not the one that the run made");
    qn__at(err, "%.64s in the record, %.64s of the model", digest, qn_model_digest(model));
    return qn__remedy(err, QN_MISMATCH, "give the model file of this run (`report.model`)");
}

/* ----------------------------------------------------------------------------------------- writing
 */

static qn_status judge(const qn_report_options *o, qn__page *page, qn__judged *judged,
                       qn__class_maps *maps, qn__importance **columns, qn_error *err) {
    if (!o->data ||
        qn_model_answers(o->model, NULL, NULL)) /* items are not right or wrong as a whole */
        return QN_OK;
    qn_status status = qn__judge(o->model, o->data, o->compute, o->mistakes, judged, err);
    page->judged = judged;
    if (status == QN_OK && !judged->real && qn__drawn_check(judged->data, NULL) == QN_OK) {
        status = qn__class_maps_make(judged, o->compute, maps, err);
        page->maps = maps;
    }
    if (status == QN_OK && o->importance > 0)
        status = qn__importance_of(judged, o->compute, o->importance, o->seed, columns,
                                   &page->column_items, err);
    page->columns = *columns;
    page->column_repeats = o->importance;
    return status;
}

qn_status qn__report_of(const qn_report_options *o, const qn__past_run *run,
                        const char *const *name, const char *set, const qn__owner *owner,
                        qn_error *err) {
    qn__judged judged = {0};
    qn__class_maps maps = {.rows = 0};
    qn__importance *columns = NULL;
    qn__page page = {.run = run,
                     .name = name,
                     .runs = o->runs,
                     .model = o->model,
                     .judged_name = set,
                     .trace = o->trace,
                     .plots = o->plots,
                     .owner = owner,
                     .err = err};
    qn_status status = check_model(o->model, run, err);
    if (status == QN_OK && o->plots)
        status = qn__folder_make(o->plots, err);
    if (status == QN_OK)
        status = judge(o, &page, &judged, &maps, &columns, err);
    if (status == QN_OK)
        status = qn__page_make(&page);
    if (status == QN_OK && o->path)
        status = qn__markup_write(&page.html, o->path, owner, err);
    qn__text_release(&page.html);
    qn__class_maps_release(&maps);
    qn__judged_release(&judged);
    qn__free(columns);
    return status;
}

static qn_status write_all(const qn_report_options *o, qn_error *err) {
    qn__past_run run[QN__PAGE_RUNS] = {{.epochs = 0}};
    char *name[QN__PAGE_RUNS] = {NULL};
    qn_status status = QN_OK;
    for (uint32_t r = 0; r < o->runs && status == QN_OK; ++r) {
        status = qn__run_open(o->run[r], &run[r], &name[r], err);
    }
    if (status == QN_OK)
        status = qn__report_of(o, run, (const char *const *)name, "the given items", NULL, err);
    for (uint32_t r = 0; r < o->runs; ++r) {
        qn__past_run_release(&run[r]);
        qn__free(name[r]);
    }
    return status;
}

qn_status qn_report_write(const qn_report_options *options, qn_error *err) {
    QN__OWN_FLOATS;
    QN__NEED(options, err);
    qn_error unwanted;
    qn_report_options own = defaults;
    err = err ? err : &unwanted;
    qn_status status = qn__sized_take(QN__SIZED("options", qn_report_options), options, &own, err);
    if (status == QN_OK && (own.runs == 0 || !own.run))
        return qn__fail_null(err, __func__, "options->run");
    if (status == QN_OK)
        status = check(&own, err);
    for (uint32_t r = 0; status == QN_OK && r < own.runs; ++r)
        if (!own.run[r])
            return qn__fail_null_at(err, __func__, "options->run", r, "");
    return status == QN_OK ? write_all(&own, err) : status;
}
