/* The device table over layer/reference.h, with the behaviour of a plan. A worker computes the real
 * result, then sleeps until its rate is met. The registered table has no train_step, so that a team
 * of one fake device uses the queue like any other team; two more tables have one. */
#include "fake_device/fake_device.h"

#include "base/memory.h"
#include "base/system/clock.h"
#include "layer/reference.h"
#include "num/optimise.h"
#include "num/philox.h"
#include "num/sums.h"
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>

static qn__fake_plan plan;

struct qn__worker {
    const qn__program *program;
    qn__reference *reference;
    uint32_t index, slots;
    qn__fake_behaviour behaviour;
    int failed;
    uint64_t grains, updates, collects, steps, flushes, applies, loads, saves, calls;
    float *parameters, *slot[QN__SLOTS]; /* canonical, program->parameters each */
    int64_t *sums;
    qn__tally tally;
    qn__tally owed; /* tally of late steps, not yet reported */
    qn_error late;  /* their failure */
    double busy, first_grain;
};

void qn__fake_set(const qn__fake_plan *wanted) {
    plan = wanted ? *wanted : (qn__fake_plan){0};
    if (plan.count > QN__FAKE_DEVICES)
        plan.count = QN__FAKE_DEVICES;
    qn__devices_extra(plan.count > 0 ? &qn__fake_device : NULL);
}

static uint32_t count(void) { return plan.count; }

static qn_status describe(uint32_t index, qn_device_info *info, qn_error *err) {
    if (index >= plan.count)
        return qn__fail(err, QN_USAGE, "there is no fake device %u", index);
    memset(info, 0, sizeof *info);
    snprintf(info->id, sizeof info->id, "fake:%u", index);
    snprintf(info->kind, sizeof info->kind, "fake");
    snprintf(info->type, sizeof info->type, "fake");
    snprintf(info->name, sizeof info->name, "a fake device for tests");
    snprintf(info->isa, sizeof info->isa, "reference");
    snprintf(info->isas, sizeof info->isas, "reference");
    info->cores = 1;
    return QN_OK;
}

/* The reference supports every arithmetic. */
static int supports(const qn__program *program) {
    (void)program;
    return 1;
}

static void wait_seconds(double seconds) {
    if (seconds <= 0)
        return;
    prctl(PR_SET_TIMERSLACK, 1); /* sleeps end on time */
    const double whole = floor(seconds);
    struct timespec left = {.tv_sec = (time_t)whole, .tv_nsec = (long)((seconds - whole) * 1e9)};
    while (nanosleep(&left, &left) != 0)
        ;
}

static void close_worker(qn__worker *w) {
    if (!w)
        return;
    qn__reference_destroy(w->reference);
    qn__free(w->parameters);
    for (int i = 0; i < QN__SLOTS; ++i)
        qn__free(w->slot[i]);
    qn__free(w->sums);
    qn__free(w);
}

static qn_status allocate(qn__worker *w, qn_error *err) {
    const uint64_t n = w->program->parameters;
    w->parameters = qn__alloc(n, sizeof *w->parameters, err);
    w->sums = qn__alloc(n, sizeof *w->sums, err);
    if (!w->parameters || !w->sums)
        return QN_MEMORY;
    for (uint32_t s = 0; s < w->slots; ++s)
        if (!(w->slot[s] = qn__alloc(n, sizeof *w->slot[s], err)))
            return QN_MEMORY;
    return qn__reference_create(w->program, &w->reference, err);
}

static qn_status open_worker(uint32_t index, const qn_compute *compute, const qn__program *program,
                             qn__worker **out, qn_error *err) {
    (void)compute; /* one thread, one implementation */
    *out = NULL;
    if (index >= plan.count)
        return qn__fail(err, QN_USAGE, "there is no fake device %u", index);
    if (plan.device[index].refuse)
        return qn__fail(err, QN_UNSUPPORTED, "fake device %u cannot be used, as planned", index);
    qn__worker *w = qn__alloc(1, sizeof *w, err);
    if (!w)
        return QN_MEMORY;
    w->program = program;
    w->index = index;
    w->slots = program ? qn__program_slots(program) : 0;
    w->behaviour = plan.device[index];
    const qn_status status = program ? allocate(w, err) : QN_OK;
    if (status != QN_OK) {
        close_worker(w);
        return status;
    }
    wait_seconds(w->behaviour.start);
    *out = w;
    return QN_OK;
}

