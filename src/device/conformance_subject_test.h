/* Runs one worker through all functions of its device table and compares with the reference. Static
 * functions for the conformance suite and for tests of single backends; a failure names its
 * seed. */
#ifndef QN_DEVICE_CONFORMANCE_SUBJECT_TEST_H
#define QN_DEVICE_CONFORMANCE_SUBJECT_TEST_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "device/conformance_case_test.h"
#include "device/conformance_expect_test.h"
#include "device/conformance_settings_test.h"

/* What is being tested, for messages and for the helpers below. */
typedef struct subject {
    const qn__device_table *device;
    uint32_t index;
    char isa[16]; /* empty: the device has one instruction set only */
    int threads;
    test_case *c;
    const expected *e;
    qn__worker *worker;
    /* Results of the worker, allocated from `c` once for each subject. */
    int64_t *sums;
    qn__state state;
    qn_error err;
} subject;

/* Names the device, the case and the difference when a check fails. */
static void complain(const subject *s, const char *what, uint64_t at, const char *detail) {
    fail_msg("%s:%u %s, %d threads: %s differs first at %llu: %s\n  case: %s", s->device->name,
             s->index, s->isa, s->threads, what, (unsigned long long)at, detail, s->c->text);
}

/* Compares floats by their bits; the payload of a NaN is not compared. */
static void same_floats(const subject *s, const char *what, const float *got, const float *want,
                        uint64_t count) {
    char detail[96];
    if (memcmp(got, want, count * sizeof *got) == 0)
        return;
    for (uint64_t i = 0; i < count; ++i) {
        if (memcmp(&got[i], &want[i], sizeof *got) == 0 || (isnan(got[i]) && isnan(want[i])))
            continue;
        snprintf(detail, sizeof detail, "%a, the reference has %a", (double)got[i],
                 (double)want[i]);
        complain(s, what, i, detail);
    }
}

static void same_sums(const subject *s, const char *what, const int64_t *got, const int64_t *want,
                      uint64_t count) {
    char detail[96];
    for (uint64_t i = 0; i < count; ++i) {
        if (got[i] == want[i])
            continue;
        snprintf(detail, sizeof detail, "%lld, the reference has %lld", (long long)got[i],
                 (long long)want[i]);
        complain(s, what, i, detail);
    }
}

static void same_tally(const subject *s, const char *what, const qn__tally *got,
                       const qn__tally *want) {
    const int64_t g[] = {got->loss, (int64_t)got->correct, (int64_t)got->items};
    const int64_t w[] = {want->loss, (int64_t)want->correct, (int64_t)want->items};
    same_sums(s, what, g, w, 3);
}

static void same_state(subject *s, const char *what, const qn__state *want) {
    char name[96];
    const uint64_t n = s->c->program.parameters;
    assert_int_equal(s->device->save(s->worker, &s->state, &s->err), QN_OK);
    same_floats(s, what, s->state.parameters, want->parameters, n);
    for (uint32_t k = 0; k < qn__program_slots(&s->c->program); ++k) {
        /* A device may keep no state of what does not train, but averages of it. */
        const int averages = (int)k == qn__program_average(&s->c->program);
        const uint64_t from = averages ? 0 : s->c->program.frozen_parameters;
        snprintf(name, sizeof name, "%s, slot %u", what, k);
        same_floats(s, name, s->state.slot[k] + from, want->slot[k] + from, n - from);
    }
}

static void expect_status(const subject *s, const char *what, qn_status got, qn_status want) {
    if (got != want)
        fail_msg("%s:%u %s, %d threads: %s gave \"%s\" (%s), expected \"%s\"\n  case: %s",
                 s->device->name, s->index, s->isa, s->threads, what, qn_status_name(got),
                 got == QN_OK ? "" : s->err.what, qn_status_name(want), s->c->text);
}

static void load(subject *s) {
    expect_status(s, "load", s->device->load(s->worker, &s->c->state, &s->err), QN_OK);
}

static qn_status train(subject *s, const qn__batch *batch, uint32_t first, uint32_t count,
                       const qn__outlet *to) {
    const qn__job job = {.kind = QN__JOB_TRAIN, .batch = batch};
    return s->device->run(s->worker, &job, first, count, to, &s->err);
}

