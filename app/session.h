/* A training run as `train` and `replay` show it: the announcement, the bar and the epochs' lines
 * or events, interruptions, the report. */
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
    qn_train *train;
} session;

/* Among ranks all call these together; only the writer rank shows anything.
 *
 * Opens the run and announces it. Sets the callbacks in `options`. Returns -1, or an exit code
 * after a message. `s` starts with quiet, verbose, json, from and data_path; session_close ends it
 * in any case. */
int session_open(session *s, qn_train_options *options);

/* Trains. QN_INTERRUPTED after a signal. No failure has been printed yet when it returns. */
qn_status session_run(session *s, qn_error *err);

/* Fills the report; nothing has been printed when it returns. */
qn_status session_report(session *s, qn_train_report *report, qn_error *err);

/* For who speaks: prints the report, unless quiet or JSON was asked for; the "end" event is the
 * caller's. */
void session_print(const session *s, const qn_train_report *report);

void session_close(session *s);

#endif
