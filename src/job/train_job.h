/* The training job: grains of training items, sums of gradients, one update per step. It uses the
 * recipe and the data; a team does its steps, on devices and ranks that this file does not know. */
#ifndef QN_JOB_TRAIN_JOB_H
#define QN_JOB_TRAIN_JOB_H

#include "data/ahead/read_ahead.h"
#include "data/table/data.h"
#include "device/length_groups.h"
#include "job/features.h"
#include "job/prepare.h"
#include "job/targets.h"
#include "model/formats/model.h"
#include "model/recipe/recipe.h"
#include "model/recipe/stages.h"
#include "num/lbfgs.h"
#include "num/mix.h"
#include "num/optimise.h"
#include "team/team.h"

/* The position of a run beside its state, as in a checkpoint. */
typedef struct qn__train_mark {
    uint64_t step;
    qn__tally running;
    qn__adam_powers powers;
} qn__train_mark;

/* What the optimiser lbfgs has beside the state (job/full_batch.h). */
typedef struct qn__full_batch {
    qn__lbfgs *lbfgs;     /* NULL: another optimiser */
    uint8_t *penal;       /* of each parameter: 1, it has penalties */
    qn__tally tally;      /* of the last evaluation */
    uint64_t evaluations; /* of the whole gradient, in this process */
    int stuck;            /* 1: the last iteration found no better point */
} qn__full_batch;

typedef struct qn__train_job {
    qn__recipe recipe;
    char *recipe_json;
    qn__stages stages; /* of the recipe */
    qn__layer layer[QN__MAX_LAYERS];
    qn__program program;
    qn__augment augment;
    qn__mix mix;
    qn__training_items items; /* items.train is what is trained on */
    qn__feed feed;
    qn__read_ahead *ahead;               /* NULL: the items are in memory */
    qn__length_groups *groups;           /* NULL: the order is drawn alone */
    float *mean, *deviation;             /* of the scaling, as in qn__fitted */
    float *shift, *inverse;              /* the same for each input */
    float target_mean, target_deviation; /* of real labels */
    int32_t *targets;    /* real labels: those of the training items, scaled (exactness.md 5.3) */
    qn__state state;     /* in canonical order; as of `kept` */
    int settled;         /* 1: `parameters` are those of the model, averages or not */
    qn__train_mark kept; /* of the last qn__train_job_push or _pull */
    qn__team *team;
    qn__features *features; /* NULL: none are kept. Until they are ready, the team only has the
                               first part of the network, without parameters */
    uint64_t steps_per_epoch, steps; /* of the whole run */
    uint64_t step;                   /* done */
    int threads;                     /* of this process */
    qn__tally running; /* of the current epoch; kept after its end until the next step */
    qn__adam_powers powers;
    qn__permutation order; /* of the epoch under way */
    qn__full_batch full;
    float learning_rate; /* of the last step */
} qn__train_job;

/* Makes the split, the scaling, the first parameters and the team: everything up to the first step.
 * `kept`: the scaling and the numbers for missing values of another model, where the recipe keeps
 * them; else NULL: they are fitted. `recipe` was checked, against the data too, and is copied.
 * `notes` receives notes about its columns. `members` as in qn__team_create. `later` as in
 * qn__read_ahead_create. `data` must outlive the job. On failure the job is as after destroy. */
qn_status qn__train_job_create(qn__train_job *job, const qn__recipe *recipe, const qn_data *data,
                               const qn__fitted *kept, const qn__encoding_notes *notes,
                               const qn_compute *compute, const qn__member *members, uint32_t count,
                               uint64_t later, qn_error *err);
void qn__train_job_destroy(qn__train_job *job);

/* Called before the first step, once its number is known. Reads from the file the items that are
 * needed first, unless the scaling has read them. `compute` as for the creation. */
void qn__train_job_fill(qn__train_job *job, const qn_compute *compute);

