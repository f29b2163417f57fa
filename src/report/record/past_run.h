/* The record of a run, read back from its folder (record.h writes it), for other programs' formats.
 * The folder may come from anywhere. */
#ifndef QN_REPORT_RECORD_PAST_RUN_H
#define QN_REPORT_RECORD_PAST_RUN_H

#include "base/files/file.h"
#include "base/text/json.h"
#include "base/text/text.h"
#include <stdint.h>

enum { QN__PAST_COLUMNS = 32 };

typedef struct qn__past_run {
    qn__bytes metrics, about; /* the two files */
    qn__json *json;
    const qn__json_node *facts; /* of run.json */
    int64_t started, ended;     /* seconds since 1970; ended: `started` where it is unknown */
    uint32_t columns;           /* of metrics.csv */
    char *header;               /* cut into the names */
    const char *name[QN__PAST_COLUMNS];
    uint64_t epochs; /* rows */
    float *value;    /* epochs x columns; NaN: an empty cell */
    double *when;    /* the end of each epoch, in seconds since 1970 */
} qn__past_run;

/* The caller releases *out, which is empty after a failure. Fails with QN_IO (no record), QN_FORMAT
 * (a damaged one) or QN_MEMORY. */
qn_status qn__past_run_read(const char *folder, qn__past_run *out, qn_error *err);
/* The same of the two files' texts, copied; messages use `name` in place of the folder. */
qn_status qn__past_run_parse(const char *name, const qn__text *about, const qn__text *metrics,
                             qn__past_run *out, qn_error *err);
void qn__past_run_release(qn__past_run *run);

/* A member of an object of the record: NaN, 0 and "" where it has none. */
double qn__fact_number(const qn__json_node *object, const char *key);
uint64_t qn__fact_count(const qn__json_node *object, const char *key);
const char *qn__fact_text(const qn__json_node *object, const char *key);

/* A text of run.json, "" where it has none. */
const char *qn__past_run_text(const qn__past_run *run, const char *key);

/* Writes a number of the record as text. Returns 0, with an empty text, where the node is not a
 * number. */
int qn__past_run_number(const qn__json_node *node, char text[64]);

/* The number of the epoch in a row. */
uint64_t qn__past_run_epoch(const qn__past_run *run, uint64_t row);

#endif
