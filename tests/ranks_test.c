/* Many ranks, one model: the same bytes and the same words told, whatever the ranks are made of. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "ranks_case_test.h"
#include <dirent.h>
#include <sys/stat.h>

/* 12 grains a step: also for more ranks than that. */
static void test_counts_of_ranks(void **state) {
    (void)state;
    const uint32_t counts[] = {2, 3, 5, 13};
    tiny alone = {0};
    alone_is(&alone);
    for (size_t i = 0; i < sizeof counts / sizeof *counts; ++i) {
        hand hands[CREW] = {0};
        uint64_t items = 0;
        thread_ranks_run(hands, counts[i]);
        all_have(hands, counts[i], &alone);
        assert_int_equal(hands[0].run.report.ranks, counts[i]);
        for (uint32_t r = 0; r < counts[i]; ++r)
            items += hands[1].run.ranks[r].items;
        assert_int_equal(items, 3 * 56); /* each once */
        assert_int_equal(hands[1].run.report.workers, counts[i]);
    }
}

/* Ranks with a CPU, with a device, with several, with one that is told of late; everywhere somebody
 * else takes part in each step. */
static uint64_t any(void *user, uint64_t step) {
    const uint64_t seed = *(uint64_t *)user;
    return (seed * step * 0x9E3779B97F4A7C15u) >> 61;
}

static void test_ranks_unlike_one_another(void **state) {
    (void)state;
    const qn__device_table *cpu = qn__device_find("cpu");
    const qn__member members[4][3] = {
        {{.device = cpu}},
        {{.device = &qn__fake_device}},
        {{.device = cpu},
         {.device = &qn__fake_late_device},
         {.device = &qn__fake_device, .index = 1}},
        {{.device = &qn__fake_lone_device}, {.device = &qn__fake_late_device}}};
    const uint32_t counts[] = {1, 1, 3, 2};
    const qn__fake_plan plan = {.count = 2};
    tiny alone = {0};
    alone_is(&alone);
    qn__fake_set(&plan);
    for (uint64_t seed = 1; seed <= 12; ++seed) {
        hand hands[4] = {0};
        for (uint32_t r = 0; r < 4; ++r) {
            hands[r].run.members = members[r];
            hands[r].run.count = counts[r];
            hands[r].run.pick = seed > 2 ? any : NULL;
            hands[r].run.seed = seed + 100 * r;
            hands[r].run.save_every = (uint32_t)(seed % 4);
        }
        thread_ranks_run(hands, 4);
        all_have(hands, 4, &alone);
    }
    qn__fake_set(NULL);
}

/* One rank's device dies in whatever call: where the rank has another worker nobody else notices.
 */
static void test_a_device_of_one_rank_dies(void **state) {
    (void)state;
    const qn__member pair[] = {{.device = qn__device_find("cpu")}, {.device = &qn__fake_device}};
    tiny alone = {0};
    alone_is(&alone);
    for (uint64_t at = 1; at <= 3; ++at) {
        const qn__fake_behaviour deaths[] = {{.fail_collect = at}, {.fail_update = at},
                                             {.fail_at = 3 * at},  {.fail_apply = at},
                                             {.fail_load = at},    {.fail_save = at}};
        for (size_t d = 0; d < sizeof deaths / sizeof *deaths; ++d)
            for (int picked = 0; picked < 2; ++picked) {
                const qn__fake_plan plan = {.count = 1, .device = {deaths[d]}};
                hand hands[3] = {0};
                hands[1].run.members = pair;
                hands[1].run.count = 2;
                hands[1].run.save_every = 1 + (uint32_t)at;
                hands[1].run.pick = picked ? any : NULL;
                hands[1].run.seed = 3 + at;
                qn__fake_set(&plan);
                thread_ranks_run(hands, 3);
                all_have(hands, 3, &alone);
            }
    }
    qn__fake_set(NULL);
}

