/* A training in a file of runs. A folder of checkpoints names its run there, so that a training
 * which continues from it goes on in the same row. */
#include "base/files/file.h"
#include "base/files/folder_make.h"
#include "base/files/remote.h"
#include "base/memory.h"
#include "base/system/clock.h"
#include "train/checkpoint.h"
#include "train/trainer_state.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Seconds between two writings of a run that goes on. */
static const double INTERVAL = 5;

/* The note, once. The file is asked for again at the end of the training only: somebody who holds
 * it makes each attempt last long. */
static void give_up(qn_train *t, const qn_error *why) {
    char text[1600];
    qn__store_close(&t->runs.store);
    if (!t->runs.failed && qn__train_is_writer(t)) {
        snprintf(text, sizeof text,
                 "%s%s%s; the training continues without its record in a file of runs", why->what,
                 *why->remedy ? ": " : "", why->remedy);
        qn__train_note(t, text);
    }
    t->runs.failed = 1;
}

/* The epochs of the row that this rank does not know: of the run that is continued, before the
 * first epoch of this one. */
static void recall_row(qn_train *t) {
    qn__text about = {0}, metrics = {0};
    if (qn__store_get(&t->runs.store, t->runs.id, &about, &metrics, NULL) == QN_OK)
        qn__record_recall(t->record.story, &metrics, t->job.step / t->job.steps_per_epoch);
    qn__text_release(&about);
    qn__text_release(&metrics);
}

/* A rank that becomes the writer later opens the file then, and goes on in the same row. */
static int is_open(qn_train *t) {
    qn_error why;
    if (!t->runs.path || !qn__train_is_writer(t))
        return 0;
    if (t->runs.store.base)
        return 1;
    if (qn__store_open(t->runs.path, 1, &t->runs.store, &why) == QN_OK) {
        recall_row(t);
        return 1;
    }
    give_up(t, &why);
    return 0;
}

void qn__train_store(qn_train *t, const qn_train_report *report, const char *digest,
                     const char *state) {
    qn__text about = {0};
    qn_error why;
    if (!is_open(t))
        return;
    qn__record_about(t->record.story, report, digest, state, &about);
    if (qn__store_put(&t->runs.store, t->runs.id, t->runs.name, &about,
                      qn__record_metrics(t->record.story), &t->owner, &why) != QN_OK)
        give_up(t, &why);
    t->runs.last = qn__now();
    qn__text_release(&about);
}

void qn__train_store_epoch(qn_train *t) {
    if (t->runs.path && !t->runs.failed && qn__now() - t->runs.last >= INTERVAL)
        qn__train_store(t, NULL, NULL, "running");
}

/* ----------------------------------------------------------------- the run of a checkpoint */

/* "ID\nFOLDER\n": a copy of the folder is that of another run. NULL where memory is short, or the
 * folder is not there. */
static char *text_of_mark(const char *id, const char *dir) {
    char *place = qn__remote_is(dir) ? strdup(dir) : realpath(dir, NULL);
    const size_t size = place ? strlen(id) + strlen(place) + 3 : 0;
    char *text = place ? qn__alloc(size, 1, NULL) : NULL;
    if (text)
        snprintf(text, size, "%s\n%s\n", id, place);
    free(place);
    return text;
}

static char *path_of_mark(const char *dir) {
    char *path;
    return qn__folder_path(dir, QN__CHECKPOINTS_RUN, &path, NULL) == QN_OK ? path : NULL;
}

/* Without the mark a training from there has a row of its own. */
void qn__train_store_mark(const qn_train *t, const char *dir, qn__checkpoints *folder) {
    qn__writer *writer = NULL;
    char *path = t->runs.path ? path_of_mark(dir) : NULL;
    char *text = path ? text_of_mark(t->runs.id, dir) : NULL;
    if (text && qn__writer_create(path, &writer, NULL) == QN_OK) {
        qn__writer_add(writer, text, strlen(text), NULL);
        qn__writer_ask(writer, qn__checkpoints_may, folder);
        (void)qn__writer_commit(writer, NULL);
    }
    qn__free(path);
    qn__free(text);
}

/* The number of the run in the mark of the folder; 0: it has none. */
static int read_mark(const char *dir, char id[QN__STORE_ID + 1]) {
    qn__bytes mark = {0};
    char *path = path_of_mark(dir), *text = NULL;
    int found = 0;
    if (path && qn__file_read(path, &mark, NULL) == QN_OK && mark.size > QN__STORE_ID &&
        strspn((const char *)mark.data, "0123456789abcdef") == QN__STORE_ID) {
        snprintf(id, QN__STORE_ID + 1, "%.12s", (const char *)mark.data);
        text = text_of_mark(id, dir);
        found = text && strlen(text) == mark.size && memcmp(text, mark.data, mark.size) == 0;
    }
    qn__bytes_release(&mark);
    qn__free(path);
    qn__free(text);
    return found;
}

/* Takes the epochs of the run that this one continues, and its row, unless that had ended: with
 * more epochs it is another training. */
static void take_row(qn_train *t) {
    char id[QN__STORE_ID + 1];
    qn__text about = {0}, metrics = {0};
    qn__past_run run = {.epochs = 0};
    if (t->done.resumed_from > 0 && t->saved.dir && read_mark(t->saved.dir, id) &&
        qn__store_get(&t->runs.store, id, &about, &metrics, NULL) == QN_OK &&
        qn__past_run_parse("the record", &about, &metrics, &run, NULL) == QN_OK) {
        qn__record_recall(t->record.story, &metrics, t->job.step / t->job.steps_per_epoch);
        if (strcmp(qn__past_run_text(&run, "state"), "finished") != 0)
            memcpy(t->runs.id, id, sizeof id);
    }
    qn__past_run_release(&run);
    qn__text_release(&about);
    qn__text_release(&metrics);
}

/* A file that cannot be written fails here, before the first step, where nothing is lost. */
static qn_status open_first(qn_train *t, const qn_train_options *o, qn_error *err) {
    if (!(t->runs.path = qn__copy_text(o->runs, err)) ||
        !(t->runs.name = qn__copy_text(o->run_name ? o->run_name : "", err)))
        return QN_MEMORY;
    if (!qn__train_is_writer(t))
        return QN_OK;
    const qn_status status = qn__store_open(t->runs.path, 1, &t->runs.store, err);
    if (status != QN_OK)
        qn__store_close(&t->runs.store);
    else
        take_row(t);
    return status;
}

/* All ranks know the row before anything is written there: the next writer goes on in it. */
qn_status qn__train_open_store(qn_train *t, const qn_train_options *o, qn_error *err) {
    qn__store_number(t->runs.id);
    qn_status status = o->runs ? open_first(t, o, err) : QN_OK;
    if (status == QN_OK && t->cluster)
        status = qn__cluster_from_first(t->cluster, t->runs.id, sizeof t->runs.id, err);
    if (status != QN_OK || !t->runs.path || !qn__train_is_writer(t))
        return status;
    qn__train_store(t, NULL, NULL, "running");
    if (t->saved.folder)
        qn__train_store_mark(t, t->saved.dir, t->saved.folder);
    return QN_OK;
}
