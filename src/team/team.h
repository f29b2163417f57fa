/* The team: the workers of this rank, the queue of their grains, and this rank's part in the
 * reductions of a cluster.
 *
 * Above it a job calls for a step, an application or the sums of a function; below it devices
 * compute grains. Only the team knows the number
 * of workers, which of them take part in a step, which have the newest state, and which were lost.
 * One thread at a time uses a team.
 *
 * A device that fails loses its worker only. The other workers compute its grains again, from the
 * last state that any of them has, over the steps that the team has logged. A rank without any
 * worker fails with QN_DEVICE; the other ranks continue after it has left.
 *
 * Among ranks qn__team_create, qn__team_step, qn__team_apply and qn__team_run are collective: every
 * rank makes the same calls in the same order, with equal states. They return QN_CLUSTER, and
 * failures passed to qn__cluster_fail. */
#ifndef QN_TEAM_TEAM_H
#define QN_TEAM_TEAM_H

#include "base/system/trace.h"
#include "device/device.h"
#include <quern/train.h>

typedef struct qn__team qn__team;

typedef struct qn__member {
    const qn__device_table *device;
    uint32_t index; /* index among the backend's devices */
    int threads;    /* CPU: number of cores, 0: compute->threads */
    double share;   /* fixed part of every step's grains (compute->shares); 0: by measured speed */
    int optional;   /* 1: not named individually; if it cannot be opened, the team continues without
                       it */
} qn__member;

/* Opens a worker on each member (1 .. 64). The program must outlive the team; NULL: the team
 * computes host jobs only (qn__team_run), "auto" means the CPU, and a device that computes networks
 * only is refused if it was named individually. `members` NULL: they come from compute->devices
 * (team/members.h), and ranks of one machine divide them (team/portion.h). Fails with
 * QN_UNSUPPORTED if a device does not support an operation, or as the device's open does. An
 * optional member that cannot be opened is left out, and the report gives the reason, unless it is
 * the last one. */
qn_status qn__team_create(const qn__program *program, const qn_compute *compute,
                          const qn__member *members, uint32_t count, qn__team **out, qn_error *err);
/* A team for host jobs that have a kernel: GPUs can be members, too, and are prepared for this one.
 * Its text, and what it points to, must outlive the team. A job may have another kernel, for which
 * GPUs are prepared when it runs; one that cannot is lost. NULL: as qn__team_create. */
qn_status qn__team_create_for(const qn__kernel_job *kernel, const qn_compute *compute,
                              qn__team **out, qn_error *err);
void qn__team_destroy(qn__team *team);

/* Loads parameters and optimiser state into every worker; steps are counted from here. The arrays
 * become the team's host copy. They stay the caller's, who leaves them unchanged until the next
 * load or the end of the team, except for qn__team_save. */
qn_status qn__team_load(qn__team *team, const qn__state *state, qn_error *err);

/* Whether the state is there that a rank gets which joins. *arrived 1: the arrays of the last load
 * have it. `wait` 1: waits until they do. */
typedef struct qn__arrival {
    void *user;
    qn_status (*arrived)(void *user, int wait, int *arrived, qn_error *err);
} qn__arrival;

/* After qn__team_load, among ranks: what was loaded is not the state yet, which arrives in these
 * arrays later. Until then the team takes part in steps without computing grains. Every other call
 * waits for the state. */
void qn__team_follow(qn__team *team, const qn__arrival *arrival);
/* For tests: the updates that a team keeps before it looks whether the state is there. */
extern uint64_t qn__team_follow_least;

/* Saves the newest state to the arrays of the last load, or to others. The former become the state
 * from which lost steps are computed again; if the call fails they are unchanged. All tallies must
 * have been fetched (qn__team_flush). */
qn_status qn__team_save(qn__team *team, qn__state *state, qn_error *err);

/* 1 when qn__team_save into the arrays of the load is due: a loss of workers would cost more than
 * some seconds of work. Never if the CPU has the newest state. Saves so requested take less than 1
 * % of the time. */
int qn__team_save_due(const qn__team *team);
/* 1 if that may be so in some step. */
int qn__team_may_save(const qn__team *team);

/* One step: all grains of `batch`, their sums over all workers and ranks, the update. Adds losses
 * and correct answers to *tally, those of the last few steps possibly only in later calls. `next`
 * is the batch of the next step, or NULL. update->step must be set.
 *
 * A worker that fails is lost: the others compute its grains and `note` is called. QN_DEVICE if
 * none is left: the host copy is then complete, of its last load or save. After another failure the
 * state of the workers is undefined. A QN_NUMERIC of an earlier step names it in err->where. */
qn_status qn__team_step(qn__team *team, const qn__batch *batch, const qn__batch *next,
                        const qn__update *update, qn__tally *tally, qn_error *err);

