/* The expected results of a case, computed with layer/reference.h. Static functions for the
 * conformance suite. */
#ifndef QN_DEVICE_CONFORMANCE_EXPECT_TEST_H
#define QN_DEVICE_CONFORMANCE_EXPECT_TEST_H

#include "device/conformance_case_test.h"
#include "num/optimise.h"
#include "layer/reference.h"

/* One step: its sums before the update, the state after the update. */
typedef struct expected_step {
    int fails; /* a loss or a gradient is out of range; the other members are not used */
    int64_t *sums;
    qn__tally tally;
    qn__update update;
    qn__state after;
} expected_step;

typedef struct expected {
    expected_step step[CASE_BATCHES];
    uint32_t steps; /* steps up to and with the first that fails */
    /* apply of the first batch's items by position, with the first state. */
    int apply_fails;    /* an output is not finite */
    uint64_t first_bad; /* the first item that has one */
    int loss_fails;     /* or a loss leaves its range */
    int32_t *classes;
    float *scores, *outputs, *inputs; /* inputs: of the last of several layers */
    qn__tally tally;
    uint32_t items;
} expected;

static const uint8_t *answers_of(const qn__batch *batch, uint64_t item) {
    const qn__feed *feed = batch->feed;
    const uint64_t row = feed->answer_rows ? feed->answer_rows[item] : item;
    return feed->answers + row * answers_each;
}

static qn__reference_item item_of(const qn__batch *batch, uint32_t index) {
    const qn__feed *feed = batch->feed;
    const uint64_t position = batch->first + index;
    const uint64_t item = batch->order ? qn__permutation_at(batch->order, position) : position;
    const uint64_t row = feed->rows ? feed->rows[item] : item;
    return (qn__reference_item){.type = feed->type,
                                .values = (const char *)feed->values + row * qn__feed_step(feed),
                                .number = item,
                                .label = feed->labels ? (uint32_t)feed->labels[item] : 0,
                                .answers = feed->answers ? answers_of(batch, item) : NULL,
                                .weight = feed->weights ? &feed->weights[item] : NULL};
}

/* The item before it in the epoch. */
static qn__reference_item partner_of(const qn__batch *batch, uint32_t index) {
    const uint64_t items = batch->order ? batch->order->n : batch->feed->items;
    const uint64_t position = batch->first + index;
    qn__batch before = *batch;
    before.first = position > 0 ? position - 1 : items - 1;
    return item_of(&before, 0);
}

/* The largest partial of the batch, so that a limit can be set exactly there. */
static float sum_batch(const test_case *c, qn__reference *r, const float *parameters,
                       const qn__batch *batch, expected_step *e) {
    const uint32_t grain = c->program.grain;
    float absmax = 0.0f;
    for (uint32_t first = 0; first < batch->items; first += grain) {
        qn__reference_grain_begin(r);
        for (uint32_t i = first; i < batch->items && i - first < grain; ++i) {
            const qn__reference_item item = item_of(batch, i), partner = partner_of(batch, i);
            qn__reference_grain_pair(r, parameters, &item, c->program.mix ? &partner : NULL,
                                     batch->epoch);
        }
        if (qn__reference_grain_end(r, e->sums, &e->tally) != QN__GRAIN_FINE)
            e->fails = 1;
        for (uint64_t i = c->program.frozen_parameters; i < c->program.parameters; ++i)
            absmax = fmaxf(absmax, fabsf(qn__reference_partials(r)[i]));
    }
    return absmax;
}

static void apply_update(const test_case *c, const qn__state *before, expected_step *e) {
    const qn__program *p = &c->program;
    const uint32_t slots = qn__program_slots(p);
    const size_t size = p->parameters * sizeof(float);
    const int average = qn__program_average(p);
    memcpy(e->after.parameters, before->parameters, size);
    for (uint32_t s = 0; s < slots; ++s)
        memcpy(e->after.slot[s], before->slot[s], size);
    for (uint32_t l = p->frozen; l < p->layers; ++l) {
        const qn__update own = qn__update_of(&e->update, &p->layer[l]);
        if (!qn__program_trains(p, l))
            continue;
        for (uint64_t i = p->layer[l].weights; i < qn__layer_end(&p->layer[l]); ++i) {
            float *w = &e->after.parameters[i], *s0 = slots > 0 ? &e->after.slot[0][i] : NULL;
            if (i >= qn__layer_running(&p->layer[l]))
                qn__update_running(&e->update, p->layer[l].running_rate,
                                   e->sums[qn__program_sum(p, i)], w);
            else
                qn__update_one(p, &own,
                               i < p->layer[l].biases ? qn__weights_decay(p, &p->layer[l])
                                                      : qn__others_decay(p, &p->layer[l]),
                               e->sums[qn__program_sum(p, i)], w, s0,
                               slots > 1 ? &e->after.slot[1][i] : NULL);
            if (average >= 0)
                qn__update_average(&own, *w, &e->after.slot[average][i]);
        }
    }
}

