/* The user interface of a training run for `train` and `replay`: the announcement, the bar and the
 * epochs' lines or events, interruptions, the report. */
#ifndef APP_SESSION_H
#define APP_SESSION_H

#include "progress.h"
#include "sources.h"
#include <quern/train.h>

typedef struct session {
    int quiet, verbose, json;
    const sources *from;
    const char *data_path; /* for the announcement; NULL: the built-in digits */
    progress bar;
    double guessing;    /* the mean loss of equal probabilities; 0: unknown, or compared already */
    double loss_before; /* of the epoch before */
    qn_train *train;
    const char *predictions; /* folder, as of stage_predictions.h; NULL: none */
    uint32_t stage;     /* the stage of the last epoch, if that was not the last epoch of the stage;
                           else 0 */
    qn_error unwritten; /* why some predictions could not be written; status QN_OK: all were */
    int answers;        /* whether an interruption is confirmed on stderr */
} session;

/* These calls are collective among ranks; only the writer rank prints anything.
 *
 * Opens the run and announces it. Sets the callbacks in `options`. Returns -1, or an exit code
 * after a message. The caller sets quiet, verbose, json, from and data_path in `s`, and always
 * calls session_close. */
int session_open(session *s, qn_train_options *options);

/* Trains. QN_INTERRUPTED after a signal. Does not print an error. */
qn_status session_run(session *s, qn_error *err);

/* Fills the report; prints nothing. Where the training ended within a stage, writes the predictions
 * of that stage first, by the model. */
qn_status session_report(session *s, qn_train_report *report, qn_error *err);

/* On the writer rank: prints the report, unless quiet or JSON was requested; the caller writes the
 * "end" event. */
void session_print(const session *s, const qn_train_report *report);

void session_close(session *s);

#endif
