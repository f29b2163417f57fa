/* Many files that are answered as they come. The thread of the watch finds files, stores answers
 * and settles what becomes of a file; further threads read and submit. Which files are done is what
 * the table holds. */
#ifndef QN_SERVE_WATCH_MANY_H
#define QN_SERVE_WATCH_MANY_H

#include "serve/watch/watch_files.h"
#include "serve/watch/watch_names.h"
#include "serve/watch/watch_readers.h"
#include "serve/watch/watch_state.h"

typedef struct qn__watch_many qn__watch_many;

/* Where the files are. */
typedef struct qn__watch_place {
    /* Calls qn__watch_saw for each file, and qn__watch_complete for those that are complete. */
    qn_status (*look)(qn__watch_many *all, qn_error *err);
    /* The same for what was told since; NULL: nothing is told. */
    qn_status (*told)(qn__watch_many *all, qn_error *err);
    /* Reads a file, as qn__watch_file_read. Any thread. */
    qn__skip (*read)(qn__watch_many *all, const qn__watch_task *task, qn__watch_bytes *out,
                     qn__watch_unit *unit);
    /* A file that was read is to be read again. Any thread; or NULL. */
    void (*drop)(qn__watch_many *all, const qn__watch_bytes *bytes);
    /* Its answer is stored; or NULL. */
    void (*done)(qn__watch_many *all, const char *name);
} qn__watch_place;

struct qn__watch_many {
    qn_watch *w;
    const qn__watch_place *place;
    void *own; /* of the place */
    qn__watch_names names;
    qn__watch_readers readers;
    uint64_t looks;     /* at all files */
    uint64_t unsettled; /* files that may not be complete, at the last look */
    double stored;      /* when answers were stored */
    double sweep;       /* when to look for names that are gone */
    double next_look;   /* when to look again; 0: an event says it */
    int event;          /* a descriptor that can be read when something was told; -1: none */
    int polls;          /* 1: not all is told */
    int is_partial;     /* 1: the last look did not see all files */
    int notes;          /* about files that could not be read */
};

/* Runs until the end, with `readers` threads. What it has is answered and stored by then. */
qn_status qn__watch_many_run(qn__watch_many *all, int readers, qn_error *err);
void qn__watch_many_release(qn__watch_many *all);

/* The entry of a file that a look sees; NULL without memory. */
qn__watch_name *qn__watch_saw(qn__watch_many *all, const char *name, qn_error *err);
/* A file is complete: it is read, unless its answer is stored. */
qn_status qn__watch_complete(qn__watch_many *all, qn__watch_name *entry, qn_error *err);
/* Stores the answers that are there, if the last ones were stored a while ago: for each file of a
 * look that takes long. */
qn_status qn__watch_store_meanwhile(qn__watch_many *all, qn_error *err);
/* All files are looked at soon. */
void qn__watch_look_soon(qn__watch_many *all);

#endif
