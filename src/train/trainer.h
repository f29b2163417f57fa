/* Internal functions of a training, for tests and other parts of the library. */
#ifndef QN_TRAIN_TRAINER_H
#define QN_TRAIN_TRAINER_H

#include "team/team.h"
#include <quern/train.h>

/* qn_train_open with a given team instead of the CPU alone; `members` and `count` as in
 * qn__team_create. */
qn_status qn__train_open_on(const qn_train_options *options, const qn_data *train,
                            const qn_data *valid, const qn_data *test, const qn__member *members,
                            uint32_t count, qn_train **out, qn_error *err);

/* A step of a training, done: its learning rate, and its loss alone (docs/exactness.md 7.4), before
 * its update. Returns 0 to end the training here, as if it were complete: on all ranks alike. */
typedef int qn__step_fn(void *user, float rate, double loss);

/* Has it called after every step, from qn_train_run. The steps of a device are waited for one by
 * one. */
void qn__train_each_step(qn_train *train, qn__step_fn *take, void *user);

/* The recipe of a training, as JSON; valid until it is closed. */
const char *qn__train_recipe(const qn_train *train);

#endif
