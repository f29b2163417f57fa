/* The team of a model's last prediction, which its next one may use: opening devices and packing
 * the parameters takes longer than the prediction of a few items. */
#ifndef QN_PREDICT_KEPT_TEAM_H
#define QN_PREDICT_KEPT_TEAM_H

#include "model/formats/model.h"
#include "team/team.h"
#include <sys/types.h>

typedef struct qn__kept_team {
    qn__model_extra extra; /* first: the model releases it */
    qn__program program;
    qn__team *team;
    pid_t process;
    char asked[256]; /* the options that it was made from; "": it is of no use to others */
} qn__kept_team;

/* Takes the team that is kept with the model, if it was made from the same options in this process,
 * or makes one and loads the parameters. `items`: how many will be predicted. *out goes to
 * qn__kept_team_give; after a failure it is NULL. `note` is told of devices that are left out. */
qn_status qn__kept_team_take(const qn_model *model, const qn_compute *compute, uint64_t items,
                             qn_note_fn note, qn__kept_team **out, qn_error *err);

/* Keeps the team with the model, or destroys it: after a failure, and where other devices than the
 * CPU or other ranks take part, which other processes may need. NULL is accepted. */
void qn__kept_team_give(const qn_model *model, qn__kept_team *kept, qn_status status);

#endif
