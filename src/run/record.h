/* The record of a run: DIR/metrics.csv, a line for each epoch, and DIR/run.json, all about the run
 * that a result file must not hold. Nothing reads it back but people and their tools. */
#ifndef QN_RUN_RECORD_H
#define QN_RUN_RECORD_H

#include <quern/status.h>
#include <quern/train.h>
#include <stdint.h>
#include <time.h>

typedef struct qn__record qn__record;

/* What is known when the run begins. Texts are copied. */
typedef struct qn__record_start {
    const char *recipe_json; /* NULL: not known */
    const char *isa;         /* NULL: not known */
    int threads;
    int arguments; /* of the command line, 0: not known */
    const char *const *argument;
    uint64_t epochs_done; /* 0 for a run from the start; else its lines in metrics.csv are kept */
    time_t begun;         /* 0: just now */
    int takes_over;       /* 1: the record of this very run, which another rank began */
    /* Asked before anything in the folder changes, as by qn__writer_ask; may be NULL. */
    int (*may)(void *user);
    void *user;
} qn__record_start;

/* Makes the folder when it is missing (not its parents) and begins metrics.csv. A run from the
 * start moves an earlier record to previous-metrics.csv and previous-run.json; a resumed one keeps
 * the lines of the epochs that are done. One process at a time keeps a record in a folder: QN_BUSY
 * names the one that does. Files of these names that are not of a record stay, and fail it with
 * QN_IO. Fails with QN_IO or QN_MEMORY, or, as the functions below do, with QN_BUSY where the
 * record is not this process's to change any more: it is as it was. */
qn_status qn__record_open(const char *dir, const qn__record_start *start, qn__record **out,
                          qn_error *err);

/* Appends a line to metrics.csv, at once. */
qn_status qn__record_epoch(qn__record *record, const qn_epoch_event *event, qn_error *err);

/* Writes run.json. `state`: "finished", "interrupted", "failed: ..."; `report` and `model_digest`
 * may be NULL. */
qn_status qn__record_end(qn__record *record, const qn_train_report *report,
                         const char *model_digest, const char *state, qn_error *err);

/* The names of all files that records keep in their folder; ends with NULL. */
extern const char *const qn__record_files[];

/* Accepts NULL. */
void qn__record_close(qn__record *record);

#endif
