/* Watching: files and rows are predicted as they come, and each gets one row of a table.
 *
 *     qn_watch_options options;
 *     qn_watch_options_init(&options);
 *     options.path = "camera";
 *     options.to = "results.csv";
 *     if (qn_watch_make(model, &options, &watch, &err) == QN_OK)
 *         qn_watch_run(watch, NULL, &err);
 *     qn_watch_free(watch);
 *
 * What was answered is in the table, and nowhere else: a watch that was killed at any moment goes
 * on where it stopped, and no answer is lost or repeated (docs/watch.md). */
#ifndef QUERN_WATCH_H
#define QUERN_WATCH_H

#include <quern/device.h>
#include <quern/generate.h>
#include <quern/model.h>
#include <quern/predict.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What is watched, and how; begin with qn_watch_options_init. The texts and `compute` must stay
 * valid until qn_watch_free. */
typedef struct qn_watch_options {
    size_t size; /* sizeof(qn_watch_options) */
    /* A folder, also one of a store, such as "s3://bucket/prefix": its files and those of the
     * folders in it, as each is complete. A file of CSV rows or JSON lines: its rows, and those
     * that are appended. "-": the standard input, line by line; for a model of images a line is the
     * path of a file. */
    const char *path;
    /* The table of the answers: a CSV file, "sqlite:FILE", "postgresql://...", or "-". */
    const char *to;
    const char *move_done; /* a folder: files go there once their answer is stored, with the folders
                              they are in; NULL: none */
    const char *masks; /* of a model of masks, and only there: the folder of the PNG files with the
                          answers, which is made where it is missing; or an address */
    const qn_compute *compute; /* NULL: the defaults */
    qn_note_fn note;           /* messages for a person, on the thread of qn_watch_run; or NULL */
    void *user;                /* for `note` */
    uint64_t latency;          /* bound in ns for what waits to be computed */
    float poll_seconds; /* between two looks at what does not tell what changes; 0: 1 for a folder
                           or file, 10 for a store */
    int poll;           /* 1: always look, also where the system tells what changes */
    int once;           /* 1: end when all that is there is answered */
    int all_outputs;    /* 1: columns with all outputs, too */
    int flat;           /* 1: without the folders in the folder */
    /* Outputs of a layer in the place of predictions, as f0, f1 and so on: its name, as of
     * qn_model_find_layer, and what is made of them. NULL: predictions. */
    const char *layer;
    qn_summary summary;
    /* A model of next tokens continues prompts: files of text, lines, or lines of JSON. The options
     * of its answers, and `batch`; NULL: the defaults. `answers` is 1. */
    const qn_generate_options *generate;
} qn_watch_options;

/* Sets the defaults: 20 ms. */
QN_API void qn_watch_options_init(qn_watch_options *options);

/* What a run did. */
typedef struct qn_watch_report {
    size_t size;    /* sizeof(qn_watch_report), set by the caller */
    uint64_t rows;  /* answers that were stored */
    uint64_t bad;   /* of them: rows with the reason instead of a prediction */
    uint64_t known; /* files and rows that an earlier run had answered */
} qn_watch_report;

typedef struct qn_watch qn_watch;

/* Opens the devices and the table, which is made where it is not there, with the columns file,
 * item, those of qn_predictions_write or of `layer`, or text and end, and error. `model` must
 * outlive *out, which the caller owns on success, for qn_watch_free; else it is NULL. Fails with
 * QN_USAGE (an option), QN_UNSUPPORTED (a layer that needs later tokens; a missing library),
 * QN_INPUT (the table has other columns), QN_BUSY (another process writes to it), QN_IO, QN_DEVICE
 * or QN_MEMORY. */
QN_API qn_status qn_watch_make(const qn_model *model, const qn_watch_options *options,
                               qn_watch **out, qn_error *err);

/* Answers what is there and what comes, until qn_watch_stop, the end of the standard input, or with
 * `once` the end of what is there. What was submitted by then is answered and stored. A file or row
 * that cannot be read gets a row with an error. A full disk is waited for. Once for a watch.
 * `report` may be NULL. Fails with QN_INPUT (the file of rows was replaced or cut), QN_IO,
 * QN_DEVICE or QN_MEMORY: another run goes on. */
QN_API qn_status qn_watch_run(qn_watch *watch, qn_watch_report *report, qn_error *err);

/* Lets qn_watch_run end. Any thread, and safe in a signal handler. Accepts NULL. */
QN_API void qn_watch_stop(qn_watch *watch);

/* Frees the watch. Not during qn_watch_run. Accepts NULL. */
QN_API void qn_watch_free(qn_watch *watch);

#ifdef __cplusplus
}
#endif
#endif
