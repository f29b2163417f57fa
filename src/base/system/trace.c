#include "base/system/trace.h"

#include "base/files/file.h"
#include "base/memory.h"
#include "base/system/clock.h"
#include "base/text/text.h"
#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

enum { ROOM = 1 << 18, TRACKS = 128, TEXTS = 4096, TEXT = 160, NO_TEXT = UINT16_MAX };

typedef struct record {
    const char *name;
    double begun, seconds; /* since the start of the trace */
    qn__trace_value value[2];
    uint16_t track, text;
    uint8_t mark;
} record;

struct qn__trace {
    double begun;
    size_t capacity;
    atomic_size_t records; /* requested; more than `capacity` when some were dropped */
    atomic_uint texts;
    uint32_t tracks;
    char track[TRACKS][64];
    char (*text)[TEXT];
    record *record;
};

qn_status qn__trace_create(size_t capacity, qn__trace **out, qn_error *err) {
    *out = NULL;
    qn__trace *t = qn__alloc(1, sizeof *t, err);
    if (!t)
        return QN_MEMORY;
    t->capacity = capacity ? capacity : ROOM;
    t->begun = qn__now();
    t->record = qn__alloc(t->capacity, sizeof *t->record, err);
    t->text = qn__alloc(TEXTS, sizeof *t->text, err);
    if (!t->record || !t->text) {
        qn__trace_free(t);
        return QN_MEMORY;
    }
    *out = t;
    return QN_OK;
}

void qn__trace_free(qn__trace *t) {
    if (!t)
        return;
    qn__free(t->record);
    qn__free(t->text);
    qn__free(t);
}

uint32_t qn__trace_track(qn__trace *t, const char *name) {
    if (!t)
        return 0;
    const uint32_t track = t->tracks < TRACKS ? t->tracks++ : TRACKS - 1;
    snprintf(t->track[track], sizeof t->track[track], "%s", name);
    return track;
}

static record *new_record(qn__trace *t) {
    const size_t at = atomic_fetch_add_explicit(&t->records, 1, memory_order_relaxed);
    return at < t->capacity ? &t->record[at] : NULL;
}

void qn__trace_span(qn__trace *t, uint32_t track, const char *name, double begun, double ended,
                    qn__trace_value first, qn__trace_value second) {
    record *r = t ? new_record(t) : NULL;
    if (!r)
        return;
    begun = begun > t->begun ? begun : t->begun;
    *r = (record){.name = name,
                  .begun = begun - t->begun,
                  .seconds = ended > begun ? ended - begun : 0,
                  .value = {first, second},
                  .track = (uint16_t)track,
                  .text = NO_TEXT};
}

void qn__trace_mark(qn__trace *t, uint32_t track, const char *name, double moment,
                    const char *text) {
    record *r = t ? new_record(t) : NULL;
    if (!r)
        return;
    *r = (record){.name = name,
                  .begun = moment > t->begun ? moment - t->begun : 0,
                  .track = (uint16_t)track,
                  .text = NO_TEXT,
                  .mark = 1};
    const uint32_t at = text ? atomic_fetch_add(&t->texts, 1) : TEXTS;
    if (at >= TEXTS)
        return;
    snprintf(t->text[at], TEXT, "%s", text);
    r->text = (uint16_t)at;
}

/* By start; of those that start together the longest first, since it contains the others. */
static int earlier(const void *a, const void *b) {
    const record *p = *(const record *const *)a, *q = *(const record *const *)b;
    if (p->begun != q->begun)
        return p->begun < q->begun ? -1 : 1;
    if (p->seconds != q->seconds)
        return p->seconds > q->seconds ? -1 : 1;
    return 0;
}

/* The names of the process and its tracks; the first members of a list, without a comma before
 * them. */
static void add_names(qn__text *text, const qn__trace *t, const qn__trace_process *process) {
    qn__text_add(text,
                 "{\"ph\":\"M\",\"pid\":%u,\"tid\":0,\"name\":\"process_name\",\"args\":{\"name\":",
                 process->number);
    qn__text_add_json(text, process->name);
    qn__text_add(text, "}}");
    for (uint32_t i = 0; i < t->tracks; ++i) {
        qn__text_add(text,
                     ",\n{\"ph\":\"M\",\"pid\":%u,\"tid\":%u,\"name\":\"thread_name\","
                     "\"args\":{\"name\":",
                     process->number, i + 1);
        qn__text_add_json(text, t->track[i]);
        qn__text_add(text,
                     "}},\n{\"ph\":\"M\",\"pid\":%u,\"tid\":%u,\"name\":\"thread_sort_index\","
                     "\"args\":{\"sort_index\":%u}}",
                     process->number, i + 1, i);
    }
}

/* Times are written in whole nanoseconds, as microseconds, so that adjacent spans are still
 * adjacent after rounding. */
