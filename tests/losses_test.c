/* What a loss costs, and what is told: workers that die with the newest state in them, all of them
 * at once, devices that cannot be had, failures that are told late. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "team_case_test.h"
#include <unistd.h>

enum { ALL_STEPS = 9, PER_EPOCH = 3 };

static const qn__member cpu_and_late[] = {{.device = NULL}, {.device = &qn__fake_late_device}};

static void members_of(qn__member members[2]) {
    memcpy(members, cpu_and_late, sizeof cpu_and_late);
    members[0].device = qn__device_find("cpu");
}

/* The second member, alone. */
static uint64_t second(void *user, uint64_t step) {
    (void)user;
    (void)step;
    return 2;
}

static void same(const tiny *a, const tiny *b) {
    assert_string_equal(a->digest, b->digest);
    assert_string_equal(a->epochs, b->epochs);
}

/* A device that had every step to itself dies; the CPU, which never had a state, goes on from what
 * the host keeps. */
static void test_the_only_state_dies(void **state) {
    (void)state;
    tiny alone = {0};
    qn__member members[2];
    qn_data *data = tiny_data();
    members_of(members);
    assert_int_equal(tiny_run(&alone, data), QN_OK);
    for (uint64_t at = 1; at <= ALL_STEPS; ++at)
        for (uint32_t save_every = 0; save_every < 4; ++save_every) {
            const qn__fake_plan plan = {.count = 1, .device = {{.fail_step = at}}};
            tiny run = {.members = members, .count = 2, .pick = second, .save_every = save_every};
            qn__fake_set(&plan);
            assert_int_equal(tiny_run(&run, data), QN_OK);
            same(&alone, &run);
            assert_int_equal(run.lost, 1);
            /* All from the beginning again, or from the last save. */
            const uint64_t most = save_every ? save_every + 1 : at;
            if (run.repeated > most || (save_every == 0 && at > 1 && run.repeated + 2 < at))
                fail_msg("death at step %llu, saves every %u steps: %llu steps done again",
                         (unsigned long long)at, save_every, (unsigned long long)run.repeated);
        }
    qn__fake_set(NULL);
    qn_data_close(data);
}

/* In whatever call it dies. */
static void test_every_call_may_be_the_last(void **state) {
    (void)state;
    tiny alone = {0};
    qn__member members[2];
    qn_data *data = tiny_data();
    members_of(members);
    assert_int_equal(tiny_run(&alone, data), QN_OK);
    for (uint64_t at = 1; at <= 4; ++at) {
        const qn__fake_behaviour deaths[] = {
            {.fail_step = at}, {.fail_flush = at},  {.fail_apply = at},   {.fail_load = at},
            {.fail_save = at}, {.fail_at = 7 * at}, {.fail_collect = at}, {.fail_update = at}};
        for (size_t d = 0; d < 2 * sizeof deaths / sizeof *deaths; ++d) {
            const qn__fake_plan plan = {.count = 1, .device = {deaths[d / 2]}};
            tiny run = {.members = members, .count = 2, .pick = second, .save_every = 1};
            members[1].device = d % 2 ? &qn__fake_device : &qn__fake_late_device;
            qn__fake_set(&plan);
            assert_int_equal(tiny_run(&run, data), QN_OK);
            same(&alone, &run);
        }
    }
    qn__fake_set(NULL);
    qn_data_close(data);
}

/* lbfgs: in the middle of the evaluations, of which a line search has several. Each loads the
 * parameters to all members. On a busy machine the other one may do all the work; then nobody dies
 * in it. */
static void test_a_full_batch_loses_workers(void **state) {
    (void)state;
    tiny alone = {.full_batch = 1};
    qn__member members[2];
    qn_data *data = tiny_data();
    members_of(members);
    members[1].device = &qn__fake_device;
    assert_int_equal(tiny_run(&alone, data), QN_OK);
    for (uint64_t at = 1; at <= 13; at += 3) {
        const qn__fake_behaviour deaths[] = {
            {.fail_load = at}, {.fail_at = 5 * at}, {.fail_collect = at}};
        for (size_t d = 0; d < 2 * sizeof deaths / sizeof *deaths; ++d) {
            const qn__fake_plan plan = {.count = 1, .device = {deaths[d / 2]}};
            tiny run = {.members = members, .count = 2, .full_batch = 1};
            run.pick = d % 2 ? second : NULL;
            qn__fake_set(&plan);
            assert_int_equal(tiny_run(&run, data), QN_OK);
            same(&alone, &run);
            if (run.pick && deaths[d / 2].fail_load)
                assert_int_equal(run.lost, 1);
        }
    }
    qn__fake_set(NULL);
    qn_data_close(data);
}

static void remove_folder(const char *dir) {
    char command[256];
    snprintf(command, sizeof command, "rm -rf '%s'", dir);
    assert_int_equal(system(command), 0);
}

/* Nobody is left: what the host has becomes a checkpoint, and the run goes on from it elsewhere. */
static void test_a_last_checkpoint(void **state) {
    (void)state;
    char dir[] = "/tmp/quern-losses-XXXXXX";
    tiny alone = {0};
    qn_data *data = tiny_data();
    const qn__member late[] = {{.device = &qn__fake_late_device}};
    const qn__fake_plan plan = {.count = 1, .device = {{.fail_step = 6}}};
    assert_non_null(mkdtemp(dir));
    assert_int_equal(tiny_run(&alone, data), QN_OK);
    tiny run = {.members = late, .count = 1, .checkpoints = dir, .save_every = 2};
    qn__fake_set(&plan);
    assert_int_equal(tiny_run(&run, data), QN_DEVICE);
    assert_non_null(strstr(run.err.what, "no worker is left"));
    assert_non_null(strstr(run.err.remedy, "`train.resume`"));
    print_message("%s\n%s\n", run.err.what, run.err.remedy);
    tiny again = {.checkpoints = dir, .resume = 1};
    assert_int_equal(tiny_run(&again, data), QN_OK);
    assert_int_equal(again.resumed_from, 4); /* in the middle of an epoch */
    assert_string_equal(alone.digest, again.digest);
    /* The epochs after the resumption are told alike, the one under way included. */
    const char *rest = strstr(alone.epochs, again.epochs);
    assert_non_null(rest);
    qn__fake_set(NULL);
    qn_data_close(data);
    remove_folder(dir);
}