/* All grains of a batch in random chunks, the first ones last. */
static qn_status train_in_chunks(subject *s, const qn__batch *batch) {
    const uint32_t grain = s->c->program.grain, grains = (batch->items + grain - 1) / grain;
    qn_status status = QN_OK;
    for (uint32_t end = grains; status == QN_OK && end > 0;) {
        const uint32_t count = 1 + below(s->c, below(s->c, 2) ? end : (end < 3 ? end : 3));
        end -= count;
        status = train(s, batch, end, count, &(qn__outlet){0});
    }
    return status;
}

/* Shared steps: grains, sums, update, for every step of the case. */
static void check_shared(subject *s) {
    const uint64_t n = qn__program_sums(&s->c->program);
    load(s);
    for (uint32_t i = 0; i < s->e->steps; ++i) {
        const expected_step *want = &s->e->step[i];
        qn__tally tally = {.loss = 5, .correct = 6, .items = 7};
        qn_status status = train_in_chunks(s, &s->c->batch[i]);
        expect_status(s, "train", status, want->fails ? QN_NUMERIC : QN_OK);
        if (want->fails)
            return;
        memset(s->sums, 0, n * sizeof *s->sums);
        s->sums[0] = 3; /* collect adds */
        status = s->device->collect(s->worker, s->sums, &tally, &s->err);
        expect_status(s, "collect", status, QN_OK);
        s->sums[0] -= 3;
        tally.loss -= 5;
        tally.correct -= 6;
        tally.items -= 7;
        same_sums(s, "sums", s->sums, want->sums, n);
        same_tally(s, "tally (loss, correct, items)", &tally, &want->tally);
        status = s->device->update(s->worker, &want->update, s->sums, &s->err);
        expect_status(s, "update", status, QN_OK);
        same_state(s, "parameters after update", &want->after);
        /* collect has cleared the sums, and update does not touch them. */
        memset(s->sums, 0, n * sizeof *s->sums);
        tally = (qn__tally){0};
        expect_status(s, "collect", s->device->collect(s->worker, s->sums, &tally, &s->err), QN_OK);
        for (uint64_t k = 0; k < n; ++k)
            if (s->sums[k] != 0)
                complain(s, "cleared sums", k, "not 0");
        same_tally(s, "cleared tally", &tally, &(qn__tally){0});
    }
}

/* The words that were reported as final, copied at that moment. */
typedef struct early {
    const int64_t *sums;
    int64_t *seen;
    uint64_t from; /* words from here on were reported */
    int in_order;
} early;

static void take_early(void *user, uint64_t first, uint64_t words) {
    early *e = user;
    e->in_order &= words > 0 && first + words == e->from;
    memcpy(e->seen + first, e->sums + first, words * sizeof *e->seen);
    e->from = first;
}

/* Trains a batch in shares, each into reused memory with old contents; their sum goes to
 * s->sums. */
static qn_status train_in_shares(subject *s, const qn__batch *batch, int64_t *share, int64_t *seen,
                                 qn__tally *tally) {
    const uint32_t grain = s->c->program.grain, grains = (batch->items + grain - 1) / grain;
    const uint64_t n = qn__program_sums(&s->c->program);
    memset(s->sums, 0, n * sizeof *s->sums);
    for (uint32_t first = 0; first < grains;) {
        const uint32_t count = 1 + below(s->c, grains - first);
        early e = {share, seen, n, 1};
        const qn__outlet to = {share, tally, below(s->c, 4) ? take_early : NULL, &e};
        memset(share, 0x5a, n * sizeof *share);
        const qn_status status = train(s, batch, first, count, &to);
        if (status != QN_OK)
            return status;
        if (!e.in_order)
            complain(s, "words told of early", e.from, "not the end of all, or not what precedes");
        same_sums(s, "words told of early", seen + e.from, share + e.from, n - e.from);
        for (uint64_t i = 0; i < n; ++i)
            s->sums[i] += share[i];
        first += count;
    }
    return QN_OK;
}

