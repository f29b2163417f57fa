/* Chooses the devices that compute the iterations of a kernel, by measuring which are fastest. All
 * together exchange their arrays through the host after each iteration. One GPU alone keeps them in
 * its memory, and the processor alone computes several iterations at once. No result depends on it.
 */
#ifndef QN_USERKERNEL_RUN_USER_CHOICE_H
#define QN_USERKERNEL_RUN_USER_CHOICE_H

#include <stdint.h>

typedef enum qn__user_who { QN__WHO_ALL, QN__WHO_GPU, QN__WHO_CPU, QN__WHO_KINDS } qn__user_who;

typedef struct qn__user_choice {
    uint64_t set[QN__WHO_KINDS]; /* of the team's members; 0: not a choice */
    double each[QN__WHO_KINDS];  /* seconds of an iteration, the least so far; 0: unknown */
    double spent;                /* seconds of this trial */
    qn__user_who now;
    int runs;    /* of this trial */
    int settled; /* 1: the search has ended */
} qn__user_choice;

/* A search that begins with all; set[QN__WHO_ALL] is the team. */
void qn__user_choice_begin(qn__user_choice *choice, uint64_t cpu, uint64_t gpus, uint64_t fastest);

/* Takes a run of `steps` iterations into account, and sets choice->now for the next one. `left`:
 * iterations that follow. `tuned`: the processor has tried numbers of iterations at once. */
void qn__user_choice_done(qn__user_choice *choice, double seconds, uint64_t steps, uint64_t left,
                          int tuned);

/* Members were lost: those that are left compute all iterations together. */
void qn__user_choice_lost(qn__user_choice *choice);

#endif
