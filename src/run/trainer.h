/* What tests and later parts of the library need of a training beyond the public functions. */
#ifndef QN_RUN_TRAINER_H
#define QN_RUN_TRAINER_H

#include "team/team.h"
#include <quern/train.h>

/* qn_train_open on a given team instead of the CPU alone; `members` and `count` as in
 * qn__team_create. */
qn_status qn__train_open_on(const qn_train_options *options, const qn_data *train,
                            const qn_data *valid, const qn_data *test, const qn__member *members,
                            uint32_t count, qn_train **out, qn_error *err);

/* A caller's options as this version has them, with defaults where the caller's are older;
 * `function` and `argument` for messages. QN_USAGE for a size that cannot be. */
qn_status qn__train_options_take(const char *function, const char *argument,
                                 const qn_train_options *given, qn_train_options *own,
                                 qn_error *err);

#endif
