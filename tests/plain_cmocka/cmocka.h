/* The part of cmocka that the conformance suite uses, for machines without cmocka:
 * scripts/gpu_check.py runs the suite there. It prints what cmocka prints. One header, for programs
 * of one file. */
#ifndef QN_TESTS_PLAIN_CMOCKA_H
#define QN_TESTS_PLAIN_CMOCKA_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

typedef int (*CMFixtureFunction)(void **state);

struct CMUnitTest {
    const char *name;
    void (*test_func)(void **state);
};

enum { PLAIN_FAILED = 1, PLAIN_SKIPPED = 2 };

static jmp_buf plain_back; /* out of the test that runs */

#define cmocka_unit_test(function)                                                                 \
    { #function, function }
#define print_message(...) printf(__VA_ARGS__)
#define skip() longjmp(plain_back, PLAIN_SKIPPED)
#define fail_msg(...)                                                                              \
    do {                                                                                           \
        printf(__VA_ARGS__);                                                                       \
        printf("\n%s:%d: error: Failure!\n", __FILE__, __LINE__);                                  \
        longjmp(plain_back, PLAIN_FAILED);                                                         \
    } while (0)
#define assert_true(condition)                                                                     \
    do {                                                                                           \
        if (!(condition))                                                                          \
            fail_msg("%s is not true", #condition);                                                \
    } while (0)
#define assert_int_equal(a, b)                                                                     \
    do {                                                                                           \
        const long long plain_a = (long long)(a), plain_b = (long long)(b);                        \
        if (plain_a != plain_b)                                                                    \
            fail_msg("%s is %lld and not %lld", #a, plain_a, plain_b);                             \
    } while (0)

static int plain_run(const struct CMUnitTest *test) {
    void *state = NULL;
    printf("[ RUN      ] %s\n", test->name);
    fflush(stdout);
    const int how = setjmp(plain_back);
    if (how == 0)
        test->test_func(&state);
    printf("[  %s ] %s\n",
           how == 0               ? "     OK"
           : how == PLAIN_SKIPPED ? "SKIPPED"
                                  : " FAILED",
           test->name);
    fflush(stdout);
    return how == PLAIN_FAILED;
}

/* The number of tests that failed, and of teardowns. */
static int plain_run_all(const struct CMUnitTest *tests, size_t count, CMFixtureFunction setup,
                         CMFixtureFunction teardown) {
    void *state = NULL;
    int failed = setup ? setup(&state) != 0 : 0;
    for (size_t i = 0; i < count; ++i)
        failed += plain_run(&tests[i]);
    return failed + (teardown && teardown(&state) != 0);
}

#define cmocka_run_group_tests(tests, setup, teardown)                                             \
    plain_run_all(tests, sizeof(tests) / sizeof *(tests), setup, teardown)

#endif