/* After the creation with compute->cache_features, once the parameters are those of the model to
 * start from: computes the outputs of the training items and of `others`, which are evaluated
 * (NULL: no such set), and makes the team that trains. Other arguments as for the creation. */
qn_status qn__train_job_cut(qn__train_job *job, const qn_data *const others[2],
                            const qn_compute *compute, const qn__member *members, uint32_t count,
                            qn_error *err);

/* Outputs for all items of a set. */
qn_status qn__train_job_outputs(qn__train_job *job, const qn_data *set, float *outputs,
                                qn_error *err);

/* Sends the host's state to the workers, after it was filled from a checkpoint with `step`,
 * `running` and `powers`. */
qn_status qn__train_job_push(qn__train_job *job, qn_error *err);
/* The parameters of the model to start from, whose shapes were checked, to the host's state; of all
 * layers but a new last one. */
void qn__train_job_take(qn__train_job *job, const qn_model *model);
/* The averages of 24.63 begin as the parameters of the host's state. */
void qn__train_job_averages(qn__train_job *job);
/* The parameters of the model, in the host's state: the averages where there are any. */
const float *qn__train_job_shown(const qn__train_job *job);
/* Between these two calls, the workers have the parameters of the model. `hide` follows each
 * `show` that succeeded. */
qn_status qn__train_job_show(qn__train_job *job, qn_error *err);
qn_status qn__train_job_hide(qn__train_job *job, qn_error *err);
/* Fetches the workers' state. If it fails, the state is unchanged. */
qn_status qn__train_job_pull(qn__train_job *job, qn_error *err);

/* One step. After the last one of an epoch `running` is complete; before that it may lack the last
 * few steps. QN_NUMERIC names the step that failed. */
qn_status qn__train_job_step(qn__train_job *job, qn_error *err);

/* Waits for the last few steps, so that `running` is complete and no step is in progress. */
qn_status qn__train_job_flush(qn__train_job *job, qn_error *err);

/* After QN_DEVICE: returns to the state that was fetched last, which can be written as a
 * checkpoint. No more steps can be done. */
void qn__train_job_salvage(qn__train_job *job);

/* Losses and correct answers over a labelled set; the losses of the validation items of the recipe
 * have their weights. `confusion`: counts [label][class], outputs x
 * outputs, to add to; or NULL. `outputs`: items x outputs; or NULL. */
qn_status qn__train_job_evaluate(qn__train_job *job, const qn_data *set, qn__tally *tally,
                                 uint64_t *confusion, float *outputs, qn_error *err);

/* The memory for comparisons with the real labels of one set; made once. */
typedef struct qn__comparison {
    const qn_data *set;
    int32_t *targets;   /* items: the labels as the network learns them */
    float *predictions; /* items */
} qn__comparison;

/* `set` is borrowed. Fails with QN_INPUT when a label is too far from those of the training, which
 * names `what`, or with QN_MEMORY. *out is to be released in any case. */
qn_status qn__train_job_comparison(const qn__train_job *job, const qn_data *set, const char *what,
                                   qn__comparison *out, qn_error *err);
void qn__comparison_release(qn__comparison *comparison);

/* As qn__train_job_evaluate, for a set with real labels: the loss, and what the errors of the
 * predictions are in units of the labels. */
qn_status qn__train_job_compare(qn__train_job *job, const qn__comparison *with, qn__tally *tally,
                                qn__target_errors *errors, qn_error *err);

/* How the job sees a table; what it points to belongs to the job. */
qn__encoding qn__train_job_encoding(const qn__train_job *job);

/* Checks that a validation or test set, as it was read, fits the job; `what` names it in messages
 * ("the test set").
 */
qn_status qn__train_job_fits(const qn__train_job *job, const qn_data *set, const char *what,
                             qn_error *err);

/* The model of the workers' state. Owned by the caller. */
qn_status qn__train_job_model(qn__train_job *job, qn_model **out, qn_error *err);

#endif
