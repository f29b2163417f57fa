#include "job/train_job.h"

#include "base/memory.h"
#include "job/apply.h"
#include "job/full_batch.h"
#include "model/recipe/adapters.h"
#include "model/recipe/depth.h"
#include "model/recipe/freeze.h"
#include "model/recipe/initial.h"
#include "model/recipe/scale_numbers.h"
#include "model/recipe/schedule.h"
#include "model/recipe/several_targets.h"
#include "model/recipe/tables.h"
#include "num/philox.h"
#include "num/sums.h"
#include "data/prepare/lists.h"
#include "data/prepare/scale.h"
#include <quern/cluster.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static qn_status refuse_floats(qn_error *err) {
    qn__fail(err, QN_USAGE,
             "\"resizedcrop\", \"jitter\", \"rotate\" and \"blur\" are for bytes; the data's "
             "values are not all whole numbers from 0 to 255");
    qn__at(err, "`train.augment`");
    return qn__remedy(err, QN_USAGE, "use pad, crop, flip and cutout alone");
}

/* L-BFGS has parts of its own. */
static uint32_t part_of(const qn__train_job *job, int parts) {
    const qn__program *p = &job->program;
    const int divides = parts > 1 && job->recipe.optimizer != QN__OPT_LBFGS;
    const uint32_t part = divides ? qn__program_part_of(p, (uint32_t)parts) : p->batch;
    return part < p->batch ? part : 0;
}

static qn_status make_program(qn__train_job *job, const qn_compute *compute, qn_error *err) {
    const qn__recipe *r = &job->recipe;
    qn__program *p = &job->program;
    const uint64_t items = qn_data_items(job->items.train);
    qn_status status =
        qn__network_program(&r->network, qn__recipe_input(r), job->layer, &p->parameters, err);
    if (status != QN_OK)
        return status;
    p->layers = r->network.layers;
    qn__recipe_freeze(r, job->layer, p);
    qn__recipe_depth(r, job->layer);
    qn__recipe_several(r, job->layer, p);
    p->layer = job->layer;
    p->arith = r->arith;
    p->loss = r->loss;
    p->real = r->task == QN__TASK_REGRESS;
    p->optimizer = qn__recipe_rule(r);
    p->numbers = r->numbers;
    p->scale = qn__scale_of_program(r);
    p->mean = job->shift;
    p->inverse = job->inverse;
    p->lists = qn__schema_texts(r->table) > 0;
    job->augment = qn__recipe_augment(r);
    p->augment = job->augment.words ? &job->augment : NULL;
    job->mix = (qn__mix){r->mixup + r->cutmix, r->cutmix > 0.0f,
                         r->shape.channels ? r->shape : p->layer[0].from};
    p->mix = job->mix.alpha > 0.0f ? &job->mix : NULL;
    p->moves_answers = qn__recipe_moves_targets(r);
    if (qn__augment_makes_bytes(&job->augment) && job->items.train->type != QN_U8)
        return refuse_floats(err);
    const int full = r->optimizer == QN__OPT_LBFGS;
    const uint64_t step = full || items < r->batch ? items : r->batch;
    p->grain = r->grain < step ? r->grain : (uint32_t)step;
    p->batch = full ? qn__full_batch_slice(p->layer, p->layers, p->grain, p->lists, items)
                    : (uint32_t)step;
    p->part = part_of(job, compute->parts);
    p->recompute = compute->recompute;
    p->seed = r->seed;
    p->gradient_scale = r->gradient_scale;
    p->partial_limit = qn__partial_limit((step + p->grain - 1) / p->grain);
    return QN_OK;
}

static int threads_of(const qn_compute *compute) {
    return compute->threads ? compute->threads : qn__cores();
}

static void take_items(void *context, uint64_t first, uint64_t end) {
    qn__read_ahead_take(context, first, end);
}

