#include "report/record/past_run.h"

#include "base/files/folder_make.h"
#include "base/memory.h"
#include "base/text/text.h"
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

/* Columns of metrics.csv that every record has first. */
enum { EPOCH, SECONDS, FIXED };

static qn_status damaged(const char *folder, const char *file, const char *what, uint64_t line,
                         qn_error *err) {
    qn__fail(err, QN_FORMAT, "%s", what);
    if (line)
        qn__at(err, "%.300s/%s, line %llu", folder, file, (unsigned long long)line);
    else
        qn__at(err, "%.300s/%s", folder, file);
    return qn__remedy(
        err, QN_FORMAT,
        "name another run: a folder that a training wrote for `train.run_dir`, or one "
        "of a file of runs");
}

static int64_t read_time(const char *text, int64_t otherwise) {
    struct tm parts = {0};
    const char *end = text ? strptime(text, "%Y-%m-%dT%H:%M:%SZ", &parts) : NULL;
    return end && *end == '\0' ? (int64_t)timegm(&parts) : otherwise;
}

static qn_status read_facts(const char *folder, qn__past_run *run, qn_error *err) {
    const qn_status status =
        qn__json_parse((const char *)run->about.data, run->about.size, &run->json, err);
    if (status == QN_MEMORY)
        return status;
    if (status != QN_OK || !qn__json_is_object(qn__json_root(run->json)))
        return damaged(folder, "run.json", "the file is not a record of a run", 0, err);
    run->facts = qn__json_root(run->json);
    run->started = read_time(qn__json_string(qn__json_get(run->facts, "started")), -1);
    run->ended = read_time(qn__json_string(qn__json_get(run->facts, "ended")), run->started);
    return run->started >= 0 ? QN_OK
                             : damaged(folder, "run.json",
                                       "the record does not say when the run "
                                       "started",
                                       0, err);
}

static qn_status read_header(const char *folder, qn__past_run *run, const char **at,
                             qn_error *err) {
    const char *end = strchr(*at, '\n');
    const size_t size = end ? (size_t)(end - *at) : 0;
    if (!end || strncmp(*at, "epoch,seconds,", 14) != 0)
        return damaged(folder, "metrics.csv", "the file is not the metrics of a run", 1, err);
    run->header = qn__copy_unquoted(*at, size, 0, err);
    if (!run->header)
        return QN_MEMORY;
    for (char *name = run->header; name; run->columns++) {
        char *comma = strchr(name, ',');
        if (run->columns == QN__PAST_COLUMNS)
            return damaged(folder, "metrics.csv", "the file has more columns than a record", 1,
                           err);
        run->name[run->columns] = name;
        if (comma)
            *comma++ = '\0';
        name = comma;
    }
    *at = end + 1;
    return QN_OK;
}

/* A line that is complete; the last one of a killed run may not be. */
static int read_row(const qn__past_run *run, const char *line, const char *end, float *row) {
    for (uint32_t c = 0; c < run->columns; ++c) {
        const char *comma = memchr(line, ',', (size_t)(end - line));
        const char *stop = c + 1 < run->columns ? comma : comma ? NULL : end;
        if (!stop)
            return 0;
        row[c] = NAN;
        if (stop > line && !qn__parse_float(line, (size_t)(stop - line), &row[c]))
            return 0;
        line = stop + 1;
    }
    return row[EPOCH] >= 1 && row[SECONDS] >= 0;
}

static qn_status read_metrics(const char *folder, qn__past_run *run, qn_error *err) {
    const char *at = (const char *)run->metrics.data;
    if (strlen(at) != run->metrics.size)
        return damaged(folder, "metrics.csv", "the file is not the metrics of a run", 1, err);
    const qn_status status = read_header(folder, run, &at, err);
    if (status != QN_OK)
        return status;
    uint64_t lines = 0;
    for (const char *end = strchr(at, '\n'); end; end = strchr(end + 1, '\n'))
        ++lines;
    run->value = qn__alloc(lines * run->columns, sizeof(float), err);
    run->when = run->value ? qn__alloc(lines, sizeof(double), err) : NULL;
    if (!run->when)
        return QN_MEMORY;
    double seconds = (double)run->started;
    for (; run->epochs < lines; run->epochs++) {
        const char *end = strchr(at, '\n');
        if (!read_row(run, at, end, run->value + run->epochs * run->columns))
            return damaged(folder, "metrics.csv", "the line is not that of an epoch",
                           run->epochs + 2, err);
        seconds += (double)run->value[run->epochs * run->columns + SECONDS];
        run->when[run->epochs] = seconds;
        at = end + 1;
    }
    return QN_OK;
}

