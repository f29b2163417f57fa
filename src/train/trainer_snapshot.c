/* The state of a training, for its checkpoints. */
#include "train/trainer_state.h"

qn__snapshot qn__train_snapshot(qn_train *t) {
    qn__train_job *job = &t->job;
    const int judges = qn__recipe_judges(&job->recipe);
    const int swapped = t->best.in_place;
    return (qn__snapshot){.recipe_json = job->recipe_json,
                          .step = job->step,
                          .running = job->running,
                          .powers = job->powers,
                          .parameters = job->program.parameters,
                          .slots = qn__program_slots(&job->program),
                          .parameter = swapped ? t->best.parameter : job->state.parameters,
                          .judges = judges,
                          .best_epoch = t->best.epoch,
                          .best_loss = t->best.loss,
                          .best = swapped ? job->state.parameters : t->best.parameter,
                          .slot = {job->state.slot[0], job->state.slot[1], job->state.slot[2]},
                          .pairs = job->full.lbfgs ? job->full.lbfgs->pairs : 0,
                          .history = job->full.lbfgs ? job->full.lbfgs->history : NULL};
}