/* Fits `count` numbers to `inputs` inputs of the items. */
static qn_status fit_items(qn__train_job *job, const qn_data *items, uint32_t inputs,
                           uint32_t count, const qn_compute *compute, qn_error *err) {
    const qn__item_listener listener = {take_items, job->ahead};
    if (job->recipe.scale > QN__SCALE_CHANNEL)
        return qn__scale_fit_order(job->recipe.scale, items, job->items.weights,
                                   threads_of(compute), job->mean, job->deviation, err);
    return qn__scale_fit_groups(items, inputs / count, job->items.weights, threads_of(compute),
                                job->ahead ? &listener : NULL, job->mean, job->deviation, err);
}

/* The same; of lists those inputs that are not of texts. */
static qn_status fit_inputs(qn__train_job *job, uint32_t inputs, uint32_t count,
                            const qn_compute *compute, qn_error *err) {
    const uint64_t texts = qn__schema_text_inputs(job->recipe.table);
    if (texts == 0)
        return fit_items(job, job->items.train, inputs, count, compute, err);
    if (texts == inputs)
        return QN_OK;
    inputs -= (uint32_t)texts;
    qn_data *items = qn__lists_begin(job->items.train, inputs, err);
    const qn_status status =
        items ? fit_items(job, items, inputs, inputs, compute, err) : QN_MEMORY;
    qn_data_close(items);
    return status;
}

static qn_status fit_scale(qn__train_job *job, const qn__fitted *kept, const qn_compute *compute,
                           qn_error *err) {
    const uint32_t count = qn__scale_count(&job->recipe);
    const uint32_t inputs = qn__recipe_inputs(&job->recipe);
    if (count == 0)
        return QN_OK;
    job->mean = qn__alloc(count, sizeof(float), err);
    job->deviation = qn__alloc(count, sizeof(float), err);
    job->shift = qn__alloc(inputs, sizeof(float), err);
    job->inverse = qn__alloc(inputs, sizeof(float), err);
    if (!job->mean || !job->deviation || !job->shift || !job->inverse)
        return QN_MEMORY;
    qn_status status = QN_OK;
    if (kept) {
        memcpy(job->mean, kept->mean, count * sizeof(float));
        memcpy(job->deviation, kept->deviation, count * sizeof(float));
    } else if (job->recipe.scale_numbers) {
        qn__scale_numbers numbers;
        status = qn__scale_numbers_parse(job->recipe.scale_numbers, &numbers, err);
        if (status == QN_OK)
            qn__scale_numbers_of_items(&numbers, job->items.train->type == QN_U8, job->mean,
                                       job->deviation);
    } else {
        status = fit_inputs(job, inputs, count, compute, err);
    }
    if (status == QN_OK && job->recipe.scale != QN__SCALE_CHANNEL)
        qn__keep_categories(job->recipe.table, job->mean, job->deviation);
    qn__scale_inputs(&job->recipe, job->mean, job->deviation, job->shift, job->inverse);
    return status;
}

/* docs/exactness.md 5.3: the labels are a table of one column. */
static qn_status fit_targets(qn__train_job *job, const qn__fitted *kept, const qn_compute *compute,
                             qn_error *err) {
    const qn_data *train = job->items.train;
    const qn_data column = {.type = QN_F32,
                            .items = train->items,
                            .features = 1,
                            .values = (const uint8_t *)train->targets};
    if (job->recipe.task != QN__TASK_REGRESS)
        return QN_OK;
    qn_status status = QN_OK;
    if (kept) {
        job->target_mean = kept->target_mean;
        job->target_deviation = kept->target_deviation;
    } else {
        status = qn__scale_fit(&column, job->items.weights, threads_of(compute), &job->target_mean,
                               &job->target_deviation, err);
    }
    if (status == QN_OK)
        status =
            qn__targets_scale(train, job->target_mean, job->target_deviation, &job->targets, err);
    job->feed.labels = job->targets;
    return status;
}

