/* Internal functions of a training, for tests and other parts of the library. */
#ifndef QN_RUN_TRAINER_H
#define QN_RUN_TRAINER_H

#include "team/team.h"
#include <quern/train.h>

/* qn_train_open with a given team instead of the CPU alone; `members` and `count` as in
 * qn__team_create. */
qn_status qn__train_open_on(const qn_train_options *options, const qn_data *train,
                            const qn_data *valid, const qn_data *test, const qn__member *members,
                            uint32_t count, qn_train **out, qn_error *err);

/* A caller's options in this version of the struct, with defaults for members that the caller's
 * version does not have; `function` and `argument` for messages. QN_USAGE for an invalid size. */
qn_status qn__train_options_take(const char *function, const char *argument,
                                 const qn_train_options *given, qn_train_options *own,
                                 qn_error *err);

#endif
