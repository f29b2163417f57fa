/* A run of a user kernel: its arrays, sizes and callbacks. */
#ifndef QN_USERKERNEL_EXECUTION_USER_JOB_H
#define QN_USERKERNEL_EXECUTION_USER_JOB_H

#include "userkernel/compiler/user_program.h"
#include <quern/cluster.h>
#include <stdatomic.h>

/* Most bytes of outputs that ranks exchange at once. */
enum { QN__USER_ROUND_BYTES = 1 << 25 };

struct qn__user_total;

typedef struct qn__user_job {
    const qn__user_source *source;
    qn__user_grain *grain;          /* NULL: no compiler; only devices compute it */
    struct qn__user_device *device; /* its programs for devices; NULL: only processors compute it */
    void *array[QN__USER_PARTS];    /* inputs and outputs; NULL of other parts */
    const void *scalar[QN__USER_PARTS];
    int64_t length[QN__USER_PARTS * QN__USER_DIMENSIONS];
    int64_t extent[QN__USER_DIMENSIONS]; /* the first ones are 1; their product is below 2^62 */
    int64_t items_of_grain;              /* 0: chosen by the number of items */
    const atomic_int *stop;              /* not 0: no further items are taken; NULL: never */
    int64_t iteration, iterations;       /* the number of this one, and how many there are */
    uint64_t seed;                       /* of random numbers */
    qn_cluster *cluster;                 /* that of the team; NULL: this process is alone */
    /* Optional: called a few times a second with the items that are computed, by the thread that
     * called qn__user_job_run. */
    void (*progress)(void *user, int64_t done);
    void *user;
    double told;       /* time of its last call, over all runs of the job; 0: none yet */
    uint64_t computed; /* grains that all runs have computed, of all ranks */
    double pace;       /* grains per second of all ranks, as measured by earlier runs; 0: unknown */
    int64_t steps;     /* iterations of a run, from `iteration` on; at least 1 */
    int without_totals; /* 1: only outputs are wanted */
    double seconds;     /* of a run, the same on all ranks: among them of the one before */
    double own_seconds; /* of the last run of this rank */
    /* Items before this one, a multiple of 8, are done by an earlier run, as the outputs are. */
    int64_t begin;
    int64_t end;    /* of the items that are computed; 0: all are, from `begin` on */
    int64_t faulty; /* of the last run: the first faulty item; INT64_MAX: none is */
    /* Optional: called between rounds with the number of items that are done and their totals.
     * Rounds are then short, and take the items in order. A stop waits for the round. */
    void (*after_round)(void *keeper, int64_t done, struct qn__user_total *total, int stopped);
    void *keeper;
    struct qn__user_kept *kept; /* memory that threads keep for the next run; NULL: none */
} qn__user_job;

int64_t qn__user_job_items(const qn__user_job *job);

/* What the program is called with for an iteration; `array`: see qn__user_call. */
qn__user_call qn__user_call_of(const qn__user_job *job, void *const *array, int64_t iteration);

/* Bytes of the outputs of an item. */
int64_t qn__user_job_bytes(const qn__user_job *job);

/* The length of the first dimension of the index space. */
int64_t qn__user_job_rows(const qn__user_job *job);

/* Items of a grain, a multiple of 8. */
int64_t qn__user_job_grain(const qn__user_job *job);

#endif