static qn_status choose_items(qn__train_job *job, const qn_data *data, const qn__fitted *kept,
                              const qn__encoding_notes *notes, const qn_compute *compute,
                              qn_error *err) {
    const qn_status status = qn__training_items_make(&job->recipe, data, kept, threads_of(compute),
                                                     notes, &job->items, err);
    if (status == QN_OK)
        job->feed = qn__feed_of(job->items.train);
    job->feed.weights = job->items.shares;
    job->feed.next = job->recipe.task == QN__TASK_NEXT;
    return status;
}

qn__encoding qn__train_job_encoding(const qn__train_job *job) {
    return qn__recipe_encoding(&job->recipe, job->items.fill, job->items.offset, job->items.idf);
}

static qn_status first_state(qn__train_job *job, qn_error *err) {
    const uint32_t slots = qn__program_slots(&job->program);
    job->state.parameters = qn__alloc(job->program.parameters, sizeof(float), err);
    if (!job->state.parameters)
        return QN_MEMORY;
    for (uint32_t s = 0; s < slots; ++s)
        if (!(job->state.slot[s] = qn__alloc(job->program.parameters, sizeof(float), err)))
            return QN_MEMORY;
    qn__initial_parameters(job->layer, job->program.layers, &job->recipe, job->state.parameters);
    qn__train_job_averages(job);
    job->powers = (qn__adam_powers){1.0f, 1.0f};
    const uint64_t batch = job->recipe.batch ? job->recipe.batch : job->feed.items;
    job->steps_per_epoch = (job->feed.items + batch - 1) / batch;
    job->steps = job->steps_per_epoch * job->recipe.epochs;
    qn__stages_of(&job->recipe, &job->stages);
    return job->recipe.optimizer == QN__OPT_LBFGS ? qn__full_batch_create(job, err) : QN_OK;
}

/* Where the items do not fit the memory. L-BFGS takes them as they lie. The sums of the scaling are
 * released before the workers take their memory. */
static void read_ahead(qn__train_job *job, const qn_compute *compute, uint64_t later) {
    const uint32_t count = qn__scale_count(&job->recipe);
    const uint64_t fit =
        count ? qn__scale_fit_bytes(job->items.train, qn__recipe_inputs(&job->recipe) / count,
                                    threads_of(compute))
              : 0;
    uint32_t ranks = 1;
    if (job->recipe.optimizer == QN__OPT_LBFGS)
        return;
    qn_cluster_local(compute->cluster, NULL, &ranks);
    job->ahead = qn__read_ahead_create(job->items.train, job->recipe.seed, job->recipe.epochs,
                                       ranks, later > fit ? later : fit);
}

/* The items of a share of a step, where they lie on other ranks. */
static qn_status bring(void *user, const qn__batch *batch, uint32_t first, uint32_t items,
                       qn_error *err) {
    const qn__train_job *job = user;
    return qn__read_ahead_bring(job->ahead, batch->epoch, batch->first + first, items, err);
}

/* Of the items as tokens, also where features of them are trained on later. */
static qn_status group(qn__train_job *job, qn_error *err) {
    return job->recipe.group_lengths
               ? qn__length_groups_create(&job->program, &job->feed, job->recipe.batch,
                                          job->recipe.group_lengths, &job->groups, err)
               : QN_OK;
}

static qn_status cut(qn__train_job *job, qn_error *err) {
    job->features = qn__alloc(1, sizeof *job->features, err);
    return job->features ? qn__features_cut(&job->program, job->feed.items, job->features, err)
                         : QN_MEMORY;
}

