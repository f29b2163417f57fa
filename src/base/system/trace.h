/* A record of events and their times, as a Chrome trace (chrome://tracing, Perfetto): spans and
 * marks on tracks, such as one for each worker.
 *
 * Any thread may record at any time, without waiting; a record takes 64 bytes. When the space is
 * used up, later records are dropped and counted. Every function accepts a NULL trace and does
 * nothing, so NULL turns tracing off. Names and keys must be string literals or live as long as the
 * trace. */
#ifndef QN_BASE_SYSTEM_TRACE_H
#define QN_BASE_SYSTEM_TRACE_H

#include "base/error.h"
#include "base/text/text.h"
#include <stddef.h>
#include <stdint.h>

typedef struct qn__trace qn__trace;

/* A number recorded with a span; key NULL: none. */
typedef struct qn__trace_value {
    const char *key;
    uint64_t value;
} qn__trace_value;

/* Space for `capacity` records (0: a quarter of a million); memory is used only as records are
 * added. Times count from this call. */
qn_status qn__trace_create(size_t capacity, qn__trace **out, qn_error *err);
void qn__trace_free(qn__trace *trace);

/* Adds a track (at most 128; after that the last one is returned again). The name is copied.
 * Returns its number. Not while others record. */
uint32_t qn__trace_track(qn__trace *trace, const char *name);

/* A span of the track, between two times of qn__now; spans of a track nest or do not overlap. */
void qn__trace_span(qn__trace *trace, uint32_t track, const char *name, double begun, double ended,
                    qn__trace_value first, qn__trace_value second);

/* A mark at a time, with a text (copied, up to 160 bytes; at most some thousand texts). */
void qn__trace_mark(qn__trace *trace, uint32_t track, const char *name, double moment,
                    const char *text);

/* The file of a trace, and the callback before it is replaced (qn__writer_ask; may be NULL). */
typedef struct qn__trace_place {
    const char *path;
    int (*may)(void *user);
    void *user;
} qn__trace_place;

/* Writes the file (base/files/file.h: a temporary file beside it, then renamed). Not while others
 * record. */
qn_status qn__trace_write(const qn__trace *trace, const qn__trace_place *place, qn_error *err);

/* For a trace of several processes: the name of this one, and the offset that is added to its
 * times, which count from the start of its own trace. */
typedef struct qn__trace_process {
    uint32_t number; /* from 1; processes are shown in this order */
    const char *name;
    double later; /* seconds */
} qn__trace_process;

/* The time of qn__now at which the trace began; the number of dropped records. */
double qn__trace_begun(const qn__trace *trace);
size_t qn__trace_dropped(const qn__trace *trace);

/* Appends the events to `text`, as one process's part of a trace. */
qn_status qn__trace_events(const qn__trace *trace, const qn__trace_process *process, qn__text *text,
                           qn_error *err);

/* Writes a file of the parts of several processes; those without bytes are left out. `begun`: the
 * time of qn__now from which the trace counts. It is written as "begun_us", as with one process. */
typedef struct qn__trace_events_of {
    const char *text;
    size_t size;
} qn__trace_events_of;
qn_status qn__trace_write_joined(const qn__trace_events_of *part, uint32_t parts, size_t dropped,
                                 double begun, const qn__trace_place *place, qn_error *err);

#endif