/* Discards the worker's sums, which are invalid from now on. */
static qn_status fail(qn__worker *w, qn_error *err) {
    w->failed = 1;
    if (w->program)
        memset(w->parameters, 0xff, w->program->parameters * sizeof *w->parameters);
    return qn__fail(err, QN_DEVICE, "fake device %u failed at grain %llu, as planned", w->index,
                    (unsigned long long)w->grains);
}

/* Counts a call; 1 when the plan lets this call, or an earlier one, fail. */
static int fails(const qn__worker *w, uint64_t *calls, uint64_t at) {
    return w->failed || ++*calls == at;
}

static qn_status load(qn__worker *w, const qn__state *state, qn_error *err) {
    const uint64_t n = w->program->parameters;
    if (fails(w, &w->loads, w->behaviour.fail_load))
        return fail(w, err);
    memcpy(w->parameters, state->parameters, n * sizeof *w->parameters);
    for (uint32_t s = 0; s < w->slots; ++s)
        if (state->slot[s])
            memcpy(w->slot[s], state->slot[s], n * sizeof *w->slot[s]);
    memset(w->sums, 0, n * sizeof *w->sums);
    memset(&w->tally, 0, sizeof w->tally);
    return QN_OK;
}

/* Fails after half of the data. */
static qn_status save(qn__worker *w, qn__state *state, qn_error *err) {
    const uint64_t n = w->program->parameters;
    const int broken = fails(w, &w->saves, w->behaviour.fail_save);
    memcpy(state->parameters, w->parameters, (broken ? n / 2 : n) * sizeof *w->parameters);
    if (broken)
        return fail(w, err);
    for (uint32_t s = 0; s < w->slots; ++s)
        if (state->slot[s])
            memcpy(state->slot[s], w->slot[s], n * sizeof *w->slot[s]);
    return QN_OK;
}

static qn__reference_item item_at(const qn__worker *w, const qn__batch *batch, uint32_t index) {
    const qn__feed *feed = batch->feed;
    uint64_t item;
    qn__batch_items(batch, index, 1, &item);
    return (qn__reference_item){.type = feed->type,
                                .values = qn__batch_values(batch, index, item),
                                .number = item,
                                .label = feed->labels ? (uint32_t)feed->labels[item] : 0,
                                .weight = feed->weights ? &feed->weights[item] : NULL,
                                .answers = feed->answers ? qn__feed_answers(feed, w->program, item)
                                                         : NULL};
}

/* The item with which it is mixed. */
static qn__reference_item partner_at(const qn__worker *w, const qn__batch *batch, uint32_t place) {
    qn__batch other = *batch;
    qn__batch_partner(batch, place, &other.first);
    other.places = NULL;
    return item_at(w, &other, 0);
}

/* Applies the plan before a grain: stall, change of speed, failure. */
static qn_status before_grain(qn__worker *w, qn_error *err) {
    const qn__fake_behaviour *b = &w->behaviour;
    ++w->grains;
    if (w->grains == b->stall_at)
        wait_seconds(b->stall);
    if (w->first_grain <= 0)
        w->first_grain = qn__now();
    if (w->grains == b->change_at ||
        (b->change_after > 0 && qn__now() - w->first_grain >= b->change_after))
        w->behaviour.rate = b->change_rate;
    if (w->failed || w->grains == b->fail_at)
        return fail(w, err);
    return QN_OK;
}