static qn_status read_file(const char *folder, const char *name, qn__bytes *out, qn_error *err) {
    char *path;
    qn_status status = qn__folder_path(folder, name, &path, err);
    if (status != QN_OK)
        return status;
    status = qn__file_read(path, out, err);
    qn__free(path);
    if (status == QN_IO)
        return qn__remedy(err, status, "name a folder that a training wrote for `train.run_dir`");
    return status;
}

/* The files are read already. Releases them after a failure. */
static qn_status parse(const char *folder, qn__past_run *out, qn_status status, qn_error *err) {
    if (status == QN_OK)
        status = read_facts(folder, out, err);
    if (status == QN_OK)
        status = read_metrics(folder, out, err);
    if (status != QN_OK)
        qn__past_run_release(out);
    return status;
}

static qn_status copy_text(const qn__text *text, qn__bytes *out, qn_error *err) {
    uint8_t *bytes = text->failed ? NULL : qn__alloc(text->size + 1, 1, err);
    if (!bytes)
        return text->failed ? qn__fail_memory(err, text->size + 1, 1) : QN_MEMORY;
    memcpy(bytes, text->data ? text->data : "", text->size + 1);
    *out = (qn__bytes){bytes, text->size};
    return QN_OK;
}

qn_status qn__past_run_parse(const char *name, const qn__text *about, const qn__text *metrics,
                             qn__past_run *out, qn_error *err) {
    *out = (qn__past_run){0};
    qn_status status = copy_text(about, &out->about, err);
    if (status == QN_OK)
        status = copy_text(metrics, &out->metrics, err);
    return parse(name, out, status, err);
}

qn_status qn__past_run_read(const char *folder, qn__past_run *out, qn_error *err) {
    *out = (qn__past_run){0};
    qn_status status = read_file(folder, "run.json", &out->about, err);
    if (status == QN_OK)
        status = read_file(folder, "metrics.csv", &out->metrics, err);
    return parse(folder, out, status, err);
}

void qn__past_run_release(qn__past_run *run) {
    qn__bytes_release(&run->metrics);
    qn__bytes_release(&run->about);
    qn__json_free(run->json);
    qn__free(run->header);
    qn__free(run->value);
    qn__free(run->when);
    *run = (qn__past_run){0};
}

double qn__fact_number(const qn__json_node *object, const char *key) {
    float value;
    return qn__json_float(qn__json_get(object, key), &value) ? (double)value : (double)NAN;
}

uint64_t qn__fact_count(const qn__json_node *object, const char *key) {
    uint64_t value = 0;
    (void)qn__json_u64(qn__json_get(object, key), &value);
    return value;
}

const char *qn__fact_text(const qn__json_node *object, const char *key) {
    const char *text = qn__json_string(qn__json_get(object, key));
    return text ? text : "";
}

const char *qn__past_run_text(const qn__past_run *run, const char *key) {
    return qn__fact_text(run->facts, key);
}

int qn__past_run_number(const qn__json_node *node, char text[64]) {
    uint64_t whole;
    float value;
    if (qn__json_u64(node, &whole))
        snprintf(text, 64, "%" PRIu64, whole);
    else if (qn__json_float(node, &value))
        qn__float_text(value, text);
    else
        return 0;
    return 1;
}

uint64_t qn__past_run_epoch(const qn__past_run *run, uint64_t row) {
    return (uint64_t)run->value[row * run->columns + EPOCH];
}
