/* The one promise, seen from above: whoever takes part in a training, at whatever speed, stalling
 * or dying at whatever grain, the model is the same byte for byte. The team is the CPU and fake
 * devices (device/fake/fake.h). QN_TEST_SEED and QN_TEST_CASES choose other teams than the usual
 * ones; a failure names its seed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "device/fake/fake.h"
#include "run/trainer.h"
#include "run/trainer_state.h"
#include <quern/quern.h>
#include <stdio.h>
#include <string.h>

enum { ITEMS = 70, FEATURES = 9, CLASSES = 4, STEPS = 9, GRAINS = 12 };

static uint64_t random_state;

static uint32_t below(uint32_t n) {
    uint64_t z = (random_state += 0x9E3779B97F4A7C15u);
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return (uint32_t)(((z ^ (z >> 31)) >> 32) * n >> 32);
}

static qn_data *tiny_data(void) {
    static uint8_t values[ITEMS * FEATURES];
    static int32_t labels[ITEMS];
    qn_data *data;
    random_state = 5;
    for (int i = 0; i < ITEMS; ++i) {
        labels[i] = i % CLASSES;
        for (int f = 0; f < FEATURES; ++f)
            values[i * FEATURES + f] = (uint8_t)(below(120) + (f % CLASSES == labels[i]) * 100u);
    }
    assert_int_equal(qn_data_from_arrays(QN_U8, ITEMS, FEATURES, values, labels, &data, NULL),
                     QN_OK);
    return data;
}

/* What the notes said. */
typedef struct heard {
    uint32_t lost;
    char last[256];
    char epochs[512]; /* what was told of each: right answers and losses, of training and validation
                       */
} heard;

static void listen(void *user, const char *text) {
    heard *h = user;
    h->lost += strstr(text, "is lost") != NULL;
    snprintf(h->last, sizeof h->last, "%s", text);
}

static void hear_epoch(void *user, const qn_epoch_event *e) {
    heard *h = user;
    const size_t used = strlen(h->epochs);
    snprintf(h->epochs + used, sizeof h->epochs - used, "%llu of %llu, %a; %llu of %llu, %a\n",
             (unsigned long long)e->train.correct, (unsigned long long)e->train.items,
             e->train.loss, (unsigned long long)e->valid.correct,
             (unsigned long long)e->valid.items, e->valid.loss);
}

static qn_train_options tiny_options(heard *h) {
    qn_train_options o;
    qn_train_options_init(&o);
    o.model = "dense 11 tanh dropout 0.2; dense 4 softmax";
    o.optimizer = "adam";
    o.rate = 0.01f;
    o.batch = 24;
    o.grain = 2;
    o.epochs = 3;
    o.compute.threads = 1;
    o.valid_fraction = 0.2f;
    o.on_note = listen;
    o.on_epoch = hear_epoch;
    o.user = h;
    return o;
}

/* Who takes part in each step, at random; 0: the team finds out by itself. */
static uint64_t pick_seed;

static uint64_t pick(void *user, uint64_t step) {
    const uint64_t *seed = user;
    uint64_t z = (*seed + step / 2) * 0x9E3779B97F4A7C15u;
    z = (z ^ (z >> 29)) * 0xBF58476D1CE4E5B9u;
    z ^= z >> 32;
    return z & 1 ? UINT64_C(1) << (z >> 8) % 5 : z >> 3 & 31; /* often somebody alone */
}

/* Trains on the members and gives the model's digest, empty when the training failed. */
static qn_status train_on(const qn_data *data, const qn__member *members, uint32_t count, heard *h,
                          char digest[65], uint32_t *at_work, qn_error *err) {
    const qn_train_options options = tiny_options(h);
    qn_train_report report;
    qn_train *train;
    qn_model *model;
    digest[0] = '\0';
    qn_status status = qn__train_open_on(&options, data, NULL, NULL, members, count, &train, err);
    if (status != QN_OK)
        return status;
    if (pick_seed)
        qn__team_pick(train->job.team, pick, &pick_seed);
    status = qn_train_run(train, err);
    if (status == QN_OK)
        status = qn_train_report_get(train, &report, err);
    for (uint32_t i = 0; at_work && status == QN_OK && i < report.workers; ++i)
        *at_work += report.worker[i].grains > 0;
    if (status == QN_OK && (status = qn_train_model(train, &model, err)) == QN_OK) {
        snprintf(digest, 65, "%s", qn_model_digest(model));
        qn_model_free(model);
    }
    qn_train_close(train);
    return status;
}