static void test_no_checkpoint_is_promised_without_a_folder(void **state) {
    (void)state;
    const qn__member late[] = {{.device = &qn__fake_late_device}};
    const qn__fake_plan plan = {.count = 1, .device = {{.fail_step = 3}}};
    tiny run = {.members = late, .count = 1};
    qn_data *data = tiny_data();
    qn__fake_set(&plan);
    assert_int_equal(tiny_run(&run, data), QN_DEVICE);
    assert_null(strstr(run.err.remedy, "`train.resume`"));
    qn__fake_set(NULL);
    qn_data_close(data);
}

/* A numeric failure names its step, however late it was told. */
static void test_a_late_failure_names_its_step(void **state) {
    (void)state;
    qn__member members[2];
    const qn__fake_plan plan = {.count = 1};
    tiny alone = {.rate = 1e37f}, late = {.rate = 1e37f, .members = members, .count = 2};
    qn_data *data = tiny_data();
    members_of(members);
    late.pick = second;
    assert_int_equal(tiny_run(&alone, data), QN_NUMERIC);
    qn__fake_set(&plan);
    assert_int_equal(tiny_run(&late, data), QN_NUMERIC);
    assert_string_equal(late.err.where, alone.err.where);
    assert_non_null(strstr(alone.err.where, "step "));
    assert_string_equal(late.err.remedy, alone.err.remedy);
    qn__fake_set(NULL);
    qn_data_close(data);
}

/* Devices that cannot be opened: an error when named, a note when they were only taken along. */
static void test_devices_that_cannot_be_had(void **state) {
    (void)state;
    const qn__fake_plan plan = {.count = 2, .device = {{.refuse = 1}, {.refuse = 1}}};
    qn__member members[] = {{.device = qn__device_find("cpu")},
                            {.device = &qn__fake_device, .index = 0, .optional = 1},
                            {.device = &qn__fake_device, .index = 1, .optional = 1}};
    tiny run = {.members = members, .count = 3};
    qn_data *data = tiny_data();
    qn__fake_set(&plan);
    assert_int_equal(tiny_run(&run, data), QN_OK);
    assert_non_null(strstr(run.last, "fake:1 is not used"));
    assert_int_equal(run.lost, 0);
    members[1].optional = 0;
    tiny named = {.members = members, .count = 3};
    assert_int_equal(tiny_run(&named, data), QN_UNSUPPORTED);
    assert_non_null(strstr(named.err.what, "cannot be used"));
    members[1].optional = 1; /* nobody else is there */
    tiny none = {.members = members + 1, .count = 2};
    assert_int_equal(tiny_run(&none, data), QN_UNSUPPORTED);
    qn__fake_set(NULL);
    qn_data_close(data);
}

/* Fixed shares: all take part in these proportions. */
static void test_fixed_shares(void **state) {
    (void)state;
    const qn__fake_plan plan = {.count = 2, .device = {{.rate = 3000}, {0}}};
    qn__member members[] = {{.device = qn__device_find("cpu"), .share = 1},
                            {.device = &qn__fake_device, .index = 0, .share = 2},
                            {.device = &qn__fake_device, .index = 1, .share = 1}};
    const qn_data *data = tiny_data();
    tiny alone = {0}, run = {.members = members, .count = 3};
    const qn_train_options options = tiny_options(&run);
    qn_train_report report = {.size = sizeof(qn_train_report)};
    assert_int_equal(tiny_run(&alone, data), QN_OK);
    qn__fake_set(&plan);
    assert_int_equal(tiny_run(&run, data), QN_OK);
    same(&alone, &run);
    assert_int_equal(qn__train_open_on(&options, data, NULL, NULL, members, 3, &run.train, NULL),
                     QN_OK);
    assert_int_equal(qn_train_run(run.train, NULL), QN_OK);
    assert_int_equal(qn_train_report_get(run.train, &report, NULL), QN_OK);
    /* 56 items: two batches of 12 grains, one of 4, in each of 3 epochs. */
    assert_int_equal(report.worker[0]->grains, 3 * 7);
    assert_int_equal(report.worker[1]->grains, 3 * 14);
    assert_int_equal(report.worker[2]->grains, 3 * 7);
    assert_int_equal(report.worker[1]->items, 3 * 28);
    assert_int_equal(report.worker[1]->steps, ALL_STEPS);
    qn_train_close(run.train);
    qn__fake_set(NULL);
    qn_data_close((qn_data *)(uintptr_t)data);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_only_state_dies),
        cmocka_unit_test(test_every_call_may_be_the_last),
        cmocka_unit_test(test_a_full_batch_loses_workers),
        cmocka_unit_test(test_a_last_checkpoint),
        cmocka_unit_test(test_no_checkpoint_is_promised_without_a_folder),
        cmocka_unit_test(test_a_late_failure_names_its_step),
        cmocka_unit_test(test_devices_that_cannot_be_had),
        cmocka_unit_test(test_fixed_shares),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
