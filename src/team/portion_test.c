/* Ranks of one machine divide it: each core and device is used once if there are enough, and every
 * rank has some. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "team/portion.h"

static const qn__device_table cpu = {.name = "cpu"}, gpu = {.name = "gpu"},
                              other = {.name = "other"};

static void test_cores(void **state) {
    (void)state;
    for (uint32_t cores = 1; cores < 40; ++cores)
        for (uint32_t same = 1; same < 12; ++same) {
            uint32_t next = 0, least = UINT32_MAX, most = 0;
            for (uint32_t place = 0; place < same; ++place) {
                uint32_t first, count;
                qn__portion_cores(cores, same, place, &first, &count);
                assert_true(count >= 1 && first + count <= cores);
                least = count < least ? count : least;
                most = count > most ? count : most;
                if (cores >= same)
                    assert_int_equal(first, next); /* consecutive */
                next = first + count;
            }
            if (cores >= same)
                assert_int_equal(next, cores);
            assert_true(most - least <= 1);
        }
}

static void fill(qn__claim *claims, uint32_t ranks) {
    memset(claims, 0, ranks * sizeof *claims);
    for (uint32_t r = 0; r < ranks; ++r) {
        claims[r].kernel = 5;
        claims[r].group = 6;
        claims[r].visible = 7;
        claims[r].mask[0] = 0xff;
    }
}

static void test_who_shares_what(void **state) {
    (void)state;
    qn__claim claims[6];
    qn__dealt d;
    fill(claims, 6);
    claims[1].kernel = 8;     /* another machine */
    claims[2].mask[0] = 0x0f; /* bound by the launcher */
    claims[3].visible = 9;    /* shown another device */
    claims[4].kernel = 0;     /* lost */
    qn__portion_deal(claims, 6, 5, &d);
    assert_int_equal(d.same_cores, 3); /* 0, 3, 5 */
    assert_int_equal(d.core_place, 2);
    assert_int_equal(d.same_devices, 3); /* 0, 2, 5 */
    assert_int_equal(d.device_place, 2);
    assert_int_equal(d.same_quota, 4);
    qn__portion_deal(claims, 6, 1, &d);
    assert_int_equal(d.same_cores, 1);
    assert_int_equal(d.core_place, 0);
    claims[0].group = 1; /* a container beside the others */
    qn__portion_deal(claims, 6, 2, &d);
    assert_int_equal(d.same_cores, 1);
    assert_int_equal(d.same_quota, 3);
}

/* Each device that was not named has one owner, and every rank has a device. */
static void test_devices_are_dealt(void **state) {
    (void)state;
    for (uint32_t gpus = 0; gpus < 7; ++gpus)
        for (uint32_t ranks = 1; ranks < 6; ++ranks) {
            uint32_t owners[8] = {0};
            for (uint32_t place = 0; place < ranks; ++place) {
                const qn__dealt d = {.same_devices = ranks, .device_place = place};
                qn__member m[16] = {{.device = &cpu}};
                uint32_t count = 1;
                for (uint32_t g = 0; g < gpus; ++g)
                    m[count++] = (qn__member){.device = &gpu, .index = g, .optional = 1};
                qn__portion_members(&d, m, &count);
                assert_ptr_equal(m[0].device, &cpu);
                for (uint32_t i = 1; i < count; ++i)
                    ++owners[m[i].index];
            }
            for (uint32_t g = 0; g < gpus; ++g)
                assert_int_equal(owners[g], 1);
        }
}

/* Kinds are divided separately; named devices stay; a rank without any shares one. */
static void test_nobody_is_left_without(void **state) {
    (void)state;
    const qn__dealt third = {.same_devices = 3, .device_place = 2};
    qn__member all[] = {{.device = &gpu, .optional = 1},
                        {.device = &gpu, .index = 1, .optional = 1}};
    uint32_t count = 2;
    qn__portion_members(&third, all, &count);
    assert_int_equal(count, 1);
    assert_int_equal(all[0].index, 0);
    qn__member mixed[] = {{.device = &gpu, .index = 3},
                          {.device = &other, .optional = 1},
                          {.device = &gpu, .index = 0, .optional = 1},
                          {.device = &gpu, .index = 1, .optional = 1},
                          {.device = &gpu, .index = 2, .optional = 1}};
    count = 5;
    qn__portion_members(&third, mixed, &count);
    assert_int_equal(count, 2);
    assert_int_equal(mixed[0].index, 3);
    assert_int_equal(mixed[1].index, 2);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cores), cmocka_unit_test(test_who_shares_what),
        cmocka_unit_test(test_devices_are_dealt), cmocka_unit_test(test_nobody_is_left_without)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