/* Steps of a rank: shares that are written directly to the buffer of the reduction. */
static void check_shares(subject *s) {
    const uint64_t n = qn__program_sums(&s->c->program);
    const size_t used = s->c->used;
    if (!s->device->in_place)
        return;
    int64_t *share = cut(s->c, n, sizeof *share), *seen = cut(s->c, n, sizeof *seen);
    load(s);
    for (uint32_t i = 0; i < s->e->steps; ++i) {
        const expected_step *want = &s->e->step[i];
        qn__tally tally = {.loss = 5, .correct = 6, .items = 7};
        qn_status status = train_in_shares(s, &s->c->batch[i], share, seen, &tally);
        expect_status(s, "train in place", status, want->fails ? QN_NUMERIC : QN_OK);
        if (want->fails)
            break;
        tally.loss -= 5;
        tally.correct -= 6;
        tally.items -= 7;
        same_sums(s, "sums of shares", s->sums, want->sums, n);
        same_tally(s, "tally of shares", &tally, &want->tally);
        status = s->device->update(s->worker, &want->update, s->sums, &s->err);
        expect_status(s, "update", status, QN_OK);
        same_state(s, "parameters after shares", &want->after);
        memset(s->sums, 0, n * sizeof *s->sums);
        tally = (qn__tally){0};
        expect_status(s, "collect", s->device->collect(s->worker, s->sums, &tally, &s->err), QN_OK);
        for (uint64_t k = 0; k < n; ++k)
            if (s->sums[k] != 0)
                complain(s, "sums that were not to be touched", k, "not 0");
        same_tally(s, "tally that was not to be touched", &tally, &(qn__tally){0});
    }
    s->c->used = used;
}

/* The batch that train_step receives as the next one; sometimes none, or one that does not
 * follow. */
static const qn__batch *next_of(const subject *s, uint32_t step) {
    const uint32_t luck = below(s->c, 4);
    if (luck == 0)
        return NULL;
    if (luck == 1)
        return &s->c->batch[0];
    return step + 1 < CASE_BATCHES ? &s->c->batch[step + 1] : NULL;
}

/* A failure that is reported late names its step. */
static void expect_step_named(const subject *s, uint32_t step) {
    char where[64];
    snprintf(where, sizeof where, "step %u, epoch %u", step + 1, s->c->batch[step].epoch + 1);
    if (s->device->flush && strcmp(s->err.where, where) != 0)
        fail_msg("%s: a failure of \"%s\" names \"%s\"\n  case: %s", s->device->name, where,
                 s->err.where, s->c->text);
}

/* Steps of a single worker: whole steps, each waited for. */
static void check_steps(subject *s) {
    if (!s->device->train_step)
        return;
    load(s);
    for (uint32_t i = 0; i < s->e->steps; ++i) {
        const expected_step *want = &s->e->step[i];
        qn__tally tally = {0};
        qn_status status = s->device->train_step(s->worker, &s->c->batch[i], next_of(s, i),
                                                 &want->update, &tally, &s->err);
        if (status == QN_OK && s->device->flush)
            status = s->device->flush(s->worker, &tally, &s->err);
        expect_status(s, "train_step", status, want->fails ? QN_NUMERIC : QN_OK);
        if (want->fails) {
            expect_step_named(s, i);
            return;
        }
        same_tally(s, "tally of train_step", &tally, &want->tally);
        same_state(s, "parameters after train_step", &want->after);
    }
}

/* All steps without waiting, several times over the first ones if none fails: their reports may be
 * late, but must arrive. */