/* The only worker of a rank dies: the rank says so and leaves, the others do all. */
static void test_a_rank_without_workers_leaves(void **state) {
    (void)state;
    const qn__member only[] = {{.device = &qn__fake_device}};
    const qn__fake_behaviour deaths[] = {{.fail_collect = 1}, {.fail_update = 3}, {.fail_at = 2}};
    tiny alone = {0};
    alone_is(&alone);
    for (size_t d = 0; d < sizeof deaths / sizeof *deaths; ++d)
        for (uint32_t who = 0; who < 3; ++who) {
            const qn__fake_plan plan = {.count = 1, .device = {deaths[d]}};
            hand hands[3] = {0};
            hands[who].run.members = only;
            hands[who].run.count = 1;
            qn__fake_set(&plan);
            thread_ranks_run(hands, 3);
            assert_int_equal(hands[who].status, QN_DEVICE);
            assert_non_null(strstr(hands[who].run.err.what, "no worker is left"));
            assert_non_null(strstr(hands[who].run.err.remedy, "other ranks"));
            assert_int_equal(hands[who].code, 0);
            for (uint32_t r = 0; r < 3; ++r) {
                if (r == who)
                    continue;
                all_have(&hands[r], 1, &alone);
                assert_int_equal(hands[r].run.ranks[who].lost, 1);
            }
        }
    qn__fake_set(NULL);
}

/* A state that cannot be fetched any more is computed again by the rank itself. */
static void test_steps_done_again_are_the_ranks_own(void **state) {
    (void)state;
    qn__member members[] = {{.device = &qn__fake_late_device},
                            {.device = &qn__fake_device, .index = 1}};
    tiny alone = {0};
    alone_is(&alone);
    for (uint64_t at = 2; at <= 5; ++at) {
        const qn__fake_plan plan = {.count = 2, .device = {{.fail_update = at}}};
        hand hands[2] = {0};
        hands[1].run.members = members;
        hands[1].run.count = 2;
        hands[1].run.pick = any;
        hands[1].run.seed = at;
        qn__fake_set(&plan);
        thread_ranks_run(hands, 2);
        all_have(hands, 2, &alone);
    }
    qn__fake_set(NULL);
}

/* What is wrong with the job is the same message everywhere, with its step. */
static void test_a_number_out_of_range(void **state) {
    (void)state;
    tiny alone = {.rate = 1e37f};
    qn_data *data = tiny_data();
    assert_int_equal(tiny_run(&alone, data), QN_NUMERIC);
    qn_data_close(data);
    for (uint32_t ranks = 2; ranks <= 5; ranks += 3) {
        hand hands[CREW] = {0};
        for (uint32_t r = 0; r < ranks; ++r)
            hands[r].run.rate = 1e37f;
        thread_ranks_run(hands, ranks);
        for (uint32_t r = 0; r < ranks; ++r) {
            assert_int_equal(hands[r].status, QN_NUMERIC);
            assert_string_equal(hands[r].run.err.where, alone.err.where);
            assert_string_equal(hands[r].run.err.what, hands[0].run.err.what);
            assert_string_equal(hands[r].run.err.remedy, alone.err.remedy);
        }
    }
}

/* Sums that hold another number of items than the batch has are not a gradient of it: all stop. */
static void test_items_that_do_not_add_up(void **state) {
    (void)state;
    const qn__member only[] = {{.device = &qn__fake_device}};
    const qn__fake_plan plan = {.count = 1,
                                .device = {{.miscount = 1}}}; /* all share the first step */
    hand hands[2] = {0};
    hands[1].run.members = only;
    hands[1].run.count = 1;
    qn__fake_set(&plan);
    thread_ranks_run(hands, 2);
    qn__fake_set(NULL);
    for (uint32_t r = 0; r < 2; ++r) {
        assert_int_equal(hands[r].status, QN_CLUSTER);
        assert_string_equal(hands[r].run.err.what,
                            "the sums of all ranks hold 25 items, the batch 24");
    }
}

static atomic_uint not_floats; /* words of the sums that updates got */

