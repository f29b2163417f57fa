#include "job/full_batch.h"

#include "base/memory.h"
#include <math.h>
#include <stdio.h>
#include <string.h>

/* Values of a slice that stay in a core's cache, more or less, and the bounds of its items. */
enum { SLICE_VALUES = 1 << 19, SLICE_LEAST = 64, SLICE_MOST = 1 << 14, SLICE_LISTS = 256 };

uint32_t qn__full_batch_slice(const qn__layer *layer, uint32_t layers, uint32_t grain, int lists,
                              uint64_t items) {
    uint64_t width = layer[0].in;
    for (uint32_t l = 0; l < layers; ++l)
        width += layer[l].out;
    const uint64_t least = lists && layers == 1 ? SLICE_LISTS : SLICE_LEAST;
    uint64_t most = SLICE_VALUES / width;
    most = most < least ? least : most > SLICE_MOST ? SLICE_MOST : most;
    most = most / grain * grain;
    most = most > 0 ? most : grain;
    return (uint32_t)(most < items ? most : items);
}

/* Decay acts on weights of products alone (9.1). */
static void mark_weights(const qn__program *program, uint8_t *penal) {
    for (uint32_t l = program->frozen; l < program->layers; ++l) {
        const qn__layer *layer = &program->layer[l];
        if (layer->depth > 0 && !layer->tied && qn__program_trains(program, l))
            memset(penal + layer->weights, 1, (size_t)layer->depth * layer->to.channels);
    }
}

qn_status qn__full_batch_create(qn__train_job *job, qn_error *err) {
    qn__full_batch *full = &job->full;
    full->penal = qn__alloc(job->program.parameters, sizeof *full->penal, err);
    if (!full->penal)
        return QN_MEMORY;
    mark_weights(&job->program, full->penal);
    full->lbfgs = qn__alloc(1, sizeof *full->lbfgs, err);
    if (!full->lbfgs)
        return QN_MEMORY;
    const qn_status status = qn__lbfgs_create(full->lbfgs, job->program.parameters, full->penal,
                                              job->state.parameters, err);
    full->lbfgs->l2 = (double)job->recipe.weight_decay;
    full->lbfgs->l1 = (double)job->recipe.l1;
    full->lbfgs->tolerance = (double)job->recipe.tolerance;
    return status;
}

void qn__full_batch_destroy(qn__train_job *job) {
    if (job->full.lbfgs)
        qn__lbfgs_release(job->full.lbfgs);
    qn__free(job->full.lbfgs);
    qn__free(job->full.penal);
    job->full = (qn__full_batch){0};
}

/* Parameters without a gradient stay where they are. */
static void clear_last_biases(const qn__program *program, double *gradient) {
    const qn__layer *last = &program->layer[program->layers - 1];
    memset(gradient + last->biases, 0, (size_t)qn__layer_biases(last) * sizeof *gradient);
}

/* qn__lbfgs_fn: the mean loss at the parameters of the state, which `point` is, and its gradient.
 */
static qn_status evaluate(void *user, const float *point, double *value, double *gradient,
                          qn_error *err) {
    qn__train_job *job = user;
    const double items = (double)job->feed.items;
    const double unit = ldexp(1.0, -(int)job->program.gradient_scale) / items;
    const qn__batch all = {.feed = &job->feed, .items = (uint32_t)job->feed.items};
    const int64_t *sums = NULL;
    (void)point;
    job->full.tally = (qn__tally){0};
    qn_status status = qn__features_load_state(job->features, job->team, &job->state, err);
    if (status == QN_OK)
        status = qn__team_gradient(job->team, &all, &job->full.tally, &sums, err);
    if (status != QN_OK)
        return status;
    *value = (double)job->full.tally.loss * 0x1p-32 / items;
    const uint64_t frozen = job->program.frozen_parameters;
    memset(gradient, 0, (size_t)frozen * sizeof *gradient);
    for (uint64_t i = frozen; i < job->program.parameters; ++i)
        gradient[i] = (double)sums[qn__program_sum(&job->program, i)] * unit;
    if (job->recipe.no_intercept)
        clear_last_biases(&job->program, gradient);
    ++job->full.evaluations;
    return QN_OK;
}

/* A job that began, or was resumed, evaluates its point before its first iteration. */
static qn_status begin(qn__train_job *job, qn_error *err) {
    qn__lbfgs *lbfgs = job->full.lbfgs;
    if (lbfgs->known)
        return QN_OK;
    const qn_status status = qn__lbfgs_begin(lbfgs, evaluate, job, err);
    if (status == QN_OK)
        job->running = job->full.tally;
    return status;
}

qn_status qn__full_batch_step(qn__train_job *job, qn_error *err) {
    qn__lbfgs *lbfgs = job->full.lbfgs;
    int moved = 0;
    qn_status status = begin(job, err);
    if (status != QN_OK)
        return status;
    if (!qn__lbfgs_converged(lbfgs))
        status = qn__lbfgs_iterate(lbfgs, evaluate, job, &moved, err);
    if (status == QN_OK && moved) {
        job->running = job->full.tally;
        ++job->step;
    } else if (status == QN_OK) {
        status = qn__features_load_state(job->features, job->team, &job->state, err);
    }
    job->full.stuck = !moved && !qn__lbfgs_converged(lbfgs);
    if (status == QN_OK && (!moved || qn__lbfgs_converged(lbfgs)))
        job->steps = job->step;
    return status;
}

void qn__full_batch_salvage(qn__train_job *job) {
    if (job->full.lbfgs && job->full.lbfgs->known)
        memcpy(job->state.parameters, job->full.lbfgs->point,
               (size_t)job->program.parameters * sizeof(float));
}

void qn__full_batch_describe(const qn__train_job *job, char *text, size_t size) {
    const qn__lbfgs *lbfgs = job->full.lbfgs;
    const unsigned long long steps = (unsigned long long)job->step;
    *text = '\0';
    if (!lbfgs || !lbfgs->known || job->step < job->steps)
        return;
    if (qn__lbfgs_converged(lbfgs))
        snprintf(text, size,
                 "converged after %llu iteration%s: the largest component of the gradient is %.3g",
                 steps, steps == 1 ? "" : "s", lbfgs->largest);
    else
        snprintf(text, size,
                 "not converged: after %llu iteration%s the largest component of the gradient is "
                 "%.3g, above the tolerance of %.3g; %s",
                 steps, steps == 1 ? "" : "s", lbfgs->largest, lbfgs->tolerance,
                 job->full.stuck ? "float32 allows no step that decreases the loss further: scale "
                                   "the inputs, or take a greater tolerance"
                                 : "allow more iterations (epochs)");
}