/* Sleeps until `items` items have taken the time that the rate gives, plus or minus the noise. */
static void keep_pace(qn__worker *w, double begun, uint64_t items) {
    const qn__fake_behaviour *b = &w->behaviour;
    uint32_t word[4];
    if (b->rate > 0 || b->call > 0) {
        qn__words(w->index, 0, 0, 0, w->calls++, 0, word);
        const double beside = b->noise * (word[0] * 0x1p-31 - 1.0);
        double seconds = b->call + (b->rate > 0 ? (double)items / b->rate : 0);
        const double change = w->first_grain + b->change_after;
        /* A long call meets the change in its middle. */
        if (b->change_after > 0 && begun < change && begun + seconds > change)
            seconds = change - begun + (begun + seconds - change) * b->rate / b->change_rate;
        wait_seconds(begun + seconds * (1.0 + beside) - qn__now());
    }
    w->busy += qn__now() - begun;
}

static qn_status one_grain(qn__worker *w, const qn__batch *batch, uint32_t first, uint32_t items,
                           qn_error *err) {
    if (w->behaviour.idle) {
        w->tally.items += items;
        return QN_OK;
    }
    qn__reference_grain_begin(w->reference);
    for (uint32_t i = first; i < first + items; ++i) {
        const qn__reference_item item = item_at(w, batch, i), partner = partner_at(w, batch, i);
        qn__reference_grain_pair(w->reference, w->parameters, &item,
                                 w->program->mix ? &partner : NULL, batch->epoch);
    }
    switch (qn__reference_grain_end(w->reference, w->sums, &w->tally)) {
    case QN__GRAIN_LOSS:
        return qn__fail(err, QN_NUMERIC, "the loss became NaN or too large to be summed");
    case QN__GRAIN_GRADIENT:
        return qn__fail(err, QN_NUMERIC, "a gradient left the range of its sum");
    case QN__GRAIN_FINE:
        break;
    }
    return QN_OK;
}

static qn_status train_grains(qn__worker *w, const qn__batch *batch, uint32_t first, uint32_t many,
                              qn_error *err) {
    const double begun = qn__now();
    const uint32_t grain = w->program->grain;
    uint64_t items = 0;
    qn_status status = QN_OK;
    for (uint32_t g = first; status == QN_OK && g < first + many; ++g) {
        const uint32_t from = g * grain;
        const uint32_t n = batch->items - from < grain ? batch->items - from : grain;
        status = before_grain(w, err);
        if (status == QN_OK)
            status = one_grain(w, batch, from, n, err);
        items += n;
    }
    keep_pace(w, begun, items);
    return status;
}

/* Fails after half of the data. */
static qn_status collect(qn__worker *w, int64_t *sums, qn__tally *tally, qn_error *err) {
    const int broken = fails(w, &w->collects, w->behaviour.fail_collect);
    const uint64_t n = w->behaviour.idle ? 0 : qn__program_sums(w->program);
    for (uint64_t i = 0; i < (broken ? n / 2 : n); ++i) {
        sums[i] += w->sums[i];
        w->sums[i] = 0;
    }
    if (broken)
        return fail(w, err);
    wait_seconds(w->behaviour.sharing);
    w->tally.items += w->collects == w->behaviour.miscount;
    const int failed = qn__tally_add(tally, &w->tally);
    memset(&w->tally, 0, sizeof w->tally);
    return failed ? qn__fail(err, QN_NUMERIC, "the sum of the losses became too large") : QN_OK;
}

static void update_range(qn__worker *w, const qn__update *update, int decays, uint64_t first,
                         uint64_t many, const int64_t *sums) {
    for (uint64_t i = first; i < first + many; ++i)
        qn__update_one(w->program, update, decays, sums[qn__program_sum(w->program, i)],
                       &w->parameters[i], w->slots > 0 ? &w->slot[0][i] : NULL,
                       w->slots > 1 ? &w->slot[1][i] : NULL);
}

static qn_status make_update(qn__worker *w, const qn__update *numbers, const int64_t *sums,
                             qn_error *err) {
    const int average = qn__program_average(w->program);
    if (fails(w, &w->updates, w->behaviour.fail_update))
        return fail(w, err);
    for (uint32_t l = w->program->frozen; l < w->program->layers && !w->behaviour.idle; ++l) {
        const qn__layer *layer = &w->program->layer[l];
        const qn__update own = qn__update_of(numbers, layer);
        if (!qn__program_trains(w->program, l))
            continue;
        update_range(w, &own, qn__weights_decay(w->program, layer), layer->weights,
                     layer->biases - layer->weights, sums);
        const uint64_t running = qn__layer_running(layer);
        update_range(w, &own, qn__others_decay(w->program, layer), layer->biases,
                     running - layer->biases, sums);
        for (uint64_t i = running; i < running + layer->running; ++i)
            qn__update_running(numbers, layer->running_rate, sums[qn__program_sum(w->program, i)],
                               &w->parameters[i]);
        for (uint64_t i = layer->weights; i < qn__layer_end(layer) && average >= 0; ++i)
            qn__update_average(numbers, w->parameters[i], &w->slot[average][i]);
    }
    return QN_OK;
}