qn_status qn__train_job_create(qn__train_job *job, const qn__recipe *recipe, const qn_data *data,
                               const qn__fitted *kept, const qn__encoding_notes *notes,
                               const qn_compute *compute, const qn__member *members, uint32_t count,
                               uint64_t later, qn_error *err) {
    memset(job, 0, sizeof *job);
    job->threads = threads_of(compute);
    qn_status status = qn__recipe_copy(recipe, &job->recipe, err);
    if (status == QN_OK)
        status = qn__recipe_json(recipe, &job->recipe_json, err);
    if (status == QN_OK)
        status = choose_items(job, data, kept, notes, compute, err);
    if (status == QN_OK)
        read_ahead(job, compute, later);
    if (status == QN_OK)
        status = fit_scale(job, kept, compute, err);
    if (status == QN_OK)
        status = fit_targets(job, kept, compute, err);
    if (status == QN_OK)
        status = make_program(job, compute, err);
    if (status == QN_OK)
        status = first_state(job, err);
    if (status == QN_OK)
        status = group(job, err);
    if (status == QN_OK && compute->cache_features)
        status = cut(job, err);
    if (status == QN_OK)
        status = qn__team_create(job->features ? &job->features->first : &job->program, compute,
                                 members, count, &job->team, err);
    if (status == QN_OK) {
        qn__team_bring(job->team, bring, job);
        status = qn__train_job_push(job, err);
    }
    if (status != QN_OK)
        qn__train_job_destroy(job);
    return status;
}

/* Labels and weights stay those of the items. */
static void train_on_features(qn__train_job *job) {
    const qn__feed from = qn__feed_of(qn__features_of(job->features, job->items.train));
    job->feed.type = from.type;
    job->feed.features = from.features;
    job->feed.values = from.values;
    job->feed.rows = from.rows;
    job->feed.buffer = NULL;
    qn__read_ahead_destroy(job->ahead);
    job->ahead = NULL;
    job->features->ready = 1;
}

qn_status qn__train_job_cut(qn__train_job *job, const qn_data *const others[2],
                            const qn_compute *compute, const qn__member *members, uint32_t count,
                            qn_error *err) {
    const qn_data *const set[QN__FEATURE_SETS] = {job->items.train, others[0], others[1]};
    float *parameters = NULL;
    qn_status status =
        qn__features_load(job->features, job->team, job->state.parameters, &parameters, err);
    for (int i = 0; status == QN_OK && i < QN__FEATURE_SETS; ++i)
        if (set[i])
            status = qn__features_make(job->features, job->team, set[i], err);
    qn__team_destroy(job->team);
    job->team = NULL;
    qn__free(parameters);
    if (status != QN_OK)
        return status;
    train_on_features(job);
    status = qn__team_create(&job->features->second, compute, members, count, &job->team, err);
    return status == QN_OK ? qn__train_job_push(job, err) : status;
}

void qn__train_job_fill(qn__train_job *job, const qn_compute *compute) {
    qn__read_ahead_fill(job->ahead, job->step == 0 ? threads_of(compute) : 0);
}

void qn__train_job_destroy(qn__train_job *job) {
    qn__team_destroy(job->team);
    if (job->features)
        qn__features_release(job->features);
    qn__free(job->features);
    qn__read_ahead_destroy(job->ahead);
    qn__length_groups_free(job->groups);
    qn__full_batch_destroy(job);
    qn__free(job->state.parameters);
    for (int i = 0; i < QN__SLOTS; ++i)
        qn__free(job->state.slot[i]);
    qn__free(job->mean);
    qn__free(job->deviation);
    qn__free(job->shift);
    qn__free(job->inverse);
    qn__free(job->targets);
    qn__training_items_release(&job->items);
    qn__free(job->recipe_json);
    qn__recipe_release(&job->recipe);
    memset(job, 0, sizeof *job);
}

static void begin_epoch(qn__train_job *job, uint64_t epoch) {
    qn__permutation_begin(&job->order, job->feed.items, job->recipe.seed, QN__PURPOSE_ORDER,
                          (uint32_t)epoch);
}

static qn__train_mark here(const qn__train_job *job) {
    return (qn__train_mark){job->step, job->running, job->powers};
}

static const qn__program *own_program(const qn__train_job *job) {
    return job->features ? &job->features->second : &job->program;
}

qn_status qn__train_job_push(qn__train_job *job, qn_error *err) {
    begin_epoch(job, job->step / job->steps_per_epoch);
    job->kept = here(job);
    if (job->full.lbfgs)
        qn__lbfgs_restored(job->full.lbfgs);
    if (job->features && !job->features->ready)
        return QN_OK;
    qn__team_expect(job->team, job->steps - job->step);
    return qn__features_load_state(job->features, job->team, &job->state, err);
}