static void expect_steps(test_case *c, qn__reference *r, expected *e) {
    const uint64_t n = c->program.parameters;
    const qn__state *before = &c->state;
    qn__adam_powers powers = {1.0f, 1.0f};
    for (e->steps = 0; e->steps < (c->brief ? 1 : CASE_BATCHES);
         before = &e->step[e->steps++].after) {
        expected_step *s = &e->step[e->steps];
        const qn__batch *batch = &c->batch[e->steps];
        s->sums = cut(c, n, sizeof *s->sums);
        memset(s->sums, 0, n * sizeof *s->sums);
        s->after.parameters = cut(c, n, sizeof(float));
        for (uint32_t k = 0; k < qn__program_slots(&c->program); ++k)
            s->after.slot[k] = cut(c, n, sizeof(float));
        qn__update_begin(&c->program, c->rate, batch->items, &powers, &s->update);
        s->update.step = e->steps + 1;
        s->update.average = qn__average_share(c->program.ema, e->steps);
        sum_batch(c, r, before->parameters, batch, s);
        if (s->fails) {
            ++e->steps;
            return;
        }
        apply_update(c, before, s);
    }
}

/* Integer products do not give their largest partial, but limits are powers of two (8.7): sets the
 * one that just fails, or the next. */
static void put_power_at_edge(test_case *c, qn__reference *r) {
    const float usual = c->program.partial_limit;
    const size_t used = c->used;
    expected_step trial = {.sums = cut(c, c->program.parameters, sizeof(int64_t))};
    int passes = ilogbf(usual), fails = -1; /* exponents; these two are not tried */
    while (passes - fails > 1) {
        const int middle = (passes + fails) / 2;
        c->program.partial_limit = ldexpf(1.0f, middle);
        memset(trial.sums, 0, c->program.parameters * sizeof *trial.sums);
        trial.tally = (qn__tally){0};
        trial.fails = 0;
        sum_batch(c, r, c->state.parameters, &c->batch[0], &trial);
        passes = trial.fails ? passes : middle;
        fails = trial.fails ? middle : fails;
    }
    c->program.partial_limit = ldexpf(1.0f, fails >= 0 && below(c, 2) ? fails : passes);
    c->used = used;
}

/* Sets the limit of partials so that the first batch's largest one just fails or just passes. */
static void put_limit_at_edge(test_case *c, qn__reference *r) {
    if (c->program.arith != QN__ARITH_F32) {
        put_power_at_edge(c, r);
        return;
    }
    expected_step trial = {.sums = cut(c, c->program.parameters, sizeof(int64_t))};
    memset(trial.sums, 0, c->program.parameters * sizeof *trial.sums);
    const float absmax = sum_batch(c, r, c->state.parameters, &c->batch[0], &trial);
    if (absmax > 0.0f && absmax < c->program.partial_limit)
        c->program.partial_limit = below(c, 2) ? absmax : nextafterf(absmax, INFINITY);
}

static void expect_apply(test_case *c, qn__reference *r, expected *e) {
    const uint32_t outputs = c->layer[c->program.layers - 1].out, grain = c->program.grain;
    const uint32_t inputs = c->layer[c->program.layers - 1].in;
    const qn__batch batch = {
        .feed = &c->feed, .first = 1, .items = c->apply_items ? c->apply_items : c->program.batch};
    float loss = 0.0f;
    e->items = batch.items;
    e->classes = cut(c, e->items, sizeof *e->classes);
    e->scores = cut(c, e->items, sizeof *e->scores);
    e->outputs = cut(c, (size_t)e->items * outputs, sizeof *e->outputs);
    e->inputs = cut(c, (size_t)e->items * inputs, sizeof *e->inputs);
    for (uint32_t i = 0; i < e->items; ++i) {
        const qn__reference_item item = item_of(&batch, i);
        const float *y = qn__reference_apply(r, c->state.parameters, &item);
        memcpy(e->outputs + (size_t)i * outputs, y, outputs * sizeof *y);
        if (c->program.layers > 1)
            qn__reference_last_inputs(r, e->inputs + (size_t)i * inputs);
        for (uint32_t j = 0; j < outputs; ++j)
            if (!isfinite(y[j]) && !e->apply_fails) {
                e->apply_fails = 1;
                e->first_bad = item.number;
            }
        e->classes[i] = qn__reference_class(r);
        e->scores[i] = qn__reference_score(r);
        e->tally.correct += qn__reference_right(r, &item);
        e->tally.items += 1;
        loss = loss + qn__reference_loss(r, &item);
        if (i + 1 < e->items && (i + 1) % grain != 0)
            continue;
        e->loss_fails |= !(fabsf(loss) < QN__LOSS_LIMIT);
        if (!e->loss_fails)
            e->tally.loss += qn__to_units(loss * QN__LOSS_UNIT);
        loss = 0.0f;
    }
}

/* Fills `e`, whose arrays belong to the case. Returns 0 when memory is short. */
static int expect(test_case *c, expected *e) {
    qn__reference *r;
    memset(e, 0, sizeof *e);
    if (qn__reference_create(&c->program, &r, NULL) != QN_OK)
        return 0;
    if (c->kind == EDGE)
        put_limit_at_edge(c, r);
    expect_steps(c, r, e);
    expect_apply(c, r, e);
    qn__reference_destroy(r);
    return 1;
}

#endif
