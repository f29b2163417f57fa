/* What the files of this folder know of a watch. */
#ifndef QN_SERVE_WATCH_STATE_H
#define QN_SERVE_WATCH_STATE_H

#include "serve/watch/watch_results.h"
#include <stdatomic.h>
#include <quern/watch.h>

struct qn_watch {
    const qn_model *model;
    qn_watch_options options;
    qn__watch_units units;
    qn__watch_results *results;
    qn_watch_report report;
    atomic_int hurries; /* qn__remote_hurry */
    int stop;           /* a descriptor that can be read once the watch is to end */
};

/* They run until the end, and return when all that was submitted is stored. */
qn_status qn__watch_folder(qn_watch *watch, qn_error *err);
qn_status qn__watch_bucket(qn_watch *watch, qn_error *err);
qn_status qn__watch_rows(qn_watch *watch, qn_error *err);

/* Between two looks. */
double qn__watch_poll_seconds(const qn_watch *watch);

/* Waits until one of the descriptors can be read, `seconds` have passed (below 0: for ever) or the
 * watch is to end: 1. `more` is a further descriptor, or -1. */
int qn__watch_wait(const qn_watch *watch, int more, double seconds);
/* Waits a moment for an answer. */
void qn__watch_wait_answer(const qn_watch *watch);
int qn__watch_is_stopped(const qn_watch *watch);

/* As qn__watch_results_last; asks again while the table cannot be reached. */
qn_status qn__watch_last(qn_watch *watch, const char *file, const char *version, int64_t *last,
                         qn_error *err);

/* Stores the answers of the units; tries again while the table cannot be written to. Fails where a
 * unit failed for another reason than its own bytes. */
qn_status qn__watch_store(qn_watch *watch, qn__watch_unit *units, qn_error *err);

void qn__watch_note(const qn_watch *watch, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

#endif