void qn__train_job_salvage(qn__train_job *job) {
    if (job->full.lbfgs) { /* the host has the state after every iteration */
        qn__full_batch_salvage(job);
        return;
    }
    job->step = job->kept.step;
    job->running = job->kept.running;
    job->powers = job->kept.powers;
}

/* Numbers of the first step come from the data and the initial weights. Those of later steps come
 * from the updates before: the training diverged. */
static qn_status name_cause(const qn__train_job *job, unsigned long long step, qn_error *err) {
    char what[sizeof err->what];
    if (!err || step < 2)
        return qn__remedy(err, QN_NUMERIC,
                          "scale the inputs (`train.scale` standard); sums leave their range later "
                          "with a smaller `train.gradient_scale`");
    snprintf(what, sizeof what, "%s", err->what);
    qn__fail(err, QN_NUMERIC, "the training diverged: %.480s", what);
    return qn__remedy(err, QN_NUMERIC,
                      "take a `train.learning_rate` below %g, or a warm-up; inputs that are not "
                      "scaled (`train.scale`) cause it too, and `train.clip` limits a step",
                      (double)job->recipe.learning_rate);
}

/* Adds the step to a QN_NUMERIC. A device that works asynchronously reports late, with the step
 * (device/device.h). */
static qn_status name_step(qn__train_job *job, qn_status status, qn_error *err) {
    unsigned long long step = job->step + 1;
    if (status != QN_NUMERIC)
        return status;
    if (err && strncmp(err->where, "step ", 5) == 0)
        step = strtoull(err->where + 5, NULL, 10);
    if (step > 0 && step <= job->step)
        job->step = step - 1;
    status = name_cause(job, step, err);
    qn__at(err, "step %llu, epoch %llu", step,
           (unsigned long long)(job->step / job->steps_per_epoch + 1));
    return status;
}

qn_status qn__train_job_flush(qn__train_job *job, qn_error *err) {
    return name_step(job, qn__team_flush(job->team, &job->running, err), err);
}

qn_status qn__train_job_pull(qn__train_job *job, qn_error *err) {
    qn_status status = qn__train_job_flush(job, err);
    if (status != QN_OK)
        return status;
    qn__state state = qn__features_state(job->features, &job->state);
    status = qn__team_save(job->team, &state, err);
    if (status == QN_OK)
        job->kept = here(job);
    return status;
}

/* The batch of a step of the current epoch. */
static qn__batch batch_at(const qn__train_job *job, uint64_t step) {
    const uint64_t first = step % job->steps_per_epoch * job->recipe.batch;
    const uint64_t left = job->feed.items - first;
    qn__batch batch = {.feed = &job->feed,
                       .order = &job->order,
                       .first = first,
                       .items = left < job->recipe.batch ? (uint32_t)left : job->recipe.batch,
                       .epoch = (uint32_t)(step / job->steps_per_epoch),
                       .groups = job->groups};
    if (job->groups)
        batch.places = qn__length_groups_places(job->groups, &batch, 0);
    return batch;
}

/* The positions that this step and the next one may need begin where their windows do. */
static const qn__item_buffer *copies_for(const qn__train_job *job, const qn__batch *batch) {
    uint64_t first = batch->first, positions = job->recipe.batch;
    if (job->groups)
        first = qn__length_groups_window(job->groups, batch->first, &positions);
    return qn__read_ahead_move(job->ahead, batch->epoch, first, 2 * positions);
}

/* An iteration over all items. Steps count from 1 in messages. */
static qn_status iterate(qn__train_job *job, qn_error *err) {
    const qn_status status = qn__full_batch_step(job, err);
    if (status != QN_NUMERIC)
        return status;
    qn__at(err, "iteration %llu", (unsigned long long)job->step + 1);
    return qn__remedy(err, QN_NUMERIC,
                      "scale the inputs (`train.scale` standard); sums leave their range later "
                      "with a smaller `train.gradient_scale`");
}

