/* Conformance: every backend, every instruction set that this machine has, and several numbers of
 * threads give the reference's bytes, over random programs. QN_TEST_SEED and QN_TEST_CASES choose
 * other cases than the usual ones; a failure names its seed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "device/conformance_case_test.h"
#include "device/conformance_expect_test.h"
#include "device/conformance_zeros_test.h"
#include "device/fake/fake.h"

/* What is being tested, for messages and for the helpers below. */
typedef struct subject {
    const qn__device_table *device;
    char isa[16]; /* empty: the device has no choice of them */
    int threads;
    test_case *c;
    const expected *e;
    qn__worker *worker;
    /* Results of the worker, cut from `c` once for each subject. */
    int64_t *sums;
    qn__state state;
    qn_error err;
} subject;

/* Where the run of the suite stands, to be said when a check fails. */
static void complain(const subject *s, const char *what, uint64_t at, const char *detail) {
    fail_msg("%s %s, %d threads: %s differs first at %llu: %s\n  case: %s", s->device->name, s->isa,
             s->threads, what, (unsigned long long)at, detail, s->c->text);
}

/* Floats by their bits; where a number is no number its payload means nothing. */
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
    for (uint32_t k = 0; k < qn__optimizer_slots(s->c->program.optimizer); ++k) {
        snprintf(name, sizeof name, "%s, slot %u", what, k);
        same_floats(s, name, s->state.slot[k], want->slot[k], n);
    }
}

static void expect_status(const subject *s, const char *what, qn_status got, qn_status want) {
    if (got != want)
        fail_msg("%s %s, %d threads: %s gave \"%s\" (%s), expected \"%s\"\n  case: %s",
                 s->device->name, s->isa, s->threads, what, qn_status_name(got),
                 got == QN_OK ? "" : s->err.what, qn_status_name(want), s->c->text);
}

static void load(subject *s) {
    expect_status(s, "load", s->device->load(s->worker, &s->c->state, &s->err), QN_OK);
}

/* All grains of a batch in random chunks, the first ones last. */
static qn_status train_in_chunks(subject *s, const qn__batch *batch) {
    const uint32_t grain = s->c->program.grain, grains = (batch->items + grain - 1) / grain;
    qn_status status = QN_OK;
    for (uint32_t end = grains; status == QN_OK && end > 0;) {
        const uint32_t count = 1 + below(s->c, below(s->c, 2) ? end : (end < 3 ? end : 3));
        end -= count;
        status = s->device->train_grains(s->worker, batch, end, count, &s->err);
    }
    return status;
}