/* The sums of the gradient over `batch`, of any number of items, without an update: *sums, of
 * program->parameters words, belong to the team until its next call. Adds to *tally. All live
 * workers take part. The state must be that of the last qn__team_load; lost workers' grains are
 * computed again from it. Collective among ranks. Fails as qn__team_step does; after QN_NUMERIC the
 * team goes on with another qn__team_load. */
qn_status qn__team_gradient(qn__team *team, const qn__batch *batch, qn__tally *tally,
                            const int64_t **sums, qn_error *err);

/* Waits for all steps and adds their remaining tallies to *tally. Fails as qn__team_step does. */
qn_status qn__team_flush(qn__team *team, qn__tally *tally, qn_error *err);

/* Forward over `batch`, of any number of items, shared among the workers in pieces of whole grains
 * of at most qn__apply_space items. QN_NUMERIC names the first item with a non-finite output. All
 * tallies must have been fetched. */
qn_status qn__team_apply(qn__team *team, const qn__batch *batch, qn__applied *applied,
                         qn__tally *tally, qn_error *err);

/* Further positions of sequences, of a program with `sequences`: as qn__device_table.extend, shared
 * among the workers. A sequence begins with its position 0, and its rows of an extension follow one
 * another. An extension with logits has a row of every sequence that goes on. Among ranks each rank
 * has its own sequences. QN_DEVICE if no worker is left; another worker reads the sequences of a
 * lost one again. */
qn_status qn__team_extend(qn__team *team, const qn__extension *extension, uint32_t *bad,
                          qn_error *err);

/* The sums of a host job over its grains 0 .. grains-1, grains > 0, by all live workers and ranks:
 * *words, job->words of them, belong to the team until its next call. The job's function runs at
 * the same time on threads of several workers; a worker that fails is lost, and others compute its
 * grains. But if the kernel is `resident` (device.h) the call fails with QN_DEVICE, since the
 * others lack what the lost one kept. A QN_NUMERIC of the function is that of the lowest grain, on
 * all ranks; another failure is this rank's own. Afterwards the team can be used again. */
qn_status qn__team_run(qn__team *team, const qn__host_job *job, uint32_t grains,
                       const int64_t **words, qn_error *err);

/* Host jobs are computed by the members of this bit set only, while one of them lives; 0: by all. A
 * member's bit is its place in the report. */
void qn__team_use(qn__team *team, uint64_t set);

/* Sets the number of steps of the job, so that a short one does not spend them on trials; the
 * default is many. */
void qn__team_expect(qn__team *team, uint64_t steps);

/* Brings the items of a training that this rank computes next, `items` of the batch from place
 * `first` on, where they may be elsewhere. A failure is that of the step. */
typedef qn_status (*qn__bring_fn)(void *user, const qn__batch *batch, uint32_t first,
                                  uint32_t items, qn_error *err);

/* Sets the function that is called before grains of a training are computed, each time this rank
 * gets some in a reduction; NULL: none. */
void qn__team_bring(qn__team *team, qn__bring_fn bring, void *user);

/* Sets the callback for lost workers and members that could not be opened; NULL: none. */
void qn__team_notes(qn__team *team, qn_note_fn note, void *user);

/* Sets the trace that records spans from now on, with a track for each worker; NULL: none. The
 * trace must outlive the team. */
void qn__team_trace(qn__team *team, qn__trace *trace);

/* For tests and experiments: a function that selects the members of a step as a bit set, in place
 * of measurements. Lost members are left out; an empty set means all. */
void qn__team_pick(qn__team *team, uint64_t (*pick)(void *user, uint64_t step), void *user);

/* Reads the energy counters of the members' devices: at the start of an interval of the run (begin
 * = 1), at its end, and every few minutes in between. */
void qn__team_meter(qn__team *team, int begin);

/* The ranks that the run was started with, 1 without a cluster; and the calculated bytes that this
 * team's reductions sent to other machines and received from them. */
uint32_t qn__team_ranks(const qn__team *team);
void qn__team_counted(const qn__team *team, uint64_t *out, uint64_t *in);

/* 1 if the CPU of this process is the only member. */
int qn__team_is_the_cpu(const qn__team *team);

/* The live members as a bit set (qn__team_use), and their number. */
uint64_t qn__team_alive(const qn__team *team);
uint32_t qn__team_workers(const qn__team *team);

/* The seconds that trials have cost, beyond the time of the chosen sets; and the steps that were
 * computed again after losses. */
double qn__team_trial_seconds(const qn__team *team);
uint64_t qn__team_repeated(const qn__team *team);

/* What each worker did since the team was created; `seconds` is the base of busy shares.
 * *bound_rate: the sum of the workers' items per second, each weighted by the part of the steps in
 * which it took part. The array belongs to the team until the next call. */
const qn_worker_report *qn__team_report(qn__team *team, double seconds, uint32_t *count,
                                        double *bound_rate);

#endif