qn_status qn__train_job_step(qn__train_job *job, qn_error *err) {
    if (job->full.lbfgs)
        return iterate(job, err);
    const uint64_t in_epoch = job->step % job->steps_per_epoch;
    const int last_of_epoch = in_epoch + 1 == job->steps_per_epoch;
    qn_status status = QN_OK;
    if (qn__team_save_due(job->team))
        status = qn__train_job_pull(job, err);
    if (status != QN_OK)
        return status;
    if (in_epoch == 0) {
        memset(&job->running, 0, sizeof job->running);
        begin_epoch(job, job->step / job->steps_per_epoch);
    }
    const qn__batch batch = batch_at(job, job->step);
    job->feed.buffer = copies_for(job, &batch);
    const qn__batch next = last_of_epoch ? (qn__batch){0} : batch_at(job, job->step + 1);
    qn__update update;
    job->learning_rate = qn__learning_rate_in(&job->stages, job->step, job->steps_per_epoch);
    qn__update_begin(&job->program, job->learning_rate, batch.items, &job->powers, &update);
    update.step = job->step + 1;
    update.average = qn__average_share(job->program.ema, job->step);
    status =
        qn__team_step(job->team, &batch, last_of_epoch ? NULL : &next, &update, &job->running, err);
    if (status == QN_OK && last_of_epoch)
        status = qn__team_flush(job->team, &job->running, err);
    if (status == QN_OK)
        ++job->step;
    return name_step(job, status, err);
}

/* The averages that stand for the parameters outside the steps; NULL: none do. */
static float **averages_of(qn__train_job *job) {
    const int slot = qn__program_average(&job->program);
    return slot >= 0 && !job->settled ? &job->state.slot[slot] : NULL;
}

void qn__train_job_averages(qn__train_job *job) {
    float **const averages = averages_of(job);
    if (averages)
        memcpy(*averages, job->state.parameters,
               (size_t)job->program.parameters * sizeof **averages);
}

const float *qn__train_job_shown(const qn__train_job *job) {
    const int slot = qn__program_average(&job->program);
    return slot >= 0 && !job->settled ? job->state.slot[slot] : job->state.parameters;
}

/* The workers get the averages as their parameters, or the parameters again. */
static qn_status exchange(qn__train_job *job, qn_error *err) {
    float **const averages = averages_of(job), *const parameters = job->state.parameters;
    job->state.parameters = *averages;
    *averages = parameters;
    return qn__train_job_push(job, err);
}

qn_status qn__train_job_show(qn__train_job *job, qn_error *err) {
    if (!averages_of(job))
        return QN_OK;
    const qn_status status = qn__train_job_pull(job, err);
    return status == QN_OK ? exchange(job, err) : status;
}

qn_status qn__train_job_hide(qn__train_job *job, qn_error *err) {
    return averages_of(job) ? exchange(job, err) : QN_OK;
}

/* Sets of the caller have no weights: they do not belong to the recipe. */
static const float *shares_of(const qn__train_job *job, const qn_data *set) {
    return set == job->items.valid ? job->items.valid_shares : NULL;
}

static qn_status apply(qn__train_job *job, const qn_data *set, const qn__apply_results *results,
                       qn_error *err) {
    return qn__apply_all(job->team, own_program(job), qn__features_of(job->features, set), results,
                         err);
}

qn_status qn__train_job_evaluate(qn__train_job *job, const qn_data *set, qn__tally *tally,
                                 uint64_t *confusion, float *outputs, qn_error *err) {
    const qn__apply_results results = {
        .tally = tally, .confusion = confusion, .outputs = outputs, .weights = shares_of(job, set)};
    return apply(job, set, &results, err);
}

qn_status qn__train_job_outputs(qn__train_job *job, const qn_data *set, float *outputs,
                                qn_error *err) {
    const qn__apply_results results = {.outputs = outputs};
    return apply(job, set, &results, err);
}

