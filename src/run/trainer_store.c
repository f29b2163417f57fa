/* A training in a file of runs. */
#include "base/clock.h"
#include "base/memory.h"
#include "run/trainer_state.h"
#include <stdio.h>

/* Seconds between two writings of a run that goes on. */
static const double INTERVAL = 5;

/* The note, once: the run is then not in the file, or not complete. */
static void give_up(qn_train *t, const qn_error *why) {
    char text[1600];
    snprintf(text, sizeof text,
             "%s%s%s; the training continues without its record in a file of runs", why->what,
             *why->remedy ? ": " : "", why->remedy);
    qn__train_note(t, text);
    qn__store_close(&t->store);
    qn__free(t->runs_path);
    t->runs_path = NULL;
}

/* A rank that becomes the writer later opens the file then, and begins a run of its own there. */
static int is_open(qn_train *t) {
    qn_error why;
    if (!t->runs_path || !qn__train_is_writer(t))
        return 0;
    if (t->store.base)
        return 1;
    if (qn__store_open(t->runs_path, 1, &t->store, &why) == QN_OK)
        return 1;
    give_up(t, &why);
    return 0;
}

void qn__train_store(qn_train *t, const qn_train_report *report, const char *digest,
                     const char *state) {
    qn__text about = {0};
    qn_error why;
    if (!is_open(t))
        return;
    qn__record_about(t->story, report, digest, state, &about);
    if (qn__store_put(&t->store, t->run_id, t->run_name, &about, qn__record_metrics(t->story),
                      &why) != QN_OK)
        give_up(t, &why);
    t->stored = qn__now();
    qn__text_release(&about);
}

void qn__train_store_epoch(qn_train *t) {
    if (t->runs_path && qn__now() - t->stored >= INTERVAL)
        qn__train_store(t, NULL, NULL, "running");
}

qn_status qn__train_open_store(qn_train *t, const qn_train_options *o, qn_error *err) {
    if (!(t->runs_path = qn__copy_text(o->runs, err)) ||
        !(t->run_name = qn__copy_text(o->run_name ? o->run_name : "", err)))
        return QN_MEMORY;
    qn__store_number(t->run_id);
    qn__train_store(t, NULL, NULL, "running");
    return QN_OK;
}
