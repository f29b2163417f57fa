/* The trace of a training: of this process, or of all ranks on one time line. */
#include "team/trace_ranks.h"
#include "train/trainer_state.h"
#include <stdio.h>

/* A trace that cannot be written does not stop a training either. */
static void without_trace(qn_train *t, const qn_error *failure) {
    char text[1200];
    if (failure->status == QN_BUSY && t->cluster)
        return; /* another rank writes it: the next reduction returns the reason */
    if (t->record.incomplete.status == QN_OK)
        t->record.incomplete = *failure;
    snprintf(text, sizeof text, "%s; the run continues without a trace", failure->what);
    qn__train_note(t, text);
}

void qn__train_write_trace(qn_train *t, int together) {
    qn_error failure;
    if (!t->trace.events)
        return;
    if (t->trace.epoch_begun > 0) /* a further call continues the epoch */
        qn__train_span(t, "epoch", t->trace.epoch_begun);
    t->trace.epoch_begun = 0;
    const qn_status status =
        qn__trace_save(t->trace.events, t->trace.path, t->cluster, together, &failure);
    if (status != QN_OK)
        without_trace(t, &failure);
}