qn_status qn__train_job_comparison(const qn__train_job *job, const qn_data *set, const char *what,
                                   qn__comparison *out, qn_error *err) {
    *out = (qn__comparison){.set = set};
    const qn_status status =
        qn__targets_scale(set, job->target_mean, job->target_deviation, &out->targets, err);
    if (status == QN_INPUT)
        qn__at(err, "%s", what);
    if (status != QN_OK)
        return status;
    out->predictions = qn__alloc(set->items, sizeof *out->predictions, err);
    return out->predictions ? QN_OK : QN_MEMORY;
}

void qn__comparison_release(qn__comparison *comparison) {
    qn__free(comparison->targets);
    qn__free(comparison->predictions);
    *comparison = (qn__comparison){0};
}

qn_status qn__train_job_compare(qn__train_job *job, const qn__comparison *with, qn__tally *tally,
                                qn__target_errors *errors, qn_error *err) {
    const qn__apply_results results = {.tally = tally,
                                       .scores = with->predictions,
                                       .labels = with->targets,
                                       .weights = shares_of(job, with->set)};
    qn_status status = apply(job, with->set, &results, err);
    if (status == QN_OK)
        status = qn__targets_predict(with->predictions, with->set->items, job->target_mean,
                                     job->target_deviation, err);
    if (status == QN_OK)
        *errors =
            qn__targets_compare(with->set->targets, with->predictions, NULL, with->set->items);
    return status;
}

/* Whether the set has the labels that the task needs. */
static qn_status check_labels(const qn__train_job *job, const qn_data *set, const char *what,
                              qn_error *err) {
    const int real = job->recipe.task == QN__TASK_REGRESS;
    if (job->recipe.task == QN__TASK_NEXT && !qn__data_labelled(set))
        return QN_OK;
    if (set->several || (qn__recipe_is_several(&job->recipe) && qn__data_labelled(set)))
        return qn__recipe_check_set(&job->recipe, set, what, err);
    if (real ? set->targets != NULL : set->labels != NULL)
        return QN_OK;
    if (!set->labels && !set->targets) {
        qn__fail(err, QN_INPUT, "%s has no labels", what);
        return qn__remedy(err, QN_INPUT, "give the file of its labels too");
    }
    qn__fail(err, QN_MISMATCH,
             real ? "the labels of %s are classes, those of the training data are real numbers"
                  : "the labels of %s are real numbers, those of the training data are classes",
             what);
    return qn__remedy(err, QN_MISMATCH,
                      "both files must hold the same columns; `data.label_column` says which is "
                      "the label");
}

qn_status qn__train_job_fits(const qn__train_job *job, const qn_data *set, const char *what,
                             qn_error *err) {
    if (set->features != job->recipe.features) {
        qn__fail(err, QN_MISMATCH, "%s has %u features, the training data has %u", what,
                 set->features, job->recipe.features);
        return qn__remedy(
            err, QN_MISMATCH,
            "both files must hold the same columns; `data.label_column` says which is the label");
    }
    const qn_status status = check_labels(job, set, what, err);
    if (status != QN_OK)
        return status;
    if (set->type != QN_U8 && qn__recipe_needs_bytes(&job->recipe)) {
        qn__fail(err, QN_MISMATCH, "%s holds numbers that are not bytes, but `train.scale` is %s",
                 what, qn__table_name(&qn__scalings, (int)job->recipe.scale));
        return qn__remedy(err, QN_MISMATCH, "use `train.scale` standard");
    }
    if (qn__recipe_check_tokens(&job->recipe, set, what, err) != QN_OK)
        return QN_MISMATCH;
    if (qn__recipe_check_windows(set, what, err) != QN_OK)
        return QN_INPUT;
    const uint32_t outputs = qn__program_classes(&job->program);
    if (job->recipe.task == QN__TASK_CLASSIFY && set->classes > outputs) {
        qn__fail(err, QN_MISMATCH, "%s has labels up to %u, the network has %u outputs", what,
                 set->classes - 1, outputs);
        return qn__remedy(err, QN_MISMATCH,
                          "both files must number the classes alike; if they do, make the last "
                          "layer %u wide",
                          set->classes);
    }
    return QN_OK;
}

