/* What folders and rows have in common: waiting, storing, notes. */
#include "base/files/remote.h"
#include "base/system/clock.h"
#include "base/system/float_state.h"
#include "serve/watch/watch_masks.h"
#include "serve/watch/watch_state.h"
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

/* Seconds between two tries to write; how many a watch makes that is to end, and for how long. */
static const double FIRST_PAUSE = 0.1, LONGEST_PAUSE = 10, PATIENCE = 10;
enum { TRIES = 6 };
/* And between two looks. */
static const double POLL = 1, STORE_POLL = 10;

void qn__watch_note(const qn_watch *w, const char *format, ...) {
    char text[600];
    va_list arguments;
    if (!w->options.note)
        return;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    w->options.note(w->options.user, text);
    qn__float_state_set();
}

/* A list of a store costs money. */
double qn__watch_poll_seconds(const qn_watch *w) {
    const double seconds = (double)w->options.poll_seconds;
    return seconds > 0 ? seconds : qn__remote_is(w->options.path) ? STORE_POLL : POLL;
}

int qn__watch_wait(const qn_watch *w, int more, double seconds) {
    struct pollfd of[] = {{.fd = w->stop, .events = POLLIN},
                          {.fd = w->units.event, .events = POLLIN},
                          {.fd = more, .events = POLLIN}};
    const double most = 1e6;
    const int wait = seconds < 0 ? -1 : (int)(1e3 * (seconds < most ? seconds : most)) + 1;
    (void)poll(of, more < 0 ? 2 : 3, wait);
    return of[0].revents != 0;
}

void qn__watch_wait_answer(const qn_watch *w) {
    struct pollfd of = {.fd = w->units.event, .events = POLLIN};
    (void)poll(&of, 1, 10);
}

int qn__watch_is_stopped(const qn_watch *w) {
    struct pollfd of = {.fd = w->stop, .events = POLLIN};
    return poll(&of, 1, 0) > 0;
}

/* ------------------------------------------------------------------------------------- storing */

/* Seconds pass, or the watch is to end. */
static void pause_for(const qn_watch *w, double seconds) {
    struct pollfd of = {.fd = w->stop, .events = POLLIN};
    if (qn__watch_is_stopped(w))
        usleep((useconds_t)(1e6 * seconds));
    else
        (void)poll(&of, 1, (int)(1e3 * seconds));
}

/* A table that cannot be reached. Disks get space again, servers come back, and other programs end
 * their transactions. */
typedef struct again {
    qn_watch *w;
    double begun, pause;
    int tries;
} again;

static again begin_tries(qn_watch *w) {
    return (again){.w = w, .begun = qn__now(), .pause = FIRST_PAUSE};
}

/* 1: waits, and the same is to be done again. */
static int is_again(again *a, qn_status status, const char *what, const qn_error *err) {
    if (status == QN_OK && a->tries > 0)
        qn__watch_note(a->w, "the table can be reached again");
    if (status != QN_IO && status != QN_BUSY)
        return 0;
    ++a->tries;
    const int ends = a->w->options.once || qn__watch_is_stopped(a->w);
    if (ends && (a->tries >= TRIES || qn__now() - a->begun > PATIENCE))
        return 0;
    if (a->tries == 1)
        qn__watch_note(a->w, "%s: %s", what, err->what);
    pause_for(a->w, a->pause);
    a->pause = 2 * a->pause < LONGEST_PAUSE ? 2 * a->pause : LONGEST_PAUSE;
    return 1;
}

/* A mask is stored before the row that says so. */
static qn_status put_once(qn_watch *w, qn__watch_unit *units, qn_error *err) {
    const char *folder = w->options.masks;
    const qn_status status = folder ? qn__watch_masks_write(w->model, folder, units, err) : QN_OK;
    return status == QN_OK ? qn__watch_results_put(w->results, units, err) : status;
}

static qn_status put(qn_watch *w, qn__watch_unit *units, qn_error *err) {
    qn_status status;
    again a = begin_tries(w);
    do
        status = put_once(w, units, err);
    while (is_again(&a, status, "answers cannot be stored, and wait", err));
    return status;
}

qn_status qn__watch_last(qn_watch *w, const char *file, const char *version, int64_t *last,
                         qn_error *err) {
    qn_status status;
    again a = begin_tries(w);
    do
        status = qn__watch_results_last(w->results, file, version, last, err);
    while (is_again(&a, status, "the table cannot be read, and what comes waits", err));
    return status;
}

qn_status qn__watch_store(qn_watch *w, qn__watch_unit *units, qn_error *err) {
    for (const qn__watch_unit *u = units; u; u = u->next)
        if (!u->skip && u->status != QN_OK && !qn__watch_is_bad_item(u->status)) {
            if (err)
                *err = u->error;
            return u->status;
        }
    const qn_status status = put(w, units, err);
    for (const qn__watch_unit *u = units; status == QN_OK && u; u = u->next) {
        if (u->skip)
            continue;
        w->report.rows += u->status == QN_OK ? u->items : 1;
        w->report.bad += u->status != QN_OK;
    }
    return status;
}
