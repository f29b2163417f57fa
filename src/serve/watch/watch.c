/* The public calls, and what folders and rows have in common. */
#include "base/argument.h"
#include "base/files/folder_make.h"
#include "base/files/remote.h"
#include "base/memory.h"
#include "base/sized.h"
#include "base/system/float_state.h"
#include "serve/watch/watch_masks.h"
#include "serve/watch/watch_state.h"
#include <errno.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <unistd.h>

enum { LATENCY = 20000000 };

void qn_watch_options_init(qn_watch_options *options) {
    if (options)
        *options = (qn_watch_options){.size = sizeof *options, .latency = LATENCY};
}

/* ------------------------------------------------------------------------------- making, running
 */

static qn_status refuse_option(qn_error *err, const char *option, const char *what,
                               const char *remedy) {
    qn__fail(err, QN_USAGE, "%s", what);
    qn__at(err, "%s", option);
    return qn__remedy(err, QN_USAGE, "%s", remedy);
}

static int is_folder(const char *path) {
    struct stat info;
    return stat(path, &info) == 0 && S_ISDIR(info.st_mode);
}

static int are_same(const char *a, const char *b) {
    struct stat one, other;
    return stat(a, &one) == 0 && stat(b, &other) == 0 && one.st_dev == other.st_dev &&
           one.st_ino == other.st_ino;
}

static qn_status check_move(const qn_watch_options *o, qn_error *err) {
    if (qn__remote_is(o->path))
        return refuse_option(err, "`watch.move_done`", "objects of a store are not moved",
                             "leave it out: the table says what is done, and rules of the bucket "
                             "can remove old objects");
    if (!is_folder(o->path))
        return refuse_option(err, "`watch.move_done`", "rows of a file cannot be moved",
                             "leave it out, or watch a folder");
    if (!is_folder(o->move_done))
        return refuse_option(err, "`watch.move_done`", "this is not a folder", "make it first");
    return are_same(o->path, o->move_done)
               ? refuse_option(err, "`watch.move_done`", "it is the folder that is watched",
                               "name another one, which may be inside it")
               : QN_OK;
}

static qn_status check_masks(const qn_model *model, const qn_watch_options *o, qn_error *err) {
    const int has = !o->layer && qn__watch_has_masks(model);
    if (has && !o->masks)
        return refuse_option(err, "`watch.masks`", "the model predicts masks, which are files",
                             "name a folder for them");
    if (!has && o->masks)
        return refuse_option(err, "`watch.masks`", "the model does not predict masks",
                             "leave it out");
    if (!has)
        return QN_OK;
    const qn_status status = qn__folder_make(o->masks, err);
    return status == QN_OK && are_same(o->path, o->masks)
               ? refuse_option(err, "`watch.masks`",
                               "it is the folder that is watched, where a mask is a new file",
                               "name another one, which may be inside it")
               : status;
}

/* What a model of next tokens takes, and what only it does. */
static qn_status check_prompts(const qn_model *model, const qn_watch_options *o, qn_error *err) {
    const size_t size = strlen(o->path);
    if (!qn__watch_has_prompts(model, o))
        return o->generate
                   ? refuse_option(err, "", "answers of this model are not texts that go on",
                                   "leave out the options of texts (from `generate.tokens` to "
                                   "`generate.batch`), or give a model of next tokens")
                   : QN_OK;
    if (o->all_outputs)
        return refuse_option(err, "`watch.all_outputs`", "the answers are texts", "leave it out");
    if (size > 4 && strcmp(o->path + size - 4, ".csv") == 0)
        return refuse_option(err, o->path, "prompts are not read from CSV",
                             "write a prompt in each line of a text, or as an object of JSON");
    return o->generate && o->generate->answers != 1
               ? refuse_option(err, "`generate.answers`", "a row of the table has one answer",
                               "leave it out")
               : QN_OK;
}