static qn_status looking_update(qn__worker *w, const qn__update *numbers, const int64_t *sums,
                                qn_error *err) {
    for (int i = 0; i < 158; ++i)
        atomic_fetch_add(&not_floats, sums[i] != (int64_t)(float)sums[i]);
    return qn__fake_device.update(w, numbers, sums, err);
}

/* A rank gets the totals of another machine as the floats that the update uses. With clipping,
 * which needs their exact norm, both ranks have all of them whole; no step is clipped here. */
static void test_totals_of_another_machine(void **state) {
    (void)state;
    qn__device_table looking = qn__fake_device;
    const qn__member member = {.device = &looking};
    const qn__fake_plan plan = {.count = 1};
    const char *const machines[] = {NULL, "B"};
    unsigned found[2];
    looking.update = looking_update;
    qn__fake_set(&plan);
    for (int clips = 0; clips < 2; ++clips) {
        hand hands[2] = {0};
        atomic_store(&not_floats, 0);
        for (uint32_t r = 0; r < 2; ++r) {
            hands[r].run.members = &member;
            hands[r].run.count = 1;
            hands[r].run.clip = clips ? 1e30f : 0;
            hands[r].machine = machines[r];
        }
        thread_ranks_run(hands, 2);
        assert_int_equal(hands[0].status, QN_OK);
        assert_string_equal(hands[0].run.digest, hands[1].run.digest);
        found[clips] = atomic_load(&not_floats);
    }
    qn__fake_set(NULL);
    assert_true(found[0] > 0 && found[0] < found[1] && found[1] % 2 == 0);
}

/* A processor or a memory that is out of order: one update of rank 1 is another one. */
static qn_status wrong_update(qn__worker *w, const qn__update *numbers, const int64_t *sums,
                              qn_error *err) {
    int64_t own[256]; /* as many as the network has */
    memcpy(own, sums, 158 * sizeof *own);
    own[7] += numbers->step == 2 ? INT64_C(1) << 43 : 0;
    return qn__fake_device.update(w, numbers, own, err);
}

/* All ranks find it before anything is written, with the names of two that differ. */
static void test_ranks_that_differ(void **state) {
    (void)state;
    for (int saves = 0; saves < 2; ++saves) {
        char dir[] = "/tmp/quern-differ-XXXXXX";
        hand hands[3] = {0};
        qn__device_table wrong = qn__fake_device;
        const qn__member good = {.device = &qn__fake_device}, bad = {.device = &wrong};
        const qn__fake_plan plan = {.count = 1};
        wrong.update = wrong_update;
        assert_non_null(mkdtemp(dir));
        qn__fake_set(&plan);
        for (uint32_t r = 0; r < 3; ++r) {
            hands[r].run.members = r == 1 ? &bad : &good;
            hands[r].run.count = 1;
            hands[r].run.checkpoints = saves ? dir : NULL;
        }
        thread_ranks_run(hands, 3);
        qn__fake_set(NULL);
        for (uint32_t r = 0; r < 3; ++r) {
            assert_int_equal(hands[r].status, QN_MISMATCH);
            assert_non_null(strstr(hands[r].run.err.what,
                                   "the ranks do not hold the same parameters after step "));
            assert_non_null(strstr(hands[r].run.err.what, "rank 0 on "));
            assert_non_null(strstr(hands[r].run.err.what, "rank 1 on "));
            assert_string_equal(hands[r].run.digest, "");
        }
        DIR *folder = opendir(dir);
        assert_non_null(folder);
        for (const struct dirent *e; (e = readdir(folder)) != NULL;)
            assert_null(strstr(e->d_name, ".safetensors"));
        closedir(folder);
        remove_folder(dir);
    }
}

/* All lose their only workers in the same step: nobody says that others go on, who are not there.
 */
