/* The record of a run: DIR/metrics.csv, a line for each epoch, and DIR/run.json, with all facts
 * about the run that a result file must not contain. Quern never reads it back. */
#ifndef QN_REPORT_RECORD_RECORD_H
#define QN_REPORT_RECORD_RECORD_H

#include "base/files/folder_lock.h"
#include "base/text/text.h"
#include <quern/status.h>
#include <quern/train.h>
#include <stdint.h>
#include <time.h>

typedef struct qn__record qn__record;

/* A confusion matrix of more classes is not in a record. */
enum { QN__RECORDED_CLASSES = 100 };

/* Facts known when the run begins. Texts are copied. */
typedef struct qn__record_start {
    const char *recipe_json; /* NULL: unknown */
    const char *isa;         /* NULL: unknown */
    int threads;
    int arguments; /* of the command line, 0: unknown */
    const char *const *argument;
    int real;               /* 1: labels are real numbers: the columns are those of their scores */
    int next;               /* 1: tokens come next, and scores have a perplexity */
    uint64_t epochs_done;   /* 0 for a new run; otherwise their lines in metrics.csv are kept */
    time_t begun;           /* 0: now */
    const qn__text *known;  /* metrics.csv of this run, as this process knows it; may be NULL */
    const qn__owner *owner; /* of the folder, base/files/folder_lock.h; may be NULL */
} qn__record_start;

/* Creates the folder if it is missing (not its parents) and begins metrics.csv. A new run renames
 * an earlier record to previous-metrics.csv and previous-run.json; a resumed run keeps the lines of
 * completed epochs, and so does a rank that takes the folder of another rank. Lines of completed
 * epochs that are missing are taken from `known`.
 *
 * One process at a time keeps a record in a folder: QN_BUSY names it. Other files with these names
 * are kept, and the call fails with QN_IO. Fails with QN_IO or QN_MEMORY. This function and those
 * below fail with QN_BUSY, without changes, if the folder now belongs to another process. */
qn_status qn__record_open(const char *dir, const qn__record_start *start, qn__record **out,
                          qn_error *err);

/* Appends a line to metrics.csv immediately. */
qn_status qn__record_epoch(qn__record *record, const qn_epoch_event *event, qn_error *err);

/* Writes run.json. `state`: "finished", "interrupted", "failed: ..."; `report` and `model_digest`
 * may be NULL. */
qn_status qn__record_end(qn__record *record, const qn_train_report *report,
                         const char *model_digest, const char *state, qn_error *err);

/* A record without files, in memory: takes the same calls, but for qn__record_end. */
qn_status qn__record_keep(const qn__record_start *start, qn__record **out, qn_error *err);

/* For a record in memory of a run that continues another one, or of a rank that takes over from
 * another one: takes the lines of completed epochs, at most `epochs_done`, from the metrics.csv of
 * that. Its own lines of later epochs stay. */
void qn__record_recall(qn__record *record, const qn__text *metrics, uint64_t epochs_done);

/* The texts of the two files as they would be: metrics.csv as it is so far, owned by the record;
 * and run.json, appended to *about. */
const qn__text *qn__record_metrics(const qn__record *record);
void qn__record_about(const qn__record *record, const qn_train_report *report,
                      const char *model_digest, const char *state, qn__text *about);

/* The names of all files of a record in its folder; NULL ends the list. */
extern const char *const qn__record_files[];

/* Accepts NULL. */
void qn__record_close(qn__record *record);

#endif