static void add_record(qn__text *text, const qn__trace *t, const qn__trace_process *process,
                       const record *r) {
    const double at = r->begun + process->later > 0 ? r->begun + process->later : 0;
    const int64_t begun = (int64_t)(at * 1e9), ended = (int64_t)((at + r->seconds) * 1e9);
    qn__text_add(text, ",\n{\"ph\":\"%s\",\"pid\":%u,\"tid\":%u,\"name\":", r->mark ? "i" : "X",
                 process->number, r->track + 1u);
    qn__text_add_json(text, r->name);
    qn__text_add(text, ",\"ts\":%" PRId64 ".%03d", begun / 1000, (int)(begun % 1000));
    if (r->mark)
        qn__text_add(text, ",\"s\":\"t\"");
    else
        qn__text_add(text, ",\"dur\":%" PRId64 ".%03d", (ended - begun) / 1000,
                     (int)((ended - begun) % 1000));
    qn__text_add(text, ",\"args\":{");
    int some = 0;
    for (int i = 0; i < 2; ++i)
        if (r->value[i].key) {
            qn__text_add(text, "%s\"%s\":%" PRIu64, some ? "," : "", r->value[i].key,
                         r->value[i].value);
            some = 1;
        }
    if (r->text != NO_TEXT) {
        qn__text_add(text, "\"text\":");
        qn__text_add_json(text, t->text[r->text]);
    }
    qn__text_add(text, "}}");
}

/* ------------------------------------------------------------------------------------- writing */

size_t qn__trace_dropped(const qn__trace *t) {
    if (!t)
        return 0;
    const size_t asked = atomic_load(&t->records);
    return asked > t->capacity ? asked - t->capacity : 0;
}

double qn__trace_begun(const qn__trace *t) { return t ? t->begun : 0; }

/* Adds all events to `text`. With a writer, `text` is written and cleared when it is large. */
static qn_status add_events(const qn__trace *t, const qn__trace_process *process, qn__text *text,
                            qn__writer *writer, qn_error *err) {
    const size_t asked = atomic_load(&t->records),
                 count = asked < t->capacity ? asked : t->capacity;
    const record **order = qn__alloc(count, sizeof *order, err);
    qn_status status = QN_OK;
    if (!order)
        return QN_MEMORY;
    for (size_t i = 0; i < count; ++i)
        order[i] = &t->record[i];
    qsort(order, count, sizeof *order, earlier);
    add_names(text, t, process);
    for (size_t i = 0; i < count && status == QN_OK && !text->failed; ++i) {
        add_record(text, t, process, order[i]);
        if (!writer || text->size <= 1 << 16)
            continue;
        status = qn__writer_add(writer, text->data, text->size, err);
        text->size = 0;
    }
    qn__free(order);
    return text->failed ? qn__fail_memory(err, text->size, 1) : status;
}

qn_status qn__trace_events(const qn__trace *t, const qn__trace_process *process, qn__text *text,
                           qn_error *err) {
    return add_events(t, process, text, NULL, err);
}

static void add_head(qn__text *text, size_t dropped, double begun) {
    qn__text_add(text,
                 "{\"displayTimeUnit\":\"ms\",\"otherData\":{\"dropped\":%zu,"
                 "\"begun_us\":%" PRId64 "},\"traceEvents\":[\n",
                 dropped, (int64_t)(begun * 1e6));
}

/* Ends the list, and the file with it; frees the writer. */
static qn_status end_file(qn__writer *writer, const qn__trace_place *place, qn__text *text,
                          qn_status status, qn_error *err) {
    qn__text_add(text, "\n]}\n");
    if (status == QN_OK)
        status = text->failed ? qn__fail_memory(err, text->size, 1)
                              : qn__writer_add(writer, text->data, text->size, err);
    qn__text_release(text);
    qn__writer_ask(writer, place->may, place->user);
    return qn__writer_finish(writer, NULL, status, err);
}

qn_status qn__trace_write(const qn__trace *t, const qn__trace_place *place, qn_error *err) {
    const qn__trace_process process = {.number = 1, .name = "quern"};
    qn__writer *writer = NULL;
    qn__text text = {0};
    qn_status status = qn__writer_create(place->path, &writer, err);
    if (status != QN_OK)
        return status;
    add_head(&text, qn__trace_dropped(t), qn__trace_begun(t));
    status = add_events(t, &process, &text, writer, err);
    return end_file(writer, place, &text, status, err);
}

qn_status qn__trace_write_joined(const qn__trace_events_of *part, uint32_t parts, size_t dropped,
                                 double begun, const qn__trace_place *place, qn_error *err) {
    qn__writer *writer = NULL;
    qn__text text = {0};
    int some = 0;
    qn_status status = qn__writer_create(place->path, &writer, err);
    if (status != QN_OK)
        return status;
    add_head(&text, dropped, begun);
    for (uint32_t i = 0; i < parts && status == QN_OK; ++i) {
        if (part[i].size == 0)
            continue;
        qn__text_add(&text, "%s", some ? ",\n" : "");
        some = 1;
        status = text.failed ? qn__fail_memory(err, text.size, 1)
                             : qn__writer_add(writer, text.data, text.size, err);
        text.size = 0;
        if (status == QN_OK)
            status = qn__writer_add(writer, part[i].text, part[i].size, err);
    }
    return end_file(writer, place, &text, status, err);
}
