/* The state of a qn_kernel (quern/kernel.h). */
#ifndef QN_USERKERNEL_RUN_USER_KERNEL_H
#define QN_USERKERNEL_RUN_USER_KERNEL_H

#include "base/files/file.h"
#include "base/files/folder_lock.h"
#include "team/queue.h"
#include "team/rank_reports.h"
#include "userkernel/compiler/user_compile.h"
#include "userkernel/execution/user_array.h"
#include "userkernel/execution/user_device.h"
#include "userkernel/execution/user_run.h"
#include "userkernel/run/user_part_rows.h"
#include <quern/kernel.h>

/* The binding of a declaration, and its results. */
typedef struct qn__user_bound {
    qn__user_array array; /* of an input or output; memory of a caller is not owned */
    char *path;           /* its file, or NULL */
    int is_refused;     /* 1: a recipe names the file, but may not open it (qn_kernel_allow_path) */
    qn__writer *writer; /* of an output during a run that writes it: its file; not owned */
    int lent;           /* `array` is memory of a caller */
    int in_parts;       /* 1: each rank has rows of it; `path` is what it reads, or the name of its
                           file, with %r for its number; else `own` is memory of the caller */
    qn__user_array own; /* of this rank */
    uint64_t scalar;    /* the bytes of its value */
    int has_scalar;
    char digest[65];   /* of the array, where it was asked for */
    char wanted[65];   /* by the recipe that is replayed; "": none */
    char text[40];     /* the value of a scalar, or of a result */
    int has_value;     /* `text` is a result */
    char expected[40]; /* the same by the recipe */
    int expects;       /* 1: the recipe has a result with that value; 2: one without a value */
    uint64_t item[QN_KERNEL_DIMENSIONS];
    uint64_t count;
    uint64_t expected_item[QN_KERNEL_DIMENSIONS];
    int wants_series;      /* of a sum, extreme or count: its number in every iteration is kept */
    qn__user_array series; /* of the last run */
    char *series_path;     /* its file, or NULL */
    char series_digest[65], series_wanted[65]; /* as those of an array */
} qn__user_bound;

typedef struct qn__state_file qn__state_file;

/* Checkpoints of a run (userkernel/run/user_checkpoint.h). */
typedef struct qn__user_checkpoint {
    const char *path;    /* NULL: none; of the options of the run */
    double seconds;      /* between two; 0: not by time */
    uint64_t iterations; /* between two; 0: not by their number */
    int resume;
    uint64_t from;        /* the iterations that are done when the run begins */
    uint64_t items;       /* of a run of one iteration: those that the last state has */
    qn__state_file *file; /* userkernel/run/user_state_file.h; NULL without a path */
    int is_partial;       /* 1: the file had a later state, which was incomplete */
    double written;       /* time of the last one, or of the begin */
    int is_resumed;       /* 1: the run continues from the file */
    int is_own;      /* 1: the file, if it exists, was written by this run or by the run that it
                        continues */
    char note[1040]; /* why the last one could not be written; "" */
    qn__lock lock;
} qn__user_checkpoint;

/* The items that the workers of this process computed before the set of workers, or the size of
 * grains, changed last. */
typedef struct qn__user_counts {
    double items[QN__MAX_WORKERS];        /* of each worker */
    uint64_t grains[QN__MAX_WORKERS];     /* the team's count at that time */
    uint64_t iterations[QN__MAX_WORKERS]; /* in which it took part */
    uint64_t computed, at;                /* all grains, and the next iteration */
    uint64_t used;                        /* the workers of now, as a bit set */
} qn__user_counts;

/* The state of the reports of a run: progress, trace, workers. */
typedef struct qn__user_watch {
    void (*on_progress)(void *user, const qn_kernel_progress *progress);
    qn_note_fn on_note;
    void *user;
    const char *trace_path;
    qn__trace *trace;
    double begun, waiting; /* time, and seconds that this rank had waited for others before */
    int64_t begin;         /* the first item that this run computes */
    qn__rank_reports reports;
    qn__user_counts counts;
} qn__user_watch;

struct qn_kernel {
    char *text, *name;
    qn__user_source source;
    qn__user_code code;
    int compiled;
    qn_error no_host;                     /* why it is not compiled for processors */
    qn__user_device *device;              /* its programs for devices; NULL: not written yet */
    char devices[128];                    /* those that took part in the last run */
    uint64_t shape[QN_KERNEL_DIMENSIONS]; /* of the index space, as it was set; 0: it was not */
    uint64_t seed;                        /* of random numbers */
    qn__user_bound part[QN__USER_PARTS];
    uint64_t iterations; /* of the last run, or of the recipe */
    int is_recipe;       /* it came from a recipe */
    int has_run;
    atomic_int stop;               /* qn_kernel_stop was called during this run */
    atomic_int hurries;            /* qn__remote_hurry */
    _Atomic(qn_cluster *) cluster; /* of this run; NULL: none */
    qn__user_checkpoint checkpoint;
    qn_compute compute; /* devices and ranks of this run */
    qn_kernel_report report;
    qn__user_watch watch;
    qn__user_job job;        /* of the last run */
    qn__part_space *divided; /* of this run; NULL: no array is in parts */
};

/* Sets type, dimensions and shape of what the run writes to a declaration; `shape` is that of the
 * index space. */
void qn__user_array_declare(const qn_kernel *kernel, uint32_t part,
                            const uint64_t shape[QN_KERNEL_DIMENSIONS], qn__user_array *array);

/* The dimensions of the array of part `part`. */
uint32_t qn__user_dimensions(const qn_kernel *kernel, uint32_t part);

/* Whether an array fits its declaration; `path` and `place` are for messages. Fail with
 * QN_INPUT (the type) or QN_USAGE (the dimensions). */
qn_status qn__user_check_type(const qn_kernel *kernel, uint32_t part, const qn__user_array *array,
                              const char *path, qn_error *err);
qn_status qn__user_check_dimensions(const qn_kernel *kernel, uint32_t part, uint32_t dimensions,
                                    const char *place, qn_error *err);

/* Lengths above 0 whose product is an index space or an array, which messages call `what`. Fails
 * with QN_USAGE. */
qn_status qn__user_check_shape(const uint64_t *shape, uint32_t dimensions, const char *what,
                               qn_error *err);

/* The declaration of that name; QN__USER_PARTS: there is none. */
uint32_t qn__user_part_named(const qn_kernel *kernel, const char *name);

/* Makes a kernel of a text, which is copied. */
qn_status qn__user_kernel_make(const char *text, const char *name, qn_kernel **out, qn_error *err);

/* The recipe of the last run as a JSON text. */
void qn__user_recipe_write(const qn_kernel *kernel, qn__text *out);

/* Reads a recipe into a new kernel. `path` is for messages. */
qn_status qn__user_recipe_read(const char *json, size_t size, const char *path, qn_kernel **out,
                               qn_error *err);

#endif