static void check_steps_under_way(subject *s) {
    const uint32_t last = s->e->steps - 1;
    qn__tally tally = {0}, want = {0};
    qn_status status = QN_OK;
    if (!s->device->train_step || !s->device->flush)
        return;
    for (uint32_t round = 0; round < 3; ++round) {
        load(s);
        for (uint32_t i = 0; status == QN_OK && i <= last; ++i) {
            status = s->device->train_step(s->worker, &s->c->batch[i], next_of(s, i),
                                           &s->e->step[i].update, &tally, &s->err);
            /* Losses of several rounds may exceed 64 bits, which ends a job; then there is nothing
             * to compare. */
            if (!s->e->step[i].fails && qn__tally_add(&want, &s->e->step[i].tally) != 0) {
                load(s); /* discards steps that are not complete */
                return;
            }
        }
        /* Without a flush, load discards steps that are not complete. */
        if (round == 0 && !s->e->step[last].fails) {
            tally = want = (qn__tally){0};
            continue;
        }
        if (status == QN_OK)
            status = s->device->flush(s->worker, &tally, &s->err);
        expect_status(s, "steps under way", status, s->e->step[last].fails ? QN_NUMERIC : QN_OK);
        if (status != QN_OK) {
            expect_step_named(s, last);
            return;
        }
        same_tally(s, "tally of steps under way", &tally, &want);
        same_state(s, "parameters after steps under way", &s->e->step[last].after);
    }
}

/* The sign of a zero decides nothing in the layers that read it. */
static void check_inputs(subject *s, float *got) {
    const uint64_t n = (uint64_t)s->e->items * s->c->layer[s->c->program.layers - 1].in;
    for (uint64_t i = 0; got && i < n; ++i) {
        got[i] = got[i] + 0.0f;
        s->e->inputs[i] = s->e->inputs[i] + 0.0f;
    }
    if (got)
        same_floats(s, "inputs of the last layer", got, s->e->inputs, n);
}

static void check_applied(subject *s, const qn__applied *got) {
    const uint32_t outputs = s->c->layer[s->c->program.layers - 1].out, n = s->e->items;
    for (uint32_t i = 0; i < n; ++i)
        if (!s->c->program.answers && got->classes[i] != s->e->classes[i])
            complain(s, "classes", i, "another class");
    if (!s->c->program.answers)
        same_floats(s, "scores", got->scores, s->e->scores, n);
    same_floats(s, "outputs", got->outputs, s->e->outputs, (uint64_t)n * outputs);
    check_inputs(s, got->inputs);
}

/* All devices report the same failure of apply. */
static void expect_reported(const subject *s) {
    char what[96] = "the loss became";
    if (s->e->apply_fails)
        snprintf(what, sizeof what, "the network gives no finite output for item %llu",
                 (unsigned long long)s->e->first_bad);
    if (strncmp(s->err.what, what, strlen(what)) != 0)
        fail_msg("%s: \"%s\", expected \"%s\"\n  case: %s", s->device->name, s->err.what, what,
                 s->c->text);
}

/* All items of a batch in two calls, of which the second begins at a grain; in one call where a
 * loss fails, as outputs after it are to be reported. */
static qn_status apply_in_parts(subject *s, const qn__batch *batch, qn__applied *applied,
                                qn__tally *tally) {
    const qn__job job = {.kind = QN__JOB_APPLY, .batch = batch, .applied = applied};
    const uint32_t grain = s->c->program.grain, grains = (batch->items + grain - 1) / grain;
    const uint32_t first = s->e->loss_fails ? 0 : below(s->c, grains);
    const qn__outlet to = {.tally = tally};
    qn_status status = QN_OK;
    if (first > 0)
        status = s->device->run(s->worker, &job, 0, first, &to, &s->err);
    if (status == QN_OK)
        status = s->device->run(s->worker, &job, first, grains - first, &to, &s->err);
    return status;
}