/* A behaviour in which a step of 24 items takes from no time to some milliseconds. */
static qn__fake_behaviour draw_behaviour(void) {
    qn__fake_behaviour b = {0};
    if (below(3) != 0)
        b.rate = 20000.0 + below(300000);
    b.noise = below(2) ? 0.5 : 0.0;
    b.start = below(8) == 0 ? 0.002 : 0.0;
    if (below(3) == 0)
        b.fail_at = 1 + below(STEPS * GRAINS / 2);
    if (below(10) == 0)
        b.fail_update = 1 + below(STEPS);
    if (below(10) == 0)
        b.fail_collect = 1 + below(STEPS);
    if (below(4) == 0) {
        b.stall_at = 1 + below(STEPS * GRAINS / 4);
        b.stall = 0.001 * below(5);
    }
    if (below(4) == 0) {
        b.change_at = 1 + below(STEPS * GRAINS / 4);
        b.change_rate = 5000.0 + below(300000);
    }
    if (below(8) == 0)
        b.fail_step = 1 + below(STEPS / 2);
    if (below(8) == 0)
        b.fail_flush = 1 + below(4);
    if (below(10) == 0)
        b.fail_apply = 1 + below(3);
    if (below(10) == 0)
        b.fail_load = 1 + below(4);
    if (below(10) == 0)
        b.fail_save = 1 + below(3);
    return b;
}

static void never_fail(qn__fake_behaviour *b) {
    b->fail_at = b->fail_update = b->fail_collect = b->fail_step = b->fail_flush = 0;
    b->fail_apply = b->fail_load = b->fail_save = 0;
}

/* A team of one to four fake devices and, mostly, the CPU; without it one fake device never fails.
 */
static uint32_t draw_team(qn__fake_plan *plan, qn__member members[]) {
    static const qn__device_table *const kinds[] = {&qn__fake_device, &qn__fake_lone_device,
                                                    &qn__fake_late_device};
    uint32_t count = 0;
    *plan = (qn__fake_plan){.count = 1 + below(4)};
    for (uint32_t i = 0; i < plan->count; ++i)
        plan->device[i] = draw_behaviour();
    if (below(4) != 0)
        members[count++] = (qn__member){.device = qn__device_find("cpu")};
    else
        never_fail(&plan->device[0]);
    for (uint32_t i = 0; i < plan->count; ++i)
        members[count++] = (qn__member){.device = kinds[below(3)], .index = i};
    for (uint32_t i = count - 1; i > 0; --i) {
        const uint32_t j = below(i + 1);
        const qn__member other = members[i];
        members[i] = members[j];
        members[j] = other;
    }
    return count;
}

static uint64_t setting(const char *name, uint64_t otherwise) {
    const char *text = getenv(name);
    return text ? strtoull(text, NULL, 10) : otherwise;
}

/* `picked` 1: sets drawn at random take part, one worker alone as often as several, so that whoever
 * has the newest state may die with it; 0: the team tries out who should. */
