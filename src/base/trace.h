/* A record of what happened when, as a Chrome trace (chrome://tracing, Perfetto): spans and marks
 * on tracks, one for each worker and so on.
 *
 * Any thread may record at any time, without waiting; what is recorded takes 64 bytes. When the
 * room is used up, later records are dropped and counted. Every function accepts a NULL trace and
 * does nothing, which is how tracing is off. Names and keys are texts that stay (literals). */
#ifndef QN_BASE_TRACE_H
#define QN_BASE_TRACE_H

#include "base/error.h"
#include "base/text.h"
#include <stddef.h>
#include <stdint.h>

typedef struct qn__trace qn__trace;

/* A number told with a span; key NULL: none. */
typedef struct qn__trace_value {
    const char *key;
    uint64_t value;
} qn__trace_value;

/* Room for `room` records (0: a quarter of a million); memory is taken only as it is used. Moments
 * count from here. */
qn_status qn__trace_create(size_t room, qn__trace **out, qn_error *err);
void qn__trace_free(qn__trace *trace);

/* A further track (at most 128; later ones are the last again), named in the picture. The name is
 * copied. Returns its number. Not while others record. */
uint32_t qn__trace_track(qn__trace *trace, const char *name);

/* A span of the track, between two moments of qn__now; spans of a track nest or lie apart. */
void qn__trace_span(qn__trace *trace, uint32_t track, const char *name, double begun, double ended,
                    qn__trace_value first, qn__trace_value second);

/* A mark at a moment, with a text (copied, up to 160 bytes; at most some thousand texts). */
void qn__trace_mark(qn__trace *trace, uint32_t track, const char *name, double moment,
                    const char *text);

/* Where a trace goes, and who is asked before it takes that place (qn__writer_ask; may be NULL). */
typedef struct qn__trace_place {
    const char *path;
    int (*may)(void *user);
    void *user;
} qn__trace_place;

/* Writes the file (base/file.h: beside its place, then renamed). Not while others record. */
qn_status qn__trace_write(const qn__trace *trace, const qn__trace_place *place, qn_error *err);

/* For a trace of several processes: how this one is called, and what its moments, counted from the
 * beginning of its trace, are later than those of the picture. */
typedef struct qn__trace_process {
    uint32_t number; /* from 1; processes stand in this order */
    const char *name;
    double later; /* seconds */
} qn__trace_process;

/* Moment of qn__now at which the trace began; records that found no room. */
double qn__trace_begun(const qn__trace *trace);
size_t qn__trace_dropped(const qn__trace *trace);

/* Appends the events to `text`, as one process's part of a trace. */
qn_status qn__trace_events(const qn__trace *trace, const qn__trace_process *process, qn__text *text,
                           qn_error *err);

/* Writes a file of the parts of several processes; those without bytes are left out. `begun`: the
 * moment of qn__now from which the picture counts. Told as "begun_us", as with one process. */
typedef struct qn__trace_events_of {
    const char *text;
    size_t size;
} qn__trace_events_of;
qn_status qn__trace_write_joined(const qn__trace_events_of *part, uint32_t parts, size_t dropped,
                                 double begun, const qn__trace_place *place, qn_error *err);

#endif
