/* Ranks that meet over loopback, and what can go wrong on the way: ranks that do not come, other
 * versions, other keys, strangers who say nothing, too much, or rubbish. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/clock.h"
#include "cluster/meet_door.h"
#include "cluster/meeting_test.h"

static void test_ranks_meet(void **state) {
    (void)state;
    static const uint32_t counts[] = {2, 3, 5, 9};
    for (size_t i = 0; i < sizeof counts / sizeof *counts; ++i) {
        gang g;
        gang_meet(&g, counts[i], NULL);
        for (uint32_t r = 0; r < g.count; ++r) {
            assert_int_equal(g.member[r].status, QN_OK);
            assert_int_equal(g.member[r].meeting.ranks, counts[i]);
            assert_int_equal(g.member[r].meeting.rank, r);
            for (uint32_t other = 0; other < g.count; ++other) {
                assert_int_equal(g.member[r].meeting.met[other].machine, 0);
                assert_int_equal(g.member[r].meeting.met[other].local, other);
            }
        }
        gang_listen(&g);
        gang_exchange(&g, 1000);
        gang_end(&g);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ranks_meet),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
