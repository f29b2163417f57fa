/* Whether the validation losses of a training say that it ended too early or too late. Losses vary
 * from epoch to epoch, so means over a fifth of the epochs are compared, and only clear differences
 * are told, at the end, once. */
#include "train/trainer_state.h"

#include <inttypes.h>
#include <stdio.h>

/* Epochs of which nothing is told, and parts of a training: a fifth and a half. */
enum { FEWEST_EPOCHS = 10, WINDOW = 5, HALF = 2 };
/* A fall and a rise of the loss that count, as parts of it, and a rise that counts in any case. */
static const double FALL = 0.05, RISE = 0.1, LEAST_RISE = 0.02;

static uint32_t window_of(const qn_epoch_event *e) { return e->epochs / WINDOW; }

static void take(qn__watch *w, const qn_epoch_event *e) {
    const uint32_t window = window_of(e), left = e->epochs - e->epoch;
    if (w->epochs == 0 || e->valid.loss < w->best) {
        w->best = e->valid.loss;
        w->best_epoch = e->epoch;
    }
    w->epochs++;
    if (left < window)
        w->last += e->valid.loss / window;
    else if (left < 2 * window)
        w->before += e->valid.loss / window;
}

static void note_early(const qn_train *t, const qn_epoch_event *e) {
    const qn__watch *w = &t->watch;
    char text[256];
    const int perfect = !e->real && e->valid.correct == e->valid.items;
    if (perfect || w->best_epoch + window_of(e) <= e->epochs || !(w->last < (1 - FALL) * w->before))
        return;
    snprintf(text, sizeof text,
             "the validation loss still fell at the end, by %.0f %% in a fifth of the epochs: more "
             "`train.epochs` may give a better model",
             100 * (1 - w->last / w->before));
    qn__train_note(t, text);
}

static void note_late(const qn_train *t, const qn_epoch_event *e) {
    const qn__watch *w = &t->watch;
    const double rise = w->last - w->best;
    char text[320];
    if (t->job.recipe.keep == QN__KEEP_BEST || w->best_epoch > e->epochs / HALF ||
        !(rise > RISE * w->best && rise > LEAST_RISE))
        return;
    snprintf(text, sizeof text,
             "the validation loss was lowest after epoch %" PRIu32 " of %" PRIu32
             " and is %.0f %% higher at the end: `train.keep` best takes that epoch, and "
             "`train.patience` ends a training soon after it",
             w->best_epoch, e->epochs, 100 * rise / w->best);
    qn__train_note(t, text);
}

void qn__train_watch(qn_train *t, const qn_epoch_event *e) {
    if (e->valid.items == 0 || e->epochs < FEWEST_EPOCHS || e->stages > 1)
        return;
    take(&t->watch, e);
    /* After a resumption the epochs before are unknown. */
    if (e->epoch < e->epochs || t->watch.epochs != e->epochs || !qn__train_is_writer(t))
        return;
    note_early(t, e);
    note_late(t, e);
}