static void every_team(int picked) {
    const uint64_t first = setting("QN_TEST_SEED", 1), cases = setting("QN_TEST_CASES", 200);
    char alone[65], together[65];
    heard h = {0}, quiet = {0};
    qn_error err;
    uint32_t lost = 0, shared = 0;
    qn_data *data = tiny_data();
    pick_seed = 0;
    assert_int_equal(train_on(data, NULL, 0, &quiet, alone, NULL, &err), QN_OK);
    for (uint64_t seed = first; seed < first + cases; ++seed) {
        qn__member members[QN__FAKE_DEVICES + 1];
        qn__fake_plan plan;
        uint32_t at_work = 0;
        random_state = seed;
        h = (heard){0};
        const uint32_t count = draw_team(&plan, members);
        qn__fake_set(&plan);
        pick_seed = picked ? seed : 0;
        const qn_status status = train_on(data, members, count, &h, together, &at_work, &err);
        if (status != QN_OK)
            fail_msg("seed %llu: %s", (unsigned long long)seed, err.what);
        if (strcmp(alone, together) != 0)
            fail_msg("seed %llu, %u workers, %u lost: the model is %s, the CPU alone gives %s",
                     (unsigned long long)seed, count, h.lost, together, alone);
        if (strcmp(quiet.epochs, h.epochs) != 0)
            fail_msg(
                "seed %llu, %u workers, %u lost: losses and right answers are\n%sthe CPU alone "
                "gives\n%s",
                (unsigned long long)seed, count, h.lost, h.epochs, quiet.epochs);
        lost += h.lost;
        shared += at_work > 1;
    }
    pick_seed = 0;
    qn__fake_set(NULL);
    qn_data_close(data);
    print_message("seeds %llu..%llu: %u workers lost, %u runs shared by several\n",
                  (unsigned long long)first, (unsigned long long)(first + cases - 1), lost, shared);
    assert_true(cases < 50 || (lost > cases / 4 && shared > cases / 2));
}

static void test_every_team_gives_the_same_model(void **state) {
    (void)state;
    every_team(0);
}

static void test_whoever_takes_part(void **state) {
    (void)state;
    every_team(1);
}

static void test_all_workers_lost(void **state) {
    (void)state;
    const qn__fake_plan plan = {.count = 2, .device = {{.fail_update = 6}, {.fail_update = 4}}};
    const qn__member members[] = {{.device = &qn__fake_device, .index = 0},
                                  {.device = &qn__fake_device, .index = 1}};
    char digest[65];
    heard h = {0};
    qn_error err;
    qn_data *data = tiny_data();
    qn__fake_set(&plan);
    assert_int_equal(train_on(data, members, 2, &h, digest, NULL, &err), QN_DEVICE);
    assert_int_equal(err.status, QN_DEVICE);
    assert_non_null(strstr(err.what, "no worker is left"));
    assert_non_null(strstr(err.remedy, "checkpoint"));
    assert_int_equal(h.lost, 2);
    qn__fake_set(NULL);
    qn_data_close(data);
}

static void test_a_lost_worker_is_named(void **state) {
    (void)state;
    /* Every worker makes every update, whereas nobody knows how many grains it gets. */
    const qn__fake_plan plan = {.count = 2, .device = {{.fail_update = 3}, {0}}};
    const qn__member members[] = {{.device = &qn__fake_device, .index = 1},
                                  {.device = &qn__fake_device, .index = 0}};
    char digest[65];
    heard h = {0};
    qn_error err;
    qn_data *data = tiny_data();
    qn__fake_set(&plan);
    assert_int_equal(train_on(data, members, 2, &h, digest, NULL, &err), QN_OK);
    assert_int_equal(h.lost, 1);
    assert_non_null(strstr(h.last, "fake:0"));
    qn__fake_set(NULL);
    qn_data_close(data);
}

/* A device that is not there, and one that fails before the first step. */
static void test_teams_that_cannot_be(void **state) {
    (void)state;
    const qn__member absent[] = {{.device = &qn__fake_device, .index = 0}};
    char digest[65];
    heard h = {0};
    qn_error err;
    qn_data *data = tiny_data();
    qn__fake_set(NULL);
    assert_int_equal(train_on(data, absent, 1, &h, digest, NULL, &err), QN_USAGE);
    assert_int_equal(train_on(data, absent, 65, &h, digest, NULL, &err), QN_USAGE);
    qn_data_close(data);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_team_gives_the_same_model),
        cmocka_unit_test(test_whoever_takes_part),
        cmocka_unit_test(test_all_workers_lost),
        cmocka_unit_test(test_a_lost_worker_is_named),
        cmocka_unit_test(test_teams_that_cannot_be),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