static qn_status update(qn__worker *w, const qn__update *numbers, const int64_t *sums,
                        qn_error *err) {
    wait_seconds(w->behaviour.sharing);
    return make_update(w, numbers, sums, err);
}

static qn_status whole_step(qn__worker *w, const qn__batch *batch, const qn__update *numbers,
                            qn__tally *tally, qn_error *err) {
    const uint32_t grain = w->program->grain;
    const uint32_t grains = (uint32_t)(((uint64_t)batch->items + grain - 1) / grain);
    if (fails(w, &w->steps, w->behaviour.fail_step))
        return fail(w, err);
    qn_status status = train_grains(w, batch, 0, grains, err);
    if (status == QN_OK)
        status = make_update(w, numbers, w->sums, err);
    if (status != QN_OK)
        return status;
    memset(w->sums, 0, w->program->parameters * sizeof *w->sums);
    const int failed = qn__tally_add(tally, &w->tally);
    memset(&w->tally, 0, sizeof w->tally);
    return failed ? qn__fail(err, QN_NUMERIC, "the sum of the losses became too large") : QN_OK;
}

static qn_status train_step(qn__worker *w, const qn__batch *batch, const qn__batch *next,
                            const qn__update *numbers, qn__tally *tally, qn_error *err) {
    (void)next;
    return whole_step(w, batch, numbers, tally, err);
}

/* Reports what earlier steps have not yet reported. */
static qn_status report_owed(qn__worker *w, qn__tally *tally, qn_error *err) {
    if (w->late.status != QN_OK) {
        if (err)
            *err = w->late;
        return w->late.status;
    }
    const int failed = qn__tally_add(tally, &w->owed);
    memset(&w->owed, 0, sizeof w->owed);
    return failed ? qn__fail(err, QN_NUMERIC, "the sum of the losses became too large") : QN_OK;
}

/* Reports every other step immediately, and failures with the next call. */
static qn_status late_step(qn__worker *w, const qn__batch *batch, const qn__batch *next,
                           const qn__update *numbers, qn__tally *tally, qn_error *err) {
    (void)next;
    const qn_status status = w->steps % 2 ? report_owed(w, tally, err) : w->late.status;
    if (status != QN_OK)
        return report_owed(w, tally, err);
    if (whole_step(w, batch, numbers, &w->owed, &w->late) == QN_NUMERIC)
        qn__at(&w->late, "step %llu", (unsigned long long)numbers->step);
    return QN_OK;
}

static qn_status flush(qn__worker *w, qn__tally *tally, qn_error *err) {
    if (fails(w, &w->flushes, w->behaviour.fail_flush))
        return fail(w, err);
    return report_owed(w, tally, err);
}

static uint32_t last_inputs(const qn__program *program) {
    return program->layer[program->layers - 1].in;
}

