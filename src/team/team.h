/* The team: the workers of this rank, the queue they pull grains from, and this rank's part in the
 * reductions of a cluster.
 *
 * Above it a job says "do this step"; below it devices compute grains. Only here is known how many
 * workers there are, who takes part in a step, who has the newest state, and who was lost. A team
 * is used by one thread at a time.
 *
 * A device that fails loses its worker, nothing else: what only it had is computed again by the
 * others, from the last state that someone still has, over the steps that the team remembers. A
 * rank without any worker fails with QN_DEVICE; the other ranks continue when it has left them.
 *
 * Among ranks qn__team_create, qn__team_step and qn__team_apply are reductions of all: every rank
 * makes the same calls in the same order, with a state that is the same. QN_CLUSTER, and what
 * qn__cluster_fail told of, come out of them. */
#ifndef QN_TEAM_TEAM_H
#define QN_TEAM_TEAM_H

#include "base/trace.h"
#include "device/device.h"
#include <quern/train.h>

typedef struct qn__team qn__team;

typedef struct qn__member {
    const qn__device_table *device;
    uint32_t index; /* which of the backend's devices */
    int threads;    /* CPU: its cores, 0: what compute->threads says */
    double share;   /* fixed part of every step's grains (compute->shares); 0: by measured speed */
    int optional; /* 1: not named by itself; when it cannot be opened the others continue without */
} qn__member;

/* Opens a worker on each of the members (1 .. 64). The program must outlive the team. When
 * `members` is NULL they come from compute->devices (team/members.h), those of a machine with
 * several ranks divided among them (team/portion.h). Fails with QN_UNSUPPORTED
 * when a device lacks an operation, or as the device's open does; an optional member that cannot
 * be had is left out, and the report says why, unless it is the last one. */
qn_status qn__team_create(const qn__program *program, const qn_compute *compute,
                          const qn__member *members, uint32_t count, qn__team **out, qn_error *err);
void qn__team_destroy(qn__team *team);

/* Parameters and optimiser state, for every worker, and the beginning of what steps are counted
 * from. The arrays become the team's copy on the host: they stay with the caller, who leaves them
 * in place and as they are until the next load or the team's end, but for qn__team_save. */
qn_status qn__team_load(qn__team *team, const qn__state *state, qn_error *err);

/* The newest state, into the arrays of the last load or into others. The former become the point
 * that lost steps are computed again from; when the call fails they are unchanged. All tallies must
 * have been fetched (qn__team_flush). */
qn_status qn__team_save(qn__team *team, qn__state *state, qn_error *err);

/* 1 when it is time to qn__team_save into the arrays of the load: what would be lost with the
 * workers has become more than some seconds of work. Never where the newest state is with the CPU.
 * A save so asked for takes less than a hundredth of the time. */
int qn__team_save_due(const qn__team *team);

/* One step: all grains of `batch`, their sums over all workers and ranks, the update. Adds loss and
 * right answers to *tally, those of the last few steps perhaps only with later calls. `next` is the
 * batch that will follow, or NULL. update->step must be set. A worker that fails is lost, its
 * grains go to the others and `note` is reported; QN_DEVICE when none is left: the host's copy is
 * then whole and of the state after its last load or save. After another failure the state of the
 * workers is undefined. A QN_NUMERIC of an earlier step names it in err->where. */
qn_status qn__team_step(qn__team *team, const qn__batch *batch, const qn__batch *next,
                        const qn__update *update, qn__tally *tally, qn_error *err);

/* Waits for all steps and adds what they still owe to *tally. Fails as qn__team_step does. */
qn_status qn__team_flush(qn__team *team, qn__tally *tally, qn_error *err);

/* Forward over `batch`, of any number of items, shared among the workers in pieces of whole grains
 * of at most qn__apply_room items. QN_NUMERIC names the first item whose output is not finite. All
 * tallies must have been fetched. */
qn_status qn__team_apply(qn__team *team, const qn__batch *batch, qn__applied *applied,
                         qn__tally *tally, qn_error *err);

/* Steps that will be asked for, so that a short job is not spent on trials; else they are taken
 * for many. */
void qn__team_expect(qn__team *team, uint64_t steps);

/* Who is reported of lost workers, and of members that could not be had; NULL: nobody. */
void qn__team_notes(qn__team *team, qn_note_fn note, void *user);

/* Where spans are recorded from now on, a track for each worker; NULL: nowhere. The trace must
 * outlive the team. */
void qn__team_trace(qn__team *team, qn__trace *trace);

/* For tests and experiments: who takes part in a step, a bit for each member, instead of whoever
 * measurements say. Members that are lost are left out; nobody means all. */
void qn__team_pick(qn__team *team, uint64_t (*pick)(void *user, uint64_t step), void *user);

/* Reads the energy counters of the members' devices, at the beginning of a stretch of the run whose
 * energy counts (begin = 1), at its end, and every few minutes in between. */
void qn__team_meter(qn__team *team, int begin);

/* Ranks that the run was started with, 1 for a process alone; and the bytes that reductions of this
 * team had to send to other machines and receive from them, by count. */
uint32_t qn__team_ranks(const qn__team *team);
void qn__team_counted(const qn__team *team, uint64_t *out, uint64_t *in);

/* Members that still work. */
uint32_t qn__team_workers(const qn__team *team);

/* Seconds that finding out who should take part has cost beyond what the chosen would have taken,
 * and the steps computed again after losses. */
double qn__team_trial_seconds(const qn__team *team);
uint64_t qn__team_repeated(const qn__team *team);

/* What each worker did since the team was made; `seconds` is the time that busy shares are taken
 * of. *bound_rate: items a second of all that took part, each counted for the part of the steps
 * that it took part in. The array and what it points to belong to the team until the next call. */
const qn_worker_report *qn__team_report(qn__team *team, double seconds, uint32_t *count,
                                        double *bound_rate);

#endif
