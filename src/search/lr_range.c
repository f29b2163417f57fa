/* The range of learning rates: docs/exactness.md 24.35. The training is one with the schedule
 * `exponential`; this file chooses its factor, and reads its losses. */
#include "base/argument.h"
#include "base/memory.h"
#include "base/sized.h"
#include "base/system/float_state.h"
#include "model/recipe/schedule.h"
#include "search/lr_range_files.h"
#include "train/trainer.h"
#include <math.h>
#include <string.h>

enum { STEPS = 100, LEAST_STEPS = QN_LR_SETTLING, MOST_STEPS = 100000 };
static const float LOW = 1e-6f, HIGH = 10.0f, MOST_FACTOR = 10.0f;
/* Of the smoothed loss: how much it keeps, and how many times the lowest one is too much. */
static const double KEPT = 0.9, TAKEN = 0.1, TOO_MUCH = 4.0;

void qn_lr_range_options_init(qn_lr_range_options *options) {
    if (options)
        *options = (qn_lr_range_options){
            .size = sizeof *options, .low = LOW, .high = HIGH, .steps = STEPS};
}

/* ---------------------------------------------------------------------------------- the options */

static qn_status refuse(qn_error *err, const char *where, const char *remedy, qn_status status) {
    qn__at(err, "%s", where);
    return qn__remedy(err, status, "%s", remedy);
}

/* The rate of the last step with this factor. */
static float last_rate(const qn_lr_range_options *o, float factor) {
    const qn__stages stages = {.count = 1,
                               .stage[0] = {.epochs = 1,
                                            .learning_rate = o->low,
                                            .schedule = QN__SCHEDULE_EXPONENTIAL,
                                            .lr_gamma = factor}};
    return qn__learning_rate_in(&stages, o->steps - 1, o->steps);
}

/* The greatest factor with which the last rate is at most the highest one; 0: it is too great. The
 * rates grow with the factor, so halving finds it, without a logarithm. */
static float factor_of(const qn_lr_range_options *o) {
    float low = 1.0f, high = nextafterf(MOST_FACTOR, INFINITY);
    if (last_rate(o, MOST_FACTOR) < o->high)
        return 0.0f;
    for (;;) {
        const float middle = low + (high - low) * 0.5f;
        if (middle <= low || middle >= high)
            return low;
        if (last_rate(o, middle) <= o->high)
            low = middle;
        else
            high = middle;
    }
}

static qn_status check_range(const qn_lr_range_options *o, const qn_train_options *train,
                             qn_error *err) {
    if (!(o->low > 0.0f) || !(o->high > o->low) || isinf(o->high))
        return refuse(err, "`search.low`",
                      "give rates above 0, the lowest rate first, such as 1e-6,10",
                      qn__fail(err, QN_USAGE, "learning rates cannot go from %g to %g",
                               (double)o->low, (double)o->high));
    if (o->steps < LEAST_STEPS || o->steps > MOST_STEPS)
        return refuse(err, "`search.steps`", "give 10 to 100000 steps",
                      qn__fail(err, QN_USAGE, "a range cannot have %u steps", o->steps));
    if (factor_of(o) == 0.0f)
        return refuse(err, "`search.steps`", "give more steps, or a smaller range",
                      qn__fail(err, QN_USAGE,
                               "from %g to %g in %u steps the rate would grow more than tenfold "
                               "in a step",
                               (double)o->low, (double)o->high, o->steps));
    if (train->optimizer && strcmp(train->optimizer, "lbfgs") == 0)
        return refuse(err, "`train.optimizer`", "take another one, such as adam",
                      qn__fail(err, QN_USAGE, "the optimizer lbfgs has no learning rate"));
    return QN_OK;
}

/* The recipe of the caller, with the rates of the range; nothing is written. */
static qn_train_options training_of(const qn_lr_range_options *o, const qn_train_options *train) {
    qn_train_options own = *train;
    own.learning_rate = o->low;
    own.schedule = "exponential";
    own.lr_gamma = factor_of(o);
    own.lr_min = 0.0f;
    own.warmup = 0;
    own.stages = NULL;
    own.epochs = o->steps; /* one has at least one step; the range ends before */
    own.keep = NULL;
    own.patience = 0;
    own.valid_fraction = 0.0f;
    own.checkpoint_dir = own.run_dir = own.trace = own.report = own.plots = own.runs = NULL;
    own.resume = 0;
    own.on_step = NULL;
    own.on_epoch = NULL;
    return own;
}

/* ---------------------------------------------------------------------------------- the losses */

/* The step from `first` on. */
static uint32_t lowest_of(const qn_lr_range *r, uint32_t first) {
    uint32_t at = first;
    for (uint32_t i = first + 1; i < r->points; ++i)
        if (r->smoothed[i] < r->smoothed[at])
            at = i;
    return at;
}