/* One item of apply: its results, and its share of the loss of its grain. */
static qn_status apply_item(qn__worker *w, const qn__batch *batch, uint32_t index,
                            const qn__applied *applied, float *loss, qn__tally *tally,
                            qn_error *err) {
    const uint32_t outputs = w->program->layer[w->program->layers - 1].out;
    if (w->behaviour.idle)
        return QN_OK;
    const qn__reference_item item = item_at(w, batch, index);
    const float *y = qn__reference_apply(w->reference, w->parameters, &item);
    const int32_t class = qn__reference_class(w->reference);
    for (uint32_t j = 0; j < outputs; ++j)
        if (!isfinite(y[j]))
            return qn__fail(err, QN_NUMERIC, "the network gives no finite output for item %llu",
                            (unsigned long long)(batch->first + index));
    if (applied && applied->outputs)
        memcpy(applied->outputs + (size_t)index * outputs, y, outputs * sizeof *y);
    if (applied && applied->inputs)
        qn__reference_last_inputs(w->reference,
                                  applied->inputs + (size_t)index * last_inputs(w->program));
    if (applied && applied->classes)
        applied->classes[index] = class;
    if (applied && applied->scores)
        applied->scores[index] = qn__reference_score(w->reference);
    if (tally && qn__feed_labelled(batch->feed)) {
        *loss = *loss + qn__reference_loss(w->reference, &item);
        tally->correct += qn__reference_right(w->reference, &item);
        tally->items += 1;
    }
    return QN_OK;
}

static qn_status apply(qn__worker *w, const qn__job *job, uint32_t first, uint32_t count,
                       qn__tally *tally, qn_error *err) {
    const double begun = qn__now();
    const qn__batch *batch = job->batch;
    const uint32_t grain = w->program->grain;
    uint64_t items = 0;
    int lost = 0; /* a loss failed; an output that is not finite is reported instead */
    if (fails(w, &w->applies, w->behaviour.fail_apply))
        return fail(w, err);
    for (uint32_t g = first; g < first + count; ++g) {
        const uint32_t from = g * grain;
        const uint32_t n = batch->items - from < grain ? batch->items - from : grain;
        float loss = 0.0f;
        items += n;
        for (uint32_t i = from; i < from + n; ++i) {
            const qn_status status = apply_item(w, batch, i, job->applied, &loss, tally, err);
            if (status != QN_OK)
                return status;
        }
        lost |= !(fabsf(loss) < QN__LOSS_LIMIT);
        if (tally && !lost)
            tally->loss += qn__to_units(loss * QN__LOSS_UNIT);
    }
    keep_pace(w, begun, items);
    return lost ? qn__fail(err, QN_NUMERIC, "the loss became NaN or too large to be summed")
                : QN_OK;
}

/* A grain counts as an item. */
static qn_status host_grains(qn__worker *w, const qn__host_job *job, uint32_t first, uint32_t count,
                             const qn__outlet *sums, qn_error *err) {
    const double begun = qn__now();
    void *scratch = job->open ? job->open(job->context, err) : NULL;
    qn_status status = job->open && !scratch ? QN_MEMORY : QN_OK;
    for (uint32_t g = first; status == QN_OK && g < first + count; ++g) {
        status = before_grain(w, err);
        if (status == QN_OK)
            status = job->grains(job->context, scratch, g, 1, sums->words, err);
        sums->tally->items += status == QN_OK;
    }
    if (scratch && status == QN_OK && job->finish)
        job->finish(job->context, scratch, sums->words);
    if (scratch)
        job->close(scratch);
    keep_pace(w, begun, count);
    return status;
}

static qn_status run(qn__worker *w, const qn__job *job, uint32_t first, uint32_t count,
                     const qn__outlet *sums, qn_error *err) {
    if (job->kind == QN__JOB_HOST)
        return host_grains(w, job->host, first, count, sums, err);
    if (job->kind == QN__JOB_APPLY)
        return apply(w, job, first, count, sums->tally, err);
    return train_grains(w, job->batch, first, count, err);
}

static int busy(const qn__worker *w, double *seconds, int capacity) {
    if (capacity > 0)
        seconds[0] = w->busy;
    return 1;
}

/* What the three tables have in common. */
#define ENTRIES                                                                                    \
    .version = QN__DEVICE_VERSION, .name = "fake", .about = "a device of tests", .count = count,   \
    .describe = describe, .jobs = (1u << QN__JOB_KINDS) - 1, .supports = supports,                 \
    .open = open_worker, .close = close_worker, .load = load, .save = save, .run = run,            \
    .collect = collect, .update = update, .busy = busy

const qn__device_table qn__fake_device = {ENTRIES};
const qn__device_table qn__fake_lone_device = {ENTRIES, .train_step = train_step};
const qn__device_table qn__fake_late_device = {ENTRIES, .train_step = late_step, .flush = flush};