static qn_status check_options(const qn_watch_options *o, qn_error *err) {
    if (!o->path || !*o->path)
        return refuse_option(err, "", "it says what is watched", "name a folder, a file, or -");
    if (qn__remote_is(o->path) && !qn__remote_can_list(o->path))
        return refuse_option(err, o->path, "a web server does not list its files",
                             "watch a folder, a folder of a store such as s3://bucket/prefix/, or "
                             "the standard input");
    if (!o->to || !*o->to)
        return refuse_option(err, "`watch.to`", "the answers need a table", "name a CSV file");
    if (!(o->poll_seconds >= 0))
        return refuse_option(err, "`watch.poll_seconds`", "it is below 0", "give 1, say");
    if (o->latency == 0)
        return refuse_option(err, "`watch.latency`", "it has to be above 0", "give 20000000, say");
    if (!o->layer && o->summary != QN_SUMMARY_NONE)
        return refuse_option(err, "`watch.summary`", "it says what is made of outputs of a layer",
                             "name the layer with `watch.layer`, such as body");
    if (o->layer && o->all_outputs)
        return refuse_option(err, "`watch.all_outputs`", "outputs of a layer stand in their place",
                             "leave one of both out");
    return o->move_done ? check_move(o, err) : QN_OK;
}

static qn_status open_all(qn_watch *w, qn_error *err) {
    const qn_watch_options *o = &w->options;
    w->stop = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (w->stop < 0)
        return qn__fail_errno(err, "make", "an event");
    const qn_status status = qn__watch_units_make(w->model, o, &w->units, err);
    const qn__watch_table table = {.to = o->to,
                                   .all_outputs = o->all_outputs,
                                   .values = w->units.values,
                                   .texts = w->units.texts != NULL,
                                   .versions = qn__remote_is(o->path)};
    return status == QN_OK ? qn__watch_results_open(w->model, &table, &w->results, err) : status;
}

qn_status qn_watch_make(const qn_model *model, const qn_watch_options *options, qn_watch **out,
                        qn_error *err) {
    QN__OWN_FLOATS;
    QN__NEED_OUT(out, err);
    QN__NEED(model, err);
    QN__NEED(options, err);
    qn_watch_options own;
    const qn__sized what = {__func__, "options", "qn_watch_options", sizeof own};
    qn_status status = qn__sized_take(&what, options, &own, err);
    if (status == QN_OK)
        status = check_options(&own, err);
    if (status == QN_OK)
        status = check_prompts(model, &own, err);
    if (status == QN_OK)
        status = check_masks(model, &own, err);
    if (status != QN_OK)
        return status;
    qn_watch *w = qn__alloc(1, sizeof *w, err);
    if (!w)
        return QN_MEMORY;
    w->model = model;
    w->options = own;
    w->stop = w->units.event = -1;
    status = open_all(w, err);
    if (status == QN_OK)
        *out = w;
    else
        qn_watch_free(w);
    return status;
}

qn_status qn_watch_run(qn_watch *w, qn_watch_report *report, qn_error *err) {
    QN__OWN_FLOATS;
    QN__NEED_AS(w, "watch", err);
    qn_watch_report own = {.size = sizeof own};
    const qn__sized what = {__func__, "report", "qn_watch_report", sizeof own};
    qn_error unwanted;
    err = err ? err : &unwanted;
    qn_status status = report ? qn__sized_take(&what, report, &own, err) : QN_OK;
    if (status != QN_OK)
        return status;
    status = qn__remote_is(w->options.path) ? qn__watch_bucket(w, err)
             : is_folder(w->options.path)   ? qn__watch_folder(w, err)
                                            : qn__watch_rows(w, err);
    own.rows = w->report.rows;
    own.bad = w->report.bad;
    own.known = w->report.known;
    if (report)
        qn__sized_give(&what, &own, report, qn__sized_of(report));
    return status;
}

void qn_watch_stop(qn_watch *w) {
    static const uint64_t one = 1;
    const int before = errno;
    if (w)
        qn__remote_hurry(&w->hurries);
    if (w && write(w->stop, &one, sizeof one) < 0)
        errno = before;
}

void qn_watch_free(qn_watch *w) {
    if (!w)
        return;
    qn__watch_units_release(&w->units);
    qn__watch_results_close(w->results);
    qn__remote_hurry_end(&w->hurries);
    if (w->stop >= 0)
        close(w->stop);
    qn__free(w);
}