static void check_apply(subject *s) {
    const uint32_t outputs = s->c->layer[s->c->program.layers - 1].out, n = s->e->items;
    qn__feed unlabelled = s->c->feed;
    qn__batch batch = {.feed = &s->c->feed, .first = 1, .items = n};
    qn__applied got = {.classes = cut(s->c, n, sizeof(int32_t)),
                       .scores = cut(s->c, n, sizeof(float)),
                       .outputs = cut(s->c, (size_t)n * outputs, sizeof(float))};
    qn__tally tally = {0};
    if (s->c->program.layers > 1)
        got.inputs = cut(s->c, (size_t)n * s->c->layer[s->c->program.layers - 1].in, sizeof(float));
    load(s);
    const int fails = s->e->apply_fails || s->e->loss_fails;
    qn_status status = apply_in_parts(s, &batch, &got, &tally);
    expect_status(s, "apply", status, fails ? QN_NUMERIC : QN_OK);
    if (!fails) {
        check_applied(s, &got);
        same_tally(s, "tally of apply", &tally, &s->e->tally);
    } else {
        expect_reported(s);
    }
    unlabelled.labels = NULL;
    unlabelled.answers = NULL;
    unlabelled.next = 0;
    batch.feed = &unlabelled;
    tally = (qn__tally){0};
    memset(got.classes, 0xff, n * sizeof *got.classes);
    status = apply_in_parts(s, &batch, &got, &tally);
    expect_status(s, "apply without labels", status, s->e->apply_fails ? QN_NUMERIC : QN_OK);
    if (status == QN_OK)
        check_applied(s, &got);
    /* Only the check of the outputs is requested. */
    status = apply_in_parts(s, &batch, &(qn__applied){0}, NULL);
    expect_status(s, "apply for nothing", status, s->e->apply_fails ? QN_NUMERIC : QN_OK);
    same_state(s, "parameters after apply", &s->c->state);
}

/* Reports once for each arithmetic that a device does not support it: a skip, not a pass. */
static void report_skip(const subject *s) {
    static const qn__device_table *told[8][QN__ARITH_I21 + 1];
    const int bits = 7 * (int)s->c->program.arith;
    for (int i = 0; i < 8; ++i) {
        if (told[i][s->c->program.arith] == s->device)
            return;
        if (told[i][s->c->program.arith])
            continue;
        told[i][s->c->program.arith] = s->device;
        print_message("  SKIPPED: %s does not compute with %s%d\n", s->device->name,
                      bits ? "i" : "f", bits ? bits : 32);
        return;
    }
}

/* Opens the worker; 0 if the device does not support the program. */
static int open_subject(subject *s) {
    const qn_compute compute = {.size = sizeof(qn_compute),
                                .threads = s->threads,
                                .isa = s->isa[0] ? s->isa : NULL,
                                .device_timeout = (double)setting("QN_TEST_TIMEOUT", 0)};
    const qn__program *p = &s->c->program;
    s->sums = cut(s->c, p->parameters, sizeof *s->sums);
    s->state.parameters = cut(s->c, p->parameters, sizeof(float));
    for (uint32_t k = 0; k < qn__program_slots(p); ++k)
        s->state.slot[k] = cut(s->c, p->parameters, sizeof(float));
    if (!s->device->supports(p)) {
        report_skip(s);
        return 0;
    }
    const qn_status status = s->device->open(s->index, &compute, p, &s->worker, &s->err);
    if (s->c->brief && status == QN_DEVICE && strstr(s->err.what, " MiB")) {
        print_message("  SKIPPED: %s\n", s->err.what); /* such a case may need gigabytes */
        return 0;
    }
    expect_status(s, "open", status, QN_OK);
    return 1;
}

/* Returns 0 if the device does not support the program. */
static int check_subject(subject *s) {
    const size_t used = s->c->used;
    if (!open_subject(s)) {
        s->c->used = used;
        return 0;
    }
    load(s);
    same_state(s, "parameters loaded", &s->c->state);
    check_shared(s);
    check_shares(s);
    check_apply(s);
    check_steps(s);
    check_steps_under_way(s);
    train(s, &s->c->batch[0], 0, 1, &(qn__outlet){0}); /* load discards it */
    check_shares(s);
    check_shared(s); /* a failure or a prefetched batch must have no later effect */
    s->device->close(s->worker);
    s->c->used = used;
    return 1;
}

/* Only a part of it, for cases that take long: whole steps contain all products. The grains of a
 * CPU have their own gradient code, and a GPU has all three forms. Returns as check_subject. */
static inline int check_briefly(subject *s) {
    const size_t used = s->c->used;
    const int there = open_subject(s);
    if (there) {
        const int is_gpu = s->isa[0] == 0;
        check_steps(s);
        if (is_gpu || s->c->program.layers == 1)
            check_shared(s);
        if (is_gpu)
            check_apply(s);
        s->device->close(s->worker);
    }
    s->c->used = used;
    return there;
}

#endif
