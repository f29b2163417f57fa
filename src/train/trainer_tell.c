/* What a training tells its caller, and its trace. */
#include "base/system/clock.h"
#include "base/system/float_state.h"
#include "train/trainer_state.h"

void qn__train_warn(const qn_train *t, const char *text) {
    if (!t->options.on_warning)
        qn__train_note(t, text);
    else
        t->options.on_warning(t->options.user, text);
    qn__float_state_set();
}

void qn__train_note(const qn_train *t, const char *text) {
    if (t->options.on_note)
        t->options.on_note(t->options.user, text);
    qn__float_state_set();
}

void qn__train_span(qn_train *t, const char *name, double begun) {
    qn__trace_span(t->trace.events, t->trace.track, name, begun, qn__now(),
                   (qn__trace_value){"step", t->job.step}, (qn__trace_value){0});
}
