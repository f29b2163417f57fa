/* Reports: a page about a run, or a comparison of several, for people. */
#ifndef QUERN_REPORT_H
#define QUERN_REPORT_H

#include <quern/data.h>
#include <quern/device.h>
#include <quern/model.h>
#include <quern/status.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What a report is made of. Fill with qn_report_options_init, then set `run` and one of `path` and
 * `plots`. Each pointer may be NULL. */
typedef struct qn_report_options {
    size_t size;            /* sizeof(qn_report_options) */
    const char *const *run; /* folders of records (qn_train_options.run_dir), or runs in a file of
                               runs (quern/runs.h) */
    uint32_t runs;          /* 1: a page about this run; 2 to 32: a comparison */
    uint32_t mistakes;      /* how many of the worst mistakes are shown, at most 1000; 24 */
    const char *path;  /* the page to write: one HTML file that needs nothing else; NULL: none */
    const char *plots; /* folder for the charts as SVG files, made if missing; NULL: none */
    /* With one run: its model, for the weights of one without hidden layers. */
    const qn_model *model;
    /* With `model`: items with labels, such as a test set, for the confusion matrix, the worst
     * mistakes and `importance`. Images are shown as such. */
    const qn_data *data;
    const qn_compute *compute; /* for predictions, without ranks; NULL: the defaults */
    /* With `data`: how often each column is shuffled to measure how much worse the predictions
     * become; 0: never, the default. Each time takes as long as predicting 10,000 items, or all
     * where there are fewer. At most 100, and for at most 500 columns. */
    uint32_t importance;
    uint64_t seed; /* of this shuffling; 1 */
    /* With one run: the file of its trace (qn_train_options.trace), for a timeline of its workers;
     * NULL: none. */
    const char *trace;
} qn_report_options;

/* Sets `size`, and every other member to its default. */
QN_API void qn_report_options_init(qn_report_options *options);

/* Writes the page, the charts, or both. docs/formats.md describes them. Files are written as by
 * qn_model_save; charts of the same names are replaced.
 *
 * Fails with QN_USAGE (options), QN_FORMAT (a damaged record or trace), QN_INPUT (the data has no
 * labels), QN_UNSUPPORTED (too many columns), QN_IO or QN_MEMORY, and as qn_predict does. After a
 * failure an old page is as before; some charts may be new. */
QN_API qn_status qn_report_write(const qn_report_options *options, qn_error *err);

#ifdef __cplusplus
}
#endif
#endif
