/* Agreements: the verdict is the same on all ranks, and names the rank that differs and its
 * item. Each of several ranks that differ or fail gets a message about itself. */
#include "cluster/agreement.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "cluster/process_ranks_test.h"

/* The items of each rank of a test; set before the ranks are started. */
static struct {
    qn_agreement item[PROCESS_RANKS_MOST][2];
    uint32_t count[PROCESS_RANKS_MOST];
    qn_error own[PROCESS_RANKS_MOST];
    uint32_t dies;  /* before it sends anything; PROCESS_RANKS_MOST: no rank */
    uint32_t named; /* result: the ranks whose message is about themselves, a bit each */
} plan;

static void body(qn_cluster *c, uint32_t rank, process_ranks_result *result) {
    if (rank == plan.dies)
        raise(SIGKILL);
    result->status =
        qn_cluster_agree(c, &plan.own[rank], plan.item[rank], plan.count[rank], &result->err);
}

static void set_all(const char *recipe, const char *data) {
    memset(&plan, 0, sizeof plan);
    plan.dies = PROCESS_RANKS_MOST;
    for (uint32_t r = 0; r < PROCESS_RANKS_MOST; ++r) {
        plan.count[r] = 2;
        plan.item[r][0] =
            (qn_agreement){sizeof(qn_agreement), "the training data", data, "copy it"};
        plan.item[r][1] = (qn_agreement){sizeof(qn_agreement), "the recipe", recipe, NULL};
    }
}

/* The common verdict of `count` ranks; its message in `what`. */
static qn_status verdict(uint32_t count, char what[512], char remedy[512]) {
    process_ranks c = {.count = count, .body = body};
    const uint32_t first = plan.dies == 0;
    process_ranks_run(&c);
    const process_ranks_result *one = &c.result[first];
    for (uint32_t r = first; r < count; ++r) {
        if (r == plan.dies)
            continue;
        assert_true(c.result[r].done);
        assert_int_equal(c.result[r].joined, QN_OK);
        assert_int_equal(c.result[r].status, one->status);
        char own[32];
        snprintf(own, sizeof own, "rank %u on ", r);
        if (strncmp(c.result[r].err.what, own, strlen(own)) ==
            0) { /* the message is about this rank */
            plan.named |= 1u << r;
            continue;
        }
        assert_string_equal(c.result[r].err.what, one->err.what);
        assert_string_equal(c.result[r].err.remedy, one->err.remedy);
    }
    const qn_status status = one->status;
    memcpy(what, one->err.what, 512);
    memcpy(remedy, one->err.remedy, 512);
    process_ranks_end(&c);
    return status;
}

static void expect(uint32_t count, qn_status status, const char *const *texts) {
    char what[512], remedy[512];
    assert_int_equal(verdict(count, what, remedy), status);
    for (; texts && *texts; ++texts)
        if (!strstr(what, *texts) && !strstr(remedy, *texts))
            fail_msg("\"%s\" is not in \"%s\", \"%s\"", *texts, what, remedy);
}

static void test_alike(void **state) {
    (void)state;
    set_all("{\"lr\":0.1}", "5 items");
    expect(1, QN_OK, NULL);
    expect(4, QN_OK, NULL);
    plan.dies = 0;
    expect(3, QN_OK, NULL);
}

static void test_the_minority_is_named(void **state) {
    (void)state;
    set_all("{\"lr\":0.1,\"seed\":3}", "5 items");
    plan.item[2][0].value = "6 items";
    plan.item[2][1].value = "{\"lr\":0.3,\"seed\":3}"; /* only the first item counts */
    expect(3, QN_MISMATCH,
           (const char *const[]){"rank 2 on ", " differs from rank 0 on ",
                                 " in the training data: 6 items, not 5 items", "copy it", NULL});
    set_all("{\"lr\":0.1,\"seed\":3}", "5 items");
    plan.item[0][1].value = "{\"lr\":0.3,\"seed\":3}";
    expect(3, QN_MISMATCH,
           (const char *const[]){"rank 0 on ", " differs from rank 1 on ",
                                 " in the recipe: lr 0.3 and 0.1", NULL});
    set_all("{}", "5 items");
    plan.item[1][0].value = plan.item[3][0].value = "7 items";
    expect(5, QN_MISMATCH,
           (const char *const[]){"rank 1 on ", " (and 1 more rank) differs from rank 0 on ",
                                 "7 items, not 5 items", NULL});
    assert_int_equal(plan.named, 1 << 1 | 1 << 3);
    /* One rank against one: the lower rank counts as right. */
    set_all("{}", "5 items");
    plan.item[1][0].value = "7 items";
    expect(2, QN_MISMATCH, (const char *const[]){"rank 1 on ", "7 items, not 5 items", NULL});
}

static void test_different_questions(void **state) {
    (void)state;
    set_all("{}", "5 items");
    plan.item[1][0].name = "the model";
    expect(3, QN_MISMATCH, (const char *const[]){"compare different things", NULL});
    set_all("{}", "5 items");
    plan.count[2] = 1;
    expect(3, QN_MISMATCH, (const char *const[]){"compare different things", NULL});
    set_all("{}", "5 items");
    plan.count[0] = 0;
    expect(2, QN_MISMATCH, (const char *const[]){"compare different things", NULL});
}

static void fail_rank(uint32_t rank, const char *what) {
    plan.own[rank] = (qn_error){.status = QN_IO};
    snprintf(plan.own[rank].what, sizeof plan.own[rank].what, "%s", what);
}

static void test_failures(void **state) {
    (void)state;
    set_all("{}", "5 items");
    fail_rank(1, "cannot open x");
    plan.item[2][0].value = "6 items"; /* follows */
    expect(3, QN_IO, (const char *const[]){"rank 1 on ", ": cannot open x", NULL});
    fail_rank(2, "cannot open y");
    expect(3, QN_IO, (const char *const[]){"rank 1 on ", "x (and 1 more rank failed)", NULL});
    assert_int_equal(plan.named, 1 << 1 | 1 << 2);
    /* If all ranks fail alike, no rank is named. */
    char what[512], remedy[512];
    for (uint32_t r = 0; r < 3; ++r)
        fail_rank(r, "there is no option --x");
    assert_int_equal(verdict(3, what, remedy), QN_IO);
    assert_string_equal(what, "there is no option --x");
}

static void test_alone(void **state) {
    (void)state;
    qn_error err, own = {.status = QN_IO, .what = "no"};
    assert_int_equal(qn_cluster_agree(NULL, NULL, NULL, 0, &err), QN_OK);
    assert_int_equal(qn_cluster_agree(NULL, &own, NULL, 0, &err), QN_IO);
    assert_string_equal(err.what, "no");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_alike),
        cmocka_unit_test(test_the_minority_is_named),
        cmocka_unit_test(test_different_questions),
        cmocka_unit_test(test_failures),
        cmocka_unit_test(test_alone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
