/* A cluster in a child of the process that joined it: refused, and left as it was. */
#include "cluster/cluster.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "cluster/process_ranks_test.h"

/* In the child: the number of the first call that does not do what it should, or 0. */
static int use(qn_cluster *c) {
    qn_error err = {0};
    int code = 0;
    char bytes[8] = "";
    void *memory;
    if (qn_cluster_agree(c, NULL, NULL, 0, &err) != QN_USAGE || !strstr(err.what, "is a child"))
        return 1;
    if (qn__cluster_from_first(c, bytes, sizeof bytes, &err) != QN_USAGE)
        return 2;
    if (qn__cluster_common(c, 1, &memory, &code, &err) != QN_USAGE)
        return 3;
    if (qn_cluster_is_writer(c) || qn_cluster_alive(c) != 1 || qn_cluster_ranks(c) != 2)
        return 4;
    if (qn_cluster_over(c, &code) != 2 || code != 1)
        return 5;
    qn__cluster_fail(c, &err);
    qn_cluster_stop(c);
    qn_cluster_finish(c, 7);
    qn_cluster_leave(c);
    return 0;
}

static void body(qn_cluster *c, uint32_t rank, process_ranks_result *result) {
    uint64_t all[2] = {0}, own = 5 + rank;
    int ended = -1;
    const pid_t child = fork();
    if (child == 0)
        _exit(use(c));
    waitpid(child, &ended, 0);
    result->value[0] = (uint64_t)ended;
    result->status = qn__cluster_gather(c, &own, sizeof own, all, &result->err);
    result->value[1] = all[0] + 10 * all[1];
}

static void test_child(void **state) {
    (void)state;
    process_ranks c = {.count = 2, .body = body};
    process_ranks_run(&c);
    for (uint32_t r = 0; r < 2; ++r) {
        assert_true(c.result[r].done);
        assert_int_equal(c.result[r].value[0], 0);
        assert_int_equal(c.result[r].status, QN_OK);
        assert_int_equal(c.result[r].value[1], 65);
    }
    process_ranks_end(&c);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_child),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