/* A step: 0 ends the training. */
static int take(void *user, float rate, double loss) {
    qn__lr_run *run = user;
    qn_lr_range *r = &run->found;
    const uint32_t i = r->points++;
    run->mean = run->mean * KEPT + loss * TAKEN;
    run->weight = run->weight * KEPT;
    run->rate[i] = rate;
    run->loss[i] = loss;
    run->smoothed[i] = run->mean / (1.0 - run->weight);
    if (i >= QN_LR_SETTLING && run->smoothed[i] > TOO_MUCH * run->smoothed[lowest_of(r, 0)]) {
        r->end = QN_LR_END_DIVERGED;
        return 0;
    }
    return r->points < run->steps;
}

static void conclude(qn_lr_range *r) {
    double most = INFINITY;
    /* The smoothed loss of the first steps is one of few. */
    r->lowest = lowest_of(r, r->points > QN_LR_SETTLING ? QN_LR_SETTLING : 0);
    for (uint32_t i = QN_LR_SETTLING; i < r->lowest; ++i) {
        const double change = r->smoothed[i + 1] - r->smoothed[i - 1];
        if (change < most) {
            most = change;
            r->steepest = i;
        }
    }
    r->suggestion = r->steepest > 0 ? r->rate[r->steepest] : 0.0f;
    r->cautious = r->rate[r->lowest] / 10.0f;
}

/* Numbers that leave their range end the range, unless it is at its beginning: then they are not
 * those of a rate. */
static qn_status train_on(qn__lr_run *run, const qn_train_options *o, const qn_data *data,
                          qn_error *err) {
    qn_train *t = NULL;
    qn_status status = qn_train_open(o, data, NULL, NULL, &t, err);
    if (status != QN_OK)
        return status;
    qn__train_each_step(t, take, run);
    status = qn_train_run(t, err);
    if (status == QN_NUMERIC && run->found.points > 0) {
        run->found.end = QN_LR_END_NOT_FINITE;
        status = QN_OK;
    }
    if (status == QN_OK && !(run->recipe = qn__copy_text(qn__train_recipe(t), err)))
        status = QN_MEMORY;
    qn_train_close(t);
    return status;
}

static qn_status find(qn__lr_run *run, const qn_lr_range_options *o, const qn_train_options *train,
                      const qn_data *data, qn_error *err) {
    const qn_train_options training = training_of(o, train);
    run->steps = o->steps;
    run->folder = o->folder;
    run->cluster = qn_cluster_ranks(training.compute.cluster) > 1 ? training.compute.cluster : NULL;
    run->weight = 1.0;
    run->rate = qn__alloc(o->steps, sizeof *run->rate, err);
    run->loss = qn__alloc(o->steps, sizeof *run->loss, err);
    run->smoothed = qn__alloc(o->steps, sizeof *run->smoothed, err);
    if (!run->rate || !run->loss || !run->smoothed)
        return QN_MEMORY;
    run->found = (qn_lr_range){
        .size = sizeof run->found, .rate = run->rate, .loss = run->loss, .smoothed = run->smoothed};
    qn_status status = train_on(run, &training, data, err);
    if (status == QN_OK)
        conclude(&run->found);
    return status == QN_OK ? qn__lr_range_write(run, err) : status;
}

qn_status qn_lr_range_find(const qn_lr_range_options *options, const qn_data *data,
                           qn_lr_range **out, qn_error *err) {
    QN__OWN_FLOATS;
    qn_error unheard;
    qn_lr_range_options own;
    QN__NEED_OUT(out, err);
    QN__NEED(options, err);
    QN__NEED(data, err);
    err = err ? err : &unheard;
    qn_lr_range_options_init(&own);
    qn_status status =
        qn__sized_take(QN__SIZED("options", qn_lr_range_options), options, &own, err);
    if (status == QN_OK && !own.train)
        return qn__fail_null(err, __func__, "options->train");
    if (status == QN_OK)
        status = check_range(&own, own.train, err);
    if (status != QN_OK)
        return status;
    qn__lr_run *run = qn__alloc(1, sizeof *run, err);
    if (!run)
        return QN_MEMORY;
    status = find(run, &own, own.train, data, err);
    if (status == QN_OK)
        *out = &run->found;
    else
        qn_lr_range_free(&run->found);
    return status;
}

void qn_lr_range_free(qn_lr_range *range) {
    qn__lr_run *run = (qn__lr_run *)(void *)range; /* `found` is its first member */
    if (!run)
        return;
    qn__free(run->rate);
    qn__free(run->loss);
    qn__free(run->smoothed);
    qn__free(run->recipe);
    qn__free(run->csv);
    qn__free(run->svg);
    qn__free(run);
}
