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

#endif
