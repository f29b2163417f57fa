/* When each worker computed, from a trace (docs/formats.md). The file may come from anywhere. */
#include "base/files/file.h"
#include "base/memory.h"
#include "report/page/page.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* Rows of the picture at most. */
enum { ROWS = 64 };

typedef struct timeline {
    qn__chart_strip row[ROWS];
    uint64_t process[ROWS], thread[ROWS];
    char name[ROWS][96];
    int used[ROWS]; /* 1: it has a span */
    uint32_t rows;
    double begin, end; /* microseconds */
} timeline;

static double number_of(const qn__json_node *object, const char *key) {
    float value;
    return qn__json_float(qn__json_get(object, key), &value) ? (double)value : 0;
}

static int is(const qn__json_node *event, const char *key, const char *value) {
    const char *text = qn__json_string(qn__json_get(event, key));
    return text && strcmp(text, value) == 0;
}

/* The row of a thread; ROWS where there is none. */
static uint32_t row_of(const timeline *t, const qn__json_node *event) {
    uint32_t row = 0;
    while (row < t->rows && (t->process[row] != qn__fact_count(event, "pid") ||
                             t->thread[row] != qn__fact_count(event, "tid")))
        ++row;
    return row < t->rows ? row : ROWS;
}

static void add_row(timeline *t, const qn__json_node *event) {
    const char *name = qn__json_string(qn__json_get(qn__json_get(event, "args"), "name"));
    if (!is(event, "name", "thread_name") || !name || t->rows == ROWS)
        return;
    t->process[t->rows] = qn__fact_count(event, "pid");
    t->thread[t->rows] = qn__fact_count(event, "tid");
    snprintf(t->name[t->rows++], sizeof t->name[0], "%.80s", name);
}

/* The part of a span that lies in each bucket. */
static void add_span(timeline *t, const qn__json_node *event) {
    const uint32_t row = row_of(t, event);
    const double width = (t->end - t->begin) / QN__CHART_BUCKETS;
    const double from = (number_of(event, "ts") - t->begin) / width;
    const double to = from + number_of(event, "dur") / width;
    if (row == ROWS || !(width > 0) || !(from < QN__CHART_BUCKETS))
        return;
    t->used[row] = 1;
    for (int b = from > 0 ? (int)from : 0; b < QN__CHART_BUCKETS && b < to; ++b) {
        const double low = from > b ? from : b, high = to < b + 1 ? to : b + 1;
        if (high > low)
            t->row[row].part[b] += (float)(high - low);
    }
}

static void measure(timeline *t, const qn__json_node *event) {
    const double from = number_of(event, "ts"), to = from + number_of(event, "dur");
    t->begin = from < t->begin || t->end <= t->begin ? from : t->begin;
    t->end = to > t->end ? to : t->end;
}

/* Rows of the ranks of a cluster have the number of their rank. */
static uint32_t keep_used(timeline *t) {
    uint32_t kept = 0;
    int several = 0;
    for (uint32_t r = 1; r < t->rows; ++r)
        several |= t->process[r] != t->process[0];
    for (uint32_t r = 0; r < t->rows; ++r) {
        char name[96];
        if (!t->used[r])
            continue;
        memcpy(name, t->name[r], sizeof name);
        if (several)
            snprintf(t->name[kept], sizeof t->name[0], "%" PRIu64 "/%.70s",
                     t->process[r] > 0 ? t->process[r] - 1 : 0, name);
        else
            memcpy(t->name[kept], name, sizeof name);
        t->row[kept] = t->row[r];
        t->row[kept].name = t->name[kept];
        ++kept;
    }
    return kept;
}

static void draw(qn__page *page, const qn__json_node *events, timeline *t) {
    for (size_t i = 0; i < qn__json_count(events); ++i) {
        const qn__json_node *event = qn__json_at(events, i);
        if (is(event, "ph", "M"))
            add_row(t, event);
        else if (is(event, "ph", "X"))
            measure(t, event);
    }
    for (size_t i = 0; i < qn__json_count(events); ++i)
        if (is(qn__json_at(events, i), "ph", "X"))
            add_span(t, qn__json_at(events, i));
    const uint32_t rows = keep_used(t);
    if (rows == 0)
        return;
    qn__text_add(&page->html, "<h3>Timeline</h3>\n<div class=\"charts\">\n");
    qn__page_strips(page, "timeline", "Timeline of the run", t->row, rows,
                    (t->end - t->begin) / 1e6);
    qn__text_add(&page->html, "</div>\n");
}

void qn__page_timeline(qn__page *page) {
    qn__bytes bytes = {0};
    qn__json *json = NULL;
    if (!page->trace || page->status != QN_OK)
        return;
    timeline *t = qn__alloc(1, sizeof *t, page->err);
    page->status = t ? qn__file_read(page->trace, &bytes, page->err) : QN_MEMORY;
    if (page->status == QN_OK)
        page->status = qn__json_parse((const char *)bytes.data, bytes.size, &json, page->err);
    if (page->status == QN_OK) {
        memset(t, 0, sizeof *t);
        draw(page, qn__json_get(qn__json_root(json), "traceEvents"), t);
    } else if (page->status == QN_FORMAT) {
        qn__fail(page->err, QN_FORMAT, "the file is not a trace of a run");
        qn__at(page->err, "%.400s", page->trace);
        page->status = qn__remedy(page->err, QN_FORMAT,
                                  "name the file that a training wrote "
                                  "for `train.trace`");
    }
    qn__json_free(json);
    qn__bytes_release(&bytes);
    qn__free(t);
}