static void test_all_ranks_lose_their_workers(void **state) {
    (void)state;
    const qn__fake_behaviour dies = {.fail_update = 3};
    const qn__fake_plan plan = {.count = 3, .device = {dies, dies, dies}};
    qn__member only[3];
    hand hands[3] = {0};
    qn__fake_set(&plan);
    for (uint32_t r = 0; r < 3; ++r) {
        only[r] = (qn__member){.device = &qn__fake_device, .index = r};
        hands[r].run.members = &only[r];
        hands[r].run.count = 1;
    }
    thread_ranks_run(hands, 3);
    int failed = 0;
    for (uint32_t r = 0; r < 3; ++r) {
        assert_int_equal(hands[r].status, QN_DEVICE);
        failed += hands[r].code == 1;
    }
    assert_true(failed > 0); /* which is the launcher's exit code then */
    qn__fake_set(NULL);
}

/* Who was stopped goes on by another call, all ranks alike. */
static void test_stop_and_call_again(void **state) {
    (void)state;
    tiny alone = {0};
    alone_is(&alone);
    for (uint32_t who = 0; who < 3; ++who) {
        hand hands[3] = {0};
        for (uint32_t r = 0; r < 3; ++r) {
            hands[r].run.stop_at = r == who ? 4 : 0;
            hands[r].run.calls = 9;
        }
        thread_ranks_run(hands, 3);
        all_have(hands, 3, &alone);
        for (uint32_t r = 0; r < 3; ++r)
            assert_int_equal(hands[r].run.interrupted, 1);
    }
}

/* One rank is asked to stop: all stop after the same step, and go on from there in other numbers,
 * though only the first sees the folder. */
static void test_stop_and_resume(void **state) {
    (void)state;
    tiny alone = {0};
    alone_is(&alone);
    for (uint32_t who = 0; who < 3; ++who) {
        char dir[] = "/tmp/quern-ranks-XXXXXX";
        assert_non_null(mkdtemp(dir));
        hand hands[3] = {0}, again[5] = {0};
        for (uint32_t r = 0; r < 3; ++r) {
            hands[r].run.checkpoints = r ? "/nowhere/to/be/found" : dir;
            hands[r].run.stop_at = r == who ? 4 : 0;
        }
        thread_ranks_run(hands, 3);
        for (uint32_t r = 0; r < 3; ++r) {
            assert_int_equal(hands[r].status, QN_INTERRUPTED);
            assert_true(hands[r].run.steps >= 4 && hands[r].run.steps < 9);
            assert_int_equal(hands[r].run.steps, hands[0].run.steps);
        }
        for (uint32_t r = 0; r < 5; ++r) {
            again[r].run.checkpoints = r ? "/nowhere/to/be/found" : dir;
            again[r].run.resume = 1;
        }
        thread_ranks_run(again, 5);
        for (uint32_t r = 0; r < 5; ++r) {
            assert_int_equal(again[r].status, QN_OK);
            assert_string_equal(again[r].run.digest, alone.digest);
            assert_int_equal(again[r].run.resumed_from, hands[0].run.steps);
            assert_string_equal(again[r].run.epochs, again[0].run.epochs);
        }
        remove_folder(dir);
    }
}

/* A folder that cannot be written to, on the rank that writes: all are told. */
static void test_a_folder_that_is_not_there(void **state) {
    (void)state;
    hand hands[3] = {0};
    for (uint32_t r = 0; r < 3; ++r)
        hands[r].run.checkpoints = "/nowhere/to/be/found";
    thread_ranks_run(hands, 3);
    for (uint32_t r = 0; r < 3; ++r) {
        assert_int_equal(hands[r].status, QN_IO);
        assert_non_null(strstr(hands[r].run.err.what, "/nowhere/to/be/found"));
    }
}

static void count_in(const char *path, const char *word, int *count) {
    static char text[1 << 20];
    FILE *f = fopen(path, "r");
    assert_non_null(f);
    text[fread(text, 1, sizeof text - 1, f)] = 0;
    fclose(f);
    *count = 0;
    for (const char *at = text; (at = strstr(at, word)); ++at)
        ++*count;
}

