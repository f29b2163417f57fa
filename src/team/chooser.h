/* Who takes part in the steps: found out by trying, in the first steps and now and then later.
 *
 * Some steps shared by all tell roughly what a grain costs each. Then the sets of workers that can
 * win are tried for a few steps each: those that may be fastest alone, then the set that the
 * measured speeds say is best, and sets with one worker more or less as long as that helps. The
 * set with the shortest step stays, the smaller one where there is hardly a difference; the others
 * get a second chance first, at another moment. It is
 * watched: when its steps take lastingly longer or shorter, all is tried again, and also
 * after a while in any case, so rarely that the trials cost less than a hundredth of the time.
 *
 * A set is a bit for each worker. Nothing in a result depends on the choice. */
#ifndef QN_TEAM_CHOOSER_H
#define QN_TEAM_CHOOSER_H

#include "team/queue.h"

enum { QN__TRIALS = 24, QN__TRIAL_SAMPLES = 5, QN__WATCHED = 5 };

typedef struct qn__trial {
    uint64_t set;
    uint32_t samples;
    double sample[QN__TRIAL_SAMPLES]; /* seconds of a full step, each */
    double seconds;                   /* their median; 0: the trial is not over */
} qn__trial;

typedef enum qn__choosing { QN__CHOOSE_LOOK, QN__CHOOSE_TRY, QN__CHOOSE_STAY } qn__choosing;

typedef struct qn__chooser {
    qn__queue *queue;     /* what is known of speeds */
    uint64_t alive, late; /* late: alone, these return before their step is over */
    uint32_t grains;      /* of a full step */
    uint64_t steps_left;  /* of the job; UINT64_MAX: not known */
    qn__choosing stage;
    uint32_t looks; /* steps shared by all that are still to come */
    uint64_t set;   /* of the steps now */
    qn__trial trial[QN__TRIALS];
    uint32_t trials; /* of this round; the last one may be under way */
    uint32_t rounds; /* in all */
    int warm;        /* the first steps of the trial, which pay for the change, are over */
    uint32_t block;  /* steps that make a sample, and those done of it */
    uint32_t in_block;
    double block_seconds;
    double overhead;                        /* of sharing a step: what it takes beyond the grains */
    double seconds;                         /* a step of the chosen set when it was chosen */
    double watched[QN__WATCHED], reference; /* its last samples; their median at first */
    uint32_t watches;
    double round_seconds; /* this round's trials, beyond what the chosen set would have taken */
    double cost;          /* the same of all rounds */
    double next_round;    /* moment */
    uint32_t trial_steps; /* of this round */
    double trial_seconds;
    double first_seconds; /* of the very first step, which pays for what is made once */
} qn__chooser;

void qn__chooser_begin(qn__chooser *chooser, qn__queue *queue, uint64_t alive, uint64_t late,
                       uint32_t grains);

/* Steps that the job still has, so that short jobs are not spent on trials. */
void qn__chooser_expect(qn__chooser *chooser, uint64_t steps);

/* Workers that are left; whoever was lost is in no set from now on. */
void qn__chooser_alive(qn__chooser *chooser, uint64_t alive);

/* The set of the next step. */
uint64_t qn__chooser_set(const qn__chooser *chooser);

/* 1 when the time of the coming step counts only if all is waited for at its end. */
int qn__chooser_waits(const qn__chooser *chooser);

/* The step that qn__chooser_set was asked for took `seconds`, `extra` more for bringing its workers
 * up to date, and ended at the moment `now`; `full` is 0 for one of fewer items than others.
 * Returns 1 when another choice was made. */
int qn__chooser_step(qn__chooser *chooser, double seconds, double extra, int full, double now);

/* Why the worker is not in the set, in at most `room` bytes; empty when it is, or nothing is known.
 */
void qn__chooser_reason(const qn__chooser *chooser, uint32_t worker, char *text, uint32_t room);

#endif