/* The shared way: grains, sums, update, for every step that the case has. */
static void check_shared(subject *s) {
    const uint64_t n = s->c->program.parameters;
    load(s);
    for (uint32_t i = 0; i < s->e->steps; ++i) {
        const expected_step *want = &s->e->step[i];
        qn__tally tally = {.loss = 5, .correct = 6, .items = 7};
        qn_status status = train_in_chunks(s, &s->c->batch[i]);
        expect_status(s, "train_grains", status, want->fails ? QN_NUMERIC : QN_OK);
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

/* The lone way: whole steps, each told of the next one; sometimes of a batch that does not come. */
static void check_steps(subject *s) {
    if (!s->device->train_step)
        return;
    load(s);
    for (uint32_t i = 0; i < s->e->steps; ++i) {
        const expected_step *want = &s->e->step[i];
        const uint32_t luck = below(s->c, 4);
        const qn__batch *next = luck == 0              ? NULL
                                : luck == 1            ? &s->c->batch[0]
                                : i + 1 < CASE_BATCHES ? &s->c->batch[i + 1]
                                                       : NULL;
        qn__tally tally = {0};
        const qn_status status =
            s->device->train_step(s->worker, &s->c->batch[i], next, &want->update, &tally, &s->err);
        expect_status(s, "train_step", status, want->fails ? QN_NUMERIC : QN_OK);
        if (want->fails)
            return;
        same_tally(s, "tally of train_step", &tally, &want->tally);
        same_state(s, "parameters after train_step", &want->after);
    }
}

static void check_applied(subject *s, const qn__applied *got) {
    const uint32_t outputs = s->c->layer[s->c->program.layers - 1].out, n = s->e->items;
    for (uint32_t i = 0; i < n; ++i)
        if (got->classes[i] != s->e->classes[i])
            complain(s, "classes", i, "another class");
    same_floats(s, "scores", got->scores, s->e->scores, n);
    same_floats(s, "outputs", got->outputs, s->e->outputs, (uint64_t)n * outputs);
}

static void check_apply(subject *s) {
    const uint32_t outputs = s->c->layer[s->c->program.layers - 1].out, n = s->e->items;
    qn__feed unlabelled = s->c->feed;
    qn__batch batch = {.feed = &s->c->feed, .first = 1, .items = n};
    qn__applied got = {.classes = cut(s->c, n, sizeof(int32_t)),
                       .scores = cut(s->c, n, sizeof(float)),
                       .outputs = cut(s->c, (size_t)n * outputs, sizeof(float))};
    qn__tally tally = {0};
    load(s);
    const int fails = s->e->apply_fails || s->e->loss_fails;
    qn_status status = s->device->apply(s->worker, &batch, &got, &tally, &s->err);
    expect_status(s, "apply", status, fails ? QN_NUMERIC : QN_OK);
    if (!fails) {
        check_applied(s, &got);
        same_tally(s, "tally of apply", &tally, &s->e->tally);
    }
    unlabelled.labels = NULL;
    batch.feed = &unlabelled;
    tally = (qn__tally){0};
    memset(got.classes, 0xff, n * sizeof *got.classes);
    status = s->device->apply(s->worker, &batch, &got, &tally, &s->err);
    expect_status(s, "apply without labels", status, s->e->apply_fails ? QN_NUMERIC : QN_OK);
    if (status == QN_OK)
        check_applied(s, &got);
    /* Nothing is asked for but the check of the outputs. */
    status = s->device->apply(s->worker, &batch, &(qn__applied){0}, NULL, &s->err);
    expect_status(s, "apply for nothing", status, s->e->apply_fails ? QN_NUMERIC : QN_OK);
    same_state(s, "parameters after apply", &s->c->state);
}

static void check_subject(subject *s) {
    const qn_compute compute = {.threads = s->threads, .isa = s->isa[0] ? s->isa : NULL};
    const qn__program *p = &s->c->program;
    const size_t used = s->c->used;
    s->sums = cut(s->c, p->parameters, sizeof *s->sums);
    s->state.parameters = cut(s->c, p->parameters, sizeof(float));
    for (uint32_t k = 0; k < qn__optimizer_slots(p->optimizer); ++k)
        s->state.slot[k] = cut(s->c, p->parameters, sizeof(float));
    if (!s->device->supports(p)) {
        print_message("  %s does not support: %s\n", s->device->name, s->c->text);
        return;
    }
    expect_status(s, "open", s->device->open(0, &compute, p, &s->worker, &s->err), QN_OK);
    load(s);
    same_state(s, "parameters loaded", &s->c->state);
    check_shared(s);
    check_apply(s);
    check_steps(s);
    check_shared(s); /* a failure or a prefetched batch leaves nothing behind */
    s->device->close(s->worker);
    s->c->used = used;
}

/* Every instruction set of a device, with all numbers of threads; the slow scalar one with one
 * number. */
static void check_device(const qn__device_table *device, test_case *c, const expected *e) {
    static const int threads[] = {1, 2, 3, 7};
    enum { COUNTS = sizeof threads / sizeof *threads };
    qn_device_info info;
    subject s = {.device = device, .threads = 1, .c = c, .e = e};
    assert_int_equal(device->describe(0, &info, NULL), QN_OK);
    if (strcmp(device->name, "cpu") != 0) {
        check_subject(&s);
        return;
    }
    for (const char *isa = info.isas; *isa; isa += strcspn(isa, " "), isa += strspn(isa, " ")) {
        snprintf(s.isa, sizeof s.isa, "%.*s", (int)strcspn(isa, " "), isa);
        if (strcmp(s.isa, "scalar") == 0) {
            s.threads = threads[below(c, COUNTS)];
            check_subject(&s);
            continue;
        }
        for (int t = 0; t < COUNTS; ++t) {
            s.threads = threads[t];
            check_subject(&s);
        }
    }
}

static uint64_t setting(const char *name, uint64_t otherwise) {
    const char *text = getenv(name);
    return text ? strtoull(text, NULL, 10) : otherwise;
}

static void test_every_backend_gives_the_reference_bytes(void **state) {
    (void)state;
    const uint64_t first = setting("QN_TEST_SEED", 1), cases = setting("QN_TEST_CASES", 150);
    uint32_t steps = 0, failing = 0, kinds[FLAVOURS] = {0};
    const qn__fake_plan one_fake = {.count = 1};
    static test_case c;
    static expected e;
    qn__fake_set(&one_fake);
    for (uint64_t seed = first; seed < first + cases; ++seed) {
        case_begin(&c, seed);
        assert_true(expect(&c, &e));
        ++kinds[c.kind];
        steps += e.steps;
        failing += e.step[e.steps - 1].fails != 0;
        for (int i = 0; qn__devices[i]; ++i)
            if (qn__devices[i]->count() > 0)
                check_device(qn__devices[i], &c, &e);
    }
    case_end(&c);
    qn__fake_set(NULL);
    print_message("seeds %llu..%llu: %u steps, %u cases that leave the range\n",
                  (unsigned long long)first, (unsigned long long)(first + cases - 1), steps,
                  failing);
    for (int k = 0; k < FLAVOURS; ++k)
        print_message("  %-9s %u cases\n", flavour_names[k], kinds[k]);
}

/* Outputs of +0 and of -0 that the reference gives, so that cases about them have some. */
static void count_zeros(const test_case *c, const expected *e, uint32_t found[2]) {
    const size_t outputs = (size_t)e->items * c->layer[c->program.layers - 1].out;
    for (size_t i = 0; i < outputs; ++i)
        if (e->outputs[i] == 0.0f)
            ++found[signbit(e->outputs[i]) != 0];
}

/* Inputs that are zero may be left out, but the sign of a zero in the end tells of them. */
static void test_zeros_change_nothing(void **state) {
    (void)state;
    const uint64_t first = setting("QN_TEST_SEED", 1), cases = setting("QN_TEST_CASES", 150);
    uint32_t kinds[ZEROS] = {0}, found[2] = {0, 0}, steps = 0, failing = 0;
    static test_case c;
    static expected e;
    for (uint64_t seed = first; seed < first + cases; ++seed) {
        const zeros how = zeros_begin(&c, seed);
        assert_true(expect(&c, &e));
        ++kinds[how];
        steps += e.steps;
        failing += e.step[e.steps - 1].fails != 0;
        if (how == UNDERFLOW)
            count_zeros(&c, &e, found);
        for (int i = 0; qn__devices[i]; ++i)
            if (qn__devices[i]->count() > 0)
                check_device(qn__devices[i], &c, &e);
    }
    case_end(&c);
    print_message("%u steps, %u cases that leave the range\n", steps, failing);
    for (int k = 0; k < ZEROS; ++k)
        print_message("  %-11s %u cases\n", zeros_names[k], kinds[k]);
    print_message("  outputs of underflow: %u times +0, %u times -0\n", found[0], found[1]);
    if (kinds[UNDERFLOW] >= 10)
        assert_true(found[0] && found[1]);
}

/* Panels are padded to 16, and sigmoid gives 1/2 in the padding, which dropout makes 5. Here all
 * real partials of the last layer's weights are tiny and the errors of a grain cancel, so nothing
 * but padding comes near the limit. */
static void test_padding_does_not_decide(void **state) {
    (void)state;
    static test_case c;
    static expected e;
    case_begin(&c, 1);
    c.random = 1;
    c.kind = PLAIN;
    c.layer[0] = (qn__layer){4, 3, QN__ACT_SIGMOID, 0xe6666666u, 10.0f, 0, 12};
    c.layer[1] = (qn__layer){3, 2, QN__ACT_NONE, 0, 0.0f, 15, 21};
    c.program.layers = 2;
    c.program.parameters = 23;
    c.program.loss = QN__LOSS_MSE;
    c.program.batch = 64;
    c.program.grain = 4;
    c.program.unit = 30;
    c.program.partial_limit = 0x1p29f;
    draw_data(&c);
    for (uint32_t i = 0; i < c.feed.items; ++i)
        ((int32_t *)(uintptr_t)c.feed.labels)[i] = (int32_t)(i % 2);
    draw_state(&c);
    memset(c.state.parameters, 0, 23 * sizeof(float));
    for (int i = 12; i < 15; ++i)
        c.state.parameters[i] = -40.0f;
    c.state.parameters[21] = c.state.parameters[22] = 0.5f;
    draw_batches(&c);
    for (int b = 0; b < CASE_BATCHES; ++b)
        c.batch[b].order = NULL;
    c.batch[2].items = 16; /* whole grains, in which the errors cancel */
    describe_case(&c);
    assert_true(expect(&c, &e));
    assert_int_equal(e.step[0].fails, 0);
    for (int i = 0; qn__devices[i]; ++i)
        if (qn__devices[i]->count() > 0)
            check_device(qn__devices[i], &c, &e);
    case_end(&c);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_padding_does_not_decide),
        cmocka_unit_test(test_zeros_change_nothing),
        cmocka_unit_test(test_every_backend_gives_the_reference_bytes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
