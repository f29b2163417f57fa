/* Forward over many items, shared: every result, the tally and the message about the first bad item
 * are those of the CPU alone, whoever took which piece and whoever was lost. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "fake_device/fake_device.h"
#include "num/sums.h"
#include "team/team_state.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ITEMS = 9000, FEATURES = 3, OUT = 4, PARAMETERS = OUT * (FEATURES + 1) };

static float values[ITEMS * FEATURES];
static int32_t labels[ITEMS];
static qn__layer layer;
static const qn__program program = {.layers = 1,
                                    .layer = &layer,
                                    .parameters = PARAMETERS,
                                    .batch = 64,
                                    .grain = 24,
                                    .seed = 1,
                                    .gradient_scale = 44,
                                    .partial_limit = 0x1p60f};
static const qn__feed feed = {.type = QN__ELEMENT_F32,
                              .features = FEATURES,
                              .items = ITEMS,
                              .values = values,
                              .labels = labels};

typedef struct results {
    int32_t classes[ITEMS];
    float scores[ITEMS], outputs[ITEMS * OUT];
    qn__tally tally;
    qn_status status;
    qn_error err;
    uint32_t left; /* workers */
    uint64_t items_by[8];
} results;

static int make_values(void **state) {
    (void)state;
    uint64_t z = 1;
    layer = qn__layer_flat(FEATURES, OUT, QN__ACT_SOFTMAX, 0);
    for (int i = 0; i < ITEMS * FEATURES; ++i) {
        z = z * 6364136223846793005u + 1442695040888963407u;
        values[i] = (float)(int32_t)(z >> 32) * 0x1p-30f;
    }
    for (int i = 0; i < ITEMS; ++i)
        labels[i] = i * 7 % OUT;
    return 0;
}

static uint64_t everybody(void *user, uint64_t step) {
    (void)user;
    (void)step;
    return UINT64_MAX;
}

static results *apply_on(const qn__member *members, uint32_t count) {
    static const qn_compute one = {.size = sizeof(qn_compute), .threads = 1, .devices = "cpu"};
    float parameters[PARAMETERS];
    const qn__state state = {.parameters = parameters};
    const qn__batch batch = {.feed = &feed, .items = ITEMS};
    results *r = calloc(1, sizeof *r);
    qn__team *team;
    assert_non_null(r);
    qn__applied applied = {.classes = r->classes, .scores = r->scores, .outputs = r->outputs};
    for (int i = 0; i < PARAMETERS; ++i)
        parameters[i] = 0.3f * (float)(i % 5) - 0.5f;
    assert_int_equal(qn__team_create(&program, &one, members, count, &team, NULL), QN_OK);
    assert_int_equal(qn__team_load(team, &state, NULL), QN_OK);
    qn__team_pick(team, everybody, NULL);
    r->status = qn__team_apply(team, &batch, &applied, &r->tally, &r->err);
    r->left = qn__team_workers(team);
    qn__team_destroy(team);
    return r;
}

static void same(const results *a, const results *b) {
    assert_int_equal(a->status, QN_OK);
    assert_int_equal(b->status, QN_OK);
    assert_memory_equal(a->classes, b->classes, sizeof a->classes);
    assert_memory_equal(a->scores, b->scores, sizeof a->scores);
    assert_memory_equal(a->outputs, b->outputs, sizeof a->outputs);
    assert_memory_equal(&a->tally, &b->tally, sizeof a->tally);
    assert_int_equal(a->tally.items, ITEMS);
}

static uint32_t three(qn__member members[3]) {
    members[0] = (qn__member){.device = &qn__fake_device, .index = 0};
    members[1] = (qn__member){.device = qn__device_find("cpu")};
    members[2] = (qn__member){.device = &qn__fake_late_device, .index = 1};
    return 3;
}

static void test_shared_is_the_same(void **state) {
    (void)state;
    qn__member members[3];
    const qn__fake_plan plan = {.count = 2, .device = {{.rate = 300000}, {.call = 0.001}}};
    results *alone = apply_on(NULL, 0);
    qn__fake_set(&plan);
    results *shared = apply_on(members, three(members));
    same(alone, shared);
    free(alone);
    free(shared);
}

