/* Chooses the workers that take part in steps, by trials in the first steps and periodically later.
 *
 * Some steps shared by all workers give rough costs per grain. Then the sets that can win are tried
 * for a few steps each: first workers that may be fastest alone, then the set predicted to be best,
 * then sets with one worker more or less as long as that helps. The set with the shortest step is
 * chosen; if the difference is small, the smaller set is chosen. Before the choice the other sets
 * are tried a second time.
 *
 * The chosen set is monitored. When its steps become longer or shorter and stay so, all trials are
 * repeated. They are also repeated periodically, so rarely that they cost less than 1 % of the
 * time.
 *
 * A set has a bit for each worker. No result depends on the choice. */
#ifndef QN_TEAM_CHOOSER_H
#define QN_TEAM_CHOOSER_H

#include "team/queue.h"

enum { QN__TRIALS = 24, QN__TRIAL_SAMPLES = 5, QN__WATCHED = 5 };

typedef struct qn__trial {
    uint64_t set;
    uint32_t samples;
    double sample[QN__TRIAL_SAMPLES]; /* seconds of a full step, each */
    double seconds;                   /* their median; 0: the trial is not finished */
} qn__trial;

typedef enum qn__choosing { QN__CHOOSE_LOOK, QN__CHOOSE_TRY, QN__CHOOSE_STAY } qn__choosing;

typedef struct qn__chooser {
    qn__queue *queue;     /* for the speeds */
    uint64_t alive, late; /* late: alone, these return before their step is complete */
    uint32_t grains;      /* of a full step */
    uint64_t steps_left;  /* of the job; UINT64_MAX: unknown */
    qn__choosing stage;
    uint32_t looks; /* remaining steps that all workers share (QN__CHOOSE_LOOK) */
    uint64_t set;   /* of the current steps */
    qn__trial trial[QN__TRIALS];
    uint32_t trials; /* of this round; the last one may be under way */
    uint32_t rounds; /* total */
    int warm; /* the first steps of the trial, which include the cost of the change, are over */
    uint32_t block; /* steps of a sample, and those done */
    uint32_t in_block;
    double block_seconds;
    double overhead;                        /* of a shared step, beside its grains */
    double seconds;                         /* of a step of the chosen set when it was chosen */
    double watched[QN__WATCHED], reference; /* its last samples; their median at first */
    uint32_t watches;
    double round_seconds; /* of this round's trials, beyond the time of the chosen set */
    double cost;          /* the same of all rounds */
    double next_round;    /* time */
    uint32_t trial_steps; /* of this round */
    double trial_seconds;
    double first_seconds; /* of the very first step, which includes one-time costs */
} qn__chooser;

void qn__chooser_begin(qn__chooser *chooser, qn__queue *queue, uint64_t alive, uint64_t late,
                       uint32_t grains);

/* Sets the remaining steps of the job, so that short jobs do not spend them on trials. */
void qn__chooser_expect(qn__chooser *chooser, uint64_t steps);

/* Sets the live workers; lost ones are in no set from now on. */
void qn__chooser_alive(qn__chooser *chooser, uint64_t alive);

/* The set of the next step. */
uint64_t qn__chooser_set(const qn__chooser *chooser);

/* 1 if the time of the next step counts only if the caller waits for its end. */
int qn__chooser_waits(const qn__chooser *chooser);

/* Reports a step of the set returned by qn__chooser_set: it took `seconds`, plus `extra` for
 * updating its workers, and ended at time `now`. `full` is 0 for a step of fewer items than others.
 * Returns 1 if the choice changed. */
int qn__chooser_step(qn__chooser *chooser, double seconds, double extra, int full, double now);

/* The reason why the worker is not in the set, in at most `capacity` bytes; empty if it is, or if
 * unknown. */
void qn__chooser_reason(const qn__chooser *chooser, uint32_t worker, char *text, uint32_t capacity);

#endif