/* One record and one trace of all ranks. */
static void test_one_record_and_one_trace(void **state) {
    (void)state;
    char dir[] = "/tmp/quern-ranks-XXXXXX", trace[64], path[64];
    assert_non_null(mkdtemp(dir));
    snprintf(trace, sizeof trace, "%s/trace.json", dir);
    hand hands[3] = {0};
    for (uint32_t r = 0; r < 3; ++r) {
        hands[r].run.run_dir = r ? "/nowhere/to/be/found" : dir;
        hands[r].run.trace = r ? "/nowhere/to/be/found/trace.json" : trace;
    }
    int count;
    thread_ranks_run(hands, 3);
    for (uint32_t r = 0; r < 3; ++r)
        assert_int_equal(hands[r].status, QN_OK);
    count_in(trace, "\"process_name\"", &count);
    assert_int_equal(count, 3);
    count_in(trace, "\"name\":\"ranks\"", &count);
    assert_int_equal(count, 3 * (9 + 3)); /* steps and validations of each */
    snprintf(path, sizeof path, "%s/metrics.csv", dir);
    count_in(path, "\n", &count);
    assert_int_equal(count, 1 + 3);
    snprintf(path, sizeof path, "%s/run.json", dir);
    count_in(path, "{\"rank\": 2,", &count);
    assert_int_equal(count, 2); /* the worker and the rank */
    count_in(path, "\"state\": \"finished\"", &count);
    assert_int_equal(count, 1);
    remove_folder(dir);
}

/* Trains with three ranks of unequal speed; 1 when the fastest had more than an equal share, the
 * slowest less, and least of all. */
static int shares_follow_speeds(const tiny *alone) {
    hand hands[3] = {0};
    qn__member members[3][1];
    for (uint32_t r = 0; r < 3; ++r) {
        members[r][0] = (qn__member){.device = &qn__fake_device, .index = r};
        hands[r].run.members = members[r];
        hands[r].run.count = 1;
    }
    thread_ranks_run(hands, 3);
    all_have(hands, 3, alone);
    const qn_rank_report *r = hands[0].run.ranks;
    print_message("items %llu, %llu, %llu\n", (unsigned long long)r[0].items,
                  (unsigned long long)r[1].items, (unsigned long long)r[2].items);
    const uint64_t equal = (r[0].items + r[1].items + r[2].items) / 3;
    return r[0].items < equal && r[2].items > equal && r[0].items < r[1].items;
}

/* How far shares follow speeds is measured by bench/rank_balance.c. On a busy machine all are
 * slower than their speeds, so a run that shows it is looked for; without shares by speed none
 * does. */
static void test_shares_follow_speeds(void **state) {
    (void)state;
    const qn__fake_plan plan = {.count = 3,
                                .device = {{.rate = 800}, {.rate = 1600}, {.rate = 4000}}};
    tiny alone = {0};
    int follow = 0;
    alone_is(&alone);
    qn__fake_set(&plan);
    for (int run = 0; run < 8 && !follow; ++run)
        follow = shares_follow_speeds(&alone);
    qn__fake_set(NULL);
    assert_true(follow);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_totals_of_another_machine),
                                       cmocka_unit_test(test_counts_of_ranks),
                                       cmocka_unit_test(test_ranks_unlike_one_another),
                                       cmocka_unit_test(test_a_device_of_one_rank_dies),
                                       cmocka_unit_test(test_a_rank_without_workers_leaves),
                                       cmocka_unit_test(test_steps_done_again_are_the_ranks_own),
                                       cmocka_unit_test(test_a_number_out_of_range),
                                       cmocka_unit_test(test_items_that_do_not_add_up),
                                       cmocka_unit_test(test_ranks_that_differ),
                                       cmocka_unit_test(test_all_ranks_lose_their_workers),
                                       cmocka_unit_test(test_stop_and_call_again),
                                       cmocka_unit_test(test_stop_and_resume),
                                       cmocka_unit_test(test_a_folder_that_is_not_there),
                                       cmocka_unit_test(test_one_record_and_one_trace),
                                       cmocka_unit_test(test_shares_follow_speeds)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