static void test_losses(void **state) {
    (void)state;
    qn__member members[3];
    results *alone = apply_on(NULL, 0);
    for (uint32_t at = 1; at <= 4; ++at) {
        const qn__fake_plan plan = {
            .count = 2, .device = {{.fail_apply = at, .rate = 1e6}, {.fail_apply = 5 - at}}};
        qn__fake_set(&plan);
        results *shared = apply_on(members, three(members));
        same(alone, shared);
        free(shared);
        /* Without the CPU: the one that is left does everything. */
        const qn__fake_plan pair = {.count = 2, .device = {{.fail_apply = at}, {0}}};
        qn__fake_set(&pair);
        const qn__member two[] = {members[0], members[2]};
        shared = apply_on(two, 2);
        same(alone, shared);
        free(shared);
    }
    const qn__fake_plan dead = {.count = 2, .device = {{.fail_apply = 1}, {.fail_apply = 2}}};
    const qn__member two[] = {members[0], members[2]};
    qn__fake_set(&dead);
    results *none = apply_on(two, 2);
    assert_int_equal(none->status, QN_DEVICE);
    free(none);
    free(alone);
}

/* The message names the first item whose output is not finite. */
static void test_the_first_bad_item_is_named(void **state) {
    (void)state;
    static const int bad[] = {8999, 2500, 4100, 2501, 7000};
    qn__member members[3];
    for (size_t i = 0; i < sizeof bad / sizeof *bad; ++i)
        values[bad[i] * FEATURES] = INFINITY;
    for (uint32_t round = 0; round < 12; ++round) {
        const qn__fake_plan plan = {
            .count = 2,
            .device = {{.rate = 200000.0 * (1 + round % 4), .fail_apply = round / 4},
                       {.call = 0.0003 * round}}};
        qn__fake_set(NULL);
        results *alone = apply_on(NULL, 0);
        qn__fake_set(&plan);
        results *shared = apply_on(members, three(members));
        assert_int_equal(alone->status, QN_NUMERIC);
        assert_int_equal(shared->status, QN_NUMERIC);
        assert_non_null(strstr(alone->err.what, "item "));
        assert_string_equal(alone->err.what, shared->err.what);
        assert_non_null(strstr(alone->err.what, "item 2500"));
        free(alone);
        free(shared);
    }
    make_values(NULL);
}

/* A slow device is not waited for with a piece that others finish sooner. Its pieces are counted:
 * it would take one in each call otherwise. A busy machine can make a call or two slow for the fast
 * device too. */
static void test_the_slow_one_gets_none(void **state) {
    (void)state;
    const qn__fake_plan plan = {.count = 2, .device = {{.rate = 20000, .call = 0.3}, {0}}};
    const qn__member two[] = {{.device = &qn__fake_device, .index = 0},
                              {.device = &qn__fake_device, .index = 1}};
    static const qn_compute one = {.size = sizeof(qn_compute), .threads = 1};
    float parameters[PARAMETERS] = {0.5f};
    const qn__state zero = {.parameters = parameters};
    const qn__batch batch = {.feed = &feed, .items = ITEMS};
    qn__tally tally = {0};
    qn__team *team;
    qn__fake_set(&plan);
    assert_int_equal(qn__team_create(&program, &one, two, 2, &team, NULL), QN_OK);
    assert_int_equal(qn__team_load(team, &zero, NULL), QN_OK);
    assert_int_equal(qn__team_apply(team, &batch, NULL, &tally, NULL), QN_OK);
    const qn__speed *slow = &team->sharing.pieces.of[0].speed;
    const uint32_t before = slow->calls;
    for (int i = 0; i < 5; ++i)
        assert_int_equal(qn__team_apply(team, &batch, NULL, &tally, NULL), QN_OK);
    assert_int_equal(tally.items, 6 * ITEMS);
    assert_true(slow->calls - before < 5);
    qn__team_destroy(team);
}

static int end(void **state) {
    (void)state;
    qn__fake_set(NULL);
    return 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_shared_is_the_same),
        cmocka_unit_test(test_losses),
        cmocka_unit_test(test_the_first_bad_item_is_named),
        cmocka_unit_test(test_the_slow_one_gets_none),
    };
    return cmocka_run_group_tests(tests, make_values, end);
}
