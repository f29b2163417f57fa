/* A prediction that uses the threads and parameters of the one before gives the same bytes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <pthread.h>
#include <quern/quern.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { ITEMS = 150, CLASSES = 10, OTHERS = 4 };

static struct {
    qn_data *data;
    qn_model *model;
    float outputs[ITEMS * CLASSES]; /* by the reference: one thread, plain C */
} all;

static int set_up(void **unused) {
    (void)unused;
    qn_train_options o;
    qn_train *t = NULL;
    const qn_compute plain = {.size = sizeof plain, .threads = 1, .isa = "scalar"};
    qn_train_options_init(&o);
    o.model = "conv 4 3x3 relu; maxpool 2; dense 10 softmax";
    o.epochs = 1;
    const int good =
        qn_data_synth_digits(1, 0, ITEMS, &all.data, NULL) == QN_OK &&
        qn_train_open(&o, all.data, NULL, NULL, &t, NULL) == QN_OK &&
        qn_train_run(t, NULL) == QN_OK && qn_train_model(t, &all.model, NULL) == QN_OK &&
        qn_predict(all.model, all.data, &plain, NULL, NULL, all.outputs, NULL) == QN_OK;
    qn_train_close(t);
    return good ? 0 : -1;
}

static int tear_down(void **unused) {
    (void)unused;
    qn_data_close(all.data);
    qn_model_free(all.model);
    return 0;
}

/* Whether `count` items from `first` on get their outputs. */
static int is_right(uint64_t first, uint64_t count, int threads) {
    const qn_compute compute = {.size = sizeof compute, .threads = threads, .devices = "cpu"};
    const uint8_t *values = (const uint8_t *)qn_data_values(all.data) + first * 784;
    float outputs[ITEMS * CLASSES];
    qn_data *some = NULL;
    const int good =
        qn_data_from_arrays(QN_U8, count, 784, values, NULL, &some, NULL) == QN_OK &&
        qn_predict(all.model, some, &compute, NULL, NULL, outputs, NULL) == QN_OK &&
        memcmp(outputs, all.outputs + first * CLASSES, count * CLASSES * sizeof(float)) == 0;
    qn_data_close(some);
    return good;
}

/* More items than the one before had space for, fewer, other threads. */
static void test_one_after_another(void **unused) {
    (void)unused;
    static const int asked[][3] = {{7, 1, 1},  {8, 1, 1},   {0, ITEMS, 1},     {3, 1, 1},
                                   {3, 1, 2},  {5, 40, 2},  {1, ITEMS - 1, 2}, {149, 1, 2},
                                   {0, 33, 1}, {17, 100, 1}};
    for (size_t i = 0; i < sizeof asked / sizeof *asked; ++i)
        assert_true(is_right((uint64_t)asked[i][0], (uint64_t)asked[i][1], asked[i][2]));
}

static void *predict_some(void *number) {
    const uint64_t which = (uint64_t)(uintptr_t)number;
    uintptr_t wrong = 0;
    for (uint64_t i = 0; i < 6; ++i)
        wrong += !is_right(which * 20 + i, 1 + i % 3 * 9, 1 + (int)(which % 2));
    return (void *)wrong;
}

static void test_threads_that_share_a_model(void **unused) {
    (void)unused;
    pthread_t thread[OTHERS];
    for (uintptr_t i = 0; i < OTHERS; ++i)
        assert_int_equal(pthread_create(&thread[i], NULL, predict_some, (void *)i), 0);
    for (int i = 0; i < OTHERS; ++i) {
        void *wrong;
        assert_int_equal(pthread_join(thread[i], &wrong), 0);
        assert_null(wrong);
    }
}

/* The threads of the parent are not in the child, which has the same model. */
static void test_after_a_fork(void **unused) {
    (void)unused;
    int status = -1;
    assert_true(is_right(0, 3, 2));
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        alarm(60);
        _exit(is_right(0, 3, 2) && is_right(1, 1, 2) ? 0 : 1);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    assert_true(is_right(0, 3, 2));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_one_after_another),
        cmocka_unit_test(test_threads_that_share_a_model),
        cmocka_unit_test(test_after_a_fork),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