/* Copies the parameters of a layer from where they stand in one array to where they stand in
 * another. */
static void move_layer(const qn__layer *layer, const float *from, const qn__layer *place,
                       float *to) {
    memcpy(to + place->weights, from + layer->weights,
           (size_t)(qn__layer_end(layer) - layer->weights) * sizeof *to);
}

void qn__train_job_take(qn__train_job *job, const qn_model *model) {
    char role[QN__MAX_LAYERS];
    qn__program start;
    uint32_t to = 0;
    qn__model_program(model, &start);
    qn__recipe_roles(&job->recipe, role);
    for (uint32_t l = 0; l + (job->recipe.new_last != 0) < start.layers; ++l, ++to) {
        while (role[to] > QN__LORA_MAIN) /* the model has no adapters */
            ++to;
        move_layer(&start.layer[l], qn__model_parameters(model), &job->layer[to],
                   job->state.parameters);
    }
    qn__train_job_averages(job);
}

static int is_in_order(const qn__train_job *job) {
    for (uint32_t l = job->program.frozen; l < job->program.layers; ++l)
        if (job->layer[l].still)
            return 0;
    return 1;
}

/* The parameters in the order of a model: *parameters, or a new array in its place. */
static qn_status put_in_order(const qn__train_job *job, float **parameters, qn_error *err) {
    qn__layer layer[QN__MAX_LAYERS];
    uint64_t count;
    if (is_in_order(job))
        return QN_OK;
    const qn_status status = qn__network_program(
        &job->recipe.network, qn__recipe_input(&job->recipe), layer, &count, err);
    float *const to = status == QN_OK ? qn__alloc(count, sizeof *to, err) : NULL;
    if (!to)
        return status == QN_OK ? QN_MEMORY : status;
    for (uint32_t l = 0; l < job->program.layers; ++l)
        move_layer(&job->layer[l], *parameters, &layer[l], to);
    qn__free(*parameters);
    *parameters = to;
    return QN_OK;
}

/* Whether the newest state is in the workers, and its parameters alone make the model. Then the
 * optimiser's numbers need no memory here. */
static int is_parameters_alone(const qn__train_job *job) {
    return job->kept.step != job->step && !job->full.lbfgs && !job->features &&
           qn__program_average(&job->program) < 0;
}

/* The parameters of the newest state, in a new array. */
static qn_status take_parameters(qn__train_job *job, float **out, qn_error *err) {
    const int alone = is_parameters_alone(job);
    const uint64_t count = job->program.parameters;
    qn_status status = alone ? qn__train_job_flush(job, err) : qn__train_job_pull(job, err);
    qn__state own = {.parameters = NULL};
    if (status == QN_OK && !(own.parameters = qn__alloc(count, sizeof(float), err)))
        status = QN_MEMORY;
    if (status == QN_OK && alone)
        status = qn__team_save(job->team, &own, err);
    else if (status == QN_OK)
        memcpy(own.parameters, qn__train_job_shown(job), (size_t)count * sizeof(float));
    *out = own.parameters;
    return status;
}

qn_status qn__train_job_model(qn__train_job *job, qn_model **out, qn_error *err) {
    float *own;
    *out = NULL;
    qn_status status = take_parameters(job, &own, err);
    if (status == QN_OK)
        status = put_in_order(job, &own, err);
    if (status != QN_OK) {
        qn__free(own);
        return status;
    }
    const qn__fitted fitted = {.parameter = own,
                               .given = own,
                               .mean = job->mean,
                               .deviation = job->deviation,
                               .fill = job->items.fill,
                               .offset = job->items.offset,
                               .idf = job->items.idf,
                               .target_mean = job->target_mean,
                               .target_deviation = job->target_deviation};
    return qn__model_create(&job->recipe, &fitted, out, err);
}
