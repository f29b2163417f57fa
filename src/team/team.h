/* The team: the workers of this rank, the queue they pull grains from, and the transport to the
 * other ranks.
 *
 * Above it a job says "do this step"; below it devices compute grains. Only here is known how many
 * workers there are. A team is used by one thread at a time. */
#ifndef QN_TEAM_TEAM_H
#define QN_TEAM_TEAM_H

#include "device/device.h"
#include "team/transport.h"
#include <quern/train.h>

typedef struct qn__team qn__team;

typedef struct qn__member {
    const qn__device_table *device;
    uint32_t index; /* which of the backend's devices */
    int threads;    /* CPU: its cores, 0: what compute->threads says */
    double share;   /* fixed part of every step's grains (compute->shares); 0: by measured speed */
    int optional;   /* 1: not named by itself; when it cannot be opened the others go on without */
} qn__member;

/* Opens a worker on each of the members (1 .. 64). The program must outlive the team. When
 * `members` is NULL the team is the CPU alone. Fails with QN_UNSUPPORTED when a device lacks an
 * operation, or as the device's open does. */
qn_status qn__team_create(const qn__program *program, const qn_compute *compute,
                          const qn__member *members, uint32_t count, qn__team **out, qn_error *err);
void qn__team_destroy(qn__team *team);

/* Parameters and optimiser state, into every worker and out of one that is left. */
qn_status qn__team_load(qn__team *team, const qn__state *state, qn_error *err);
qn_status qn__team_save(qn__team *team, qn__state *state, qn_error *err);

/* One step: all grains of `batch`, their sums over all workers and ranks, the update. Adds loss and
 * right answers to *tally. `next` is the batch that will follow, or NULL. A worker that fails is
 * lost, its grains go to the others and `note` is told; QN_DEVICE when none is left. After any
 * failure the state of the workers is undefined. */
qn_status qn__team_step(qn__team *team, const qn__batch *batch, const qn__batch *next,
                        const qn__update *update, qn__tally *tally, qn_error *err);

/* Forward over `batch`, whose items are at most qn__apply_room, on one worker. */
qn_status qn__team_apply(qn__team *team, const qn__batch *batch, qn__applied *applied,
                         qn__tally *tally, qn_error *err);

/* Who is told of lost workers; NULL: nobody. */
void qn__team_notes(qn__team *team, qn_note_fn note, void *user);

/* Members that still work. */
uint32_t qn__team_workers(const qn__team *team);

/* What each worker did since the team was made; `seconds` is the time that busy shares are taken
 * of. The array and what it points to belong to the team until the next call. */
const qn_worker_report *qn__team_report(qn__team *team, double seconds, uint32_t *count,
                                        double *bound_rate);

#endif
