/* Kernels over memory, through the public functions. tests/test_kernel.py has those over files. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include <dirent.h>
#include <pthread.h>
#include <quern/kernel.h>
#include <stdatomic.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { ITEMS = 5000 };

static qn_kernel *kernel_of(const char *text) {
    qn_kernel *k;
    qn_error err;
    if (qn_kernel_read(text, "k.c", &k, &err) != QN_OK)
        fail_msg("%s %s", err.what, err.where);
    return k;
}

static qn_status run(qn_kernel *k, int threads, uint64_t grain, qn_error *err) {
    qn_kernel_options o;
    qn_kernel_options_init(&o);
    o.threads = threads;
    o.grain = grain;
    return qn_kernel_run(k, &o, err);
}

/* One text for all that can go wrong while it runs, because a compiler takes its time. */
static const char faulty[] =
    "INDEX(i);\nINPUT(float, x);\nWHOLE(int32_t, t, 1);\nSCALAR(int, how, 0);\nOUTPUT(float, y);\n"
    "SUM(double, s);\nMIN(float, least);\n"
    "KERNEL {\n    int a[3] = {1, 2, 3};\n    y = x;\n    s = x;\n"
    "    if (x > 2) least = x;\n    if (i < 1234 + 0 * how) return;\n"
    "    if (how == 1) y = t(i);\n    if (how == 2) y = 1 / (int)x;\n"
    "    if (how == 3) y = a[(int)i];\n    if (how == 4) y = sqrt(x - 2);\n"
    "    if (how == 5) s = 1 / (x * 0.0);\n}\n";

static void test_faults(void **state) {
    static const char *const what[] = {NULL,
                                       "index of \"t\" is out of range",
                                       "divided by zero",
                                       "local array is out of range",
                                       "\"y\" is not a number",
                                       "\"s\" is infinite"};
    static float x[ITEMS], y[ITEMS];
    int32_t t[4] = {0};
    const uint64_t shape[1] = {ITEMS}, four[1] = {4};
    qn_error err = {0};
    qn_kernel *k = kernel_of(faulty);
    (void)state;
    for (int i = 0; i < ITEMS; i++)
        x[i] = i == 3000 ? 0.5f : i == 1234 ? 1 : 4;
    x[1234] = 0.25f; /* the integer 0, the root of a number below 0 */
    assert_int_equal(qn_kernel_bind(k, "x", x, shape, 1, NULL), QN_OK);
    assert_int_equal(qn_kernel_bind(k, "y", y, shape, 1, NULL), QN_OK);
    assert_int_equal(qn_kernel_bind(k, "t", t, four, 1, NULL), QN_OK);
    if (run(k, 1, 0, &err) == QN_UNSUPPORTED) {
        print_message("no C compiler: %s\n", err.what);
        qn_kernel_free(k);
        skip();
    }
    for (int how = 1; how < 6; how++)
        for (int threads = 1; threads < 4; threads++) {
            char number[8];
            snprintf(number, sizeof number, "%d", how);
            assert_int_equal(qn_kernel_set(k, "how", number, NULL), QN_OK);
            assert_int_equal(run(k, threads, 100, &err), QN_NUMERIC);
            if (!strstr(err.what, what[how]) || strcmp(err.where, "item 1234") != 0 || !*err.remedy)
                fail_msg("%d: %s at %s", how, err.what, err.where);
        }
    qn_kernel_result result = {.size = sizeof result};
    assert_int_equal(qn_kernel_result_get(k, "s", &result, NULL), QN_USAGE); /* no run succeeded */
    assert_int_equal(qn_kernel_set(k, "how", "0", NULL), QN_OK);
    assert_int_equal(run(k, 3, 7, &err), QN_OK);
    assert_memory_equal(x, y, sizeof x);
    assert_int_equal(qn_kernel_result_get(k, "s", &result, NULL), QN_OK);
    assert_string_equal(result.value, "19992.75");
    assert_int_equal(qn_kernel_result_get(k, "least", &result, NULL), QN_OK);
    assert_string_equal(result.value, "4");
    assert_true(result.item[0] == 0 && result.count == ITEMS - 2);
    for (int i = 0; i < ITEMS; i++) /* nobody takes part */
        x[i] = 1;
    assert_int_equal(run(k, 2, 0, &err), QN_OK);
    assert_int_equal(qn_kernel_result_get(k, "least", &result, NULL), QN_OK);
    assert_null(result.value);
    qn_kernel_free(k);
}

static void refuse(qn_status status, qn_status wanted, const qn_error *err, const char *what) {
    if (status != wanted || !strstr(err->what, what) || !*err->remedy)
        fail_msg("status %d: %s / %s", (int)status, err->what, err->remedy);
}

/* What is refused before anything is compiled. */
static void test_refused(void **state) {
    float x[12] = {0};
    const uint64_t two[2] = {2, 3}, other[2] = {3, 2}, none[2] = {0, 3};
    qn_error err = {0};
    (void)state;
    qn_kernel *k = kernel_of("INDEX(y, x);\nINPUT(float, a);\nHALO(float, b, 1, zero);\n"
                             "SCALAR(uint8_t, n);\nOUTPUT(float, c);\nKERNEL { c = a * n; }");
    refuse(qn_kernel_set(k, "n", "256", &err), QN_USAGE, &err, "not a value of the scalar \"n\"");
    refuse(qn_kernel_set(k, "a", "1", &err), QN_USAGE, &err, "no scalar \"a\"");
    assert_string_equal(err.remedy, "it has: n");
    refuse(qn_kernel_bind(k, "n", x, two, 2, &err), QN_USAGE, &err, "no array \"n\"");
    refuse(qn_kernel_bind(k, "a", x, two, 1, &err), QN_USAGE, &err, "has 2 dimensions");
    refuse(qn_kernel_bind(k, "a", x, none, 2, &err), QN_USAGE, &err, "length of 0");
    refuse(qn_kernel_set_shape(k, two, 1, &err), QN_USAGE, &err, "has 2 dimensions");
    refuse(run(k, 1, 0, &err), QN_USAGE, &err, "no array for \"a\"");
    assert_int_equal(qn_kernel_bind(k, "a", x, two, 2, &err), QN_OK);
    assert_int_equal(qn_kernel_bind(k, "b", x, other, 2, &err), QN_OK);
    refuse(run(k, 1, 0, &err), QN_USAGE, &err, "\"n\" has no value");
    assert_int_equal(qn_kernel_set(k, "n", "255", &err), QN_OK);
    refuse(run(k, 1, 0, &err), QN_USAGE, &err, "no array for \"c\"");
    assert_int_equal(qn_kernel_bind(k, "c", x, other, 2, &err), QN_OK);
    refuse(run(k, 1, 0, &err), QN_USAGE, &err, "\"a\" has the shape 2x3, and \"b\" 3x2");
    refuse(run(k, -1, 0, &err), QN_USAGE, &err, "-1 threads");
    assert_int_equal(qn_kernel_bind(k, "b", x, two, 2, &err), QN_OK);
    assert_int_equal(qn_kernel_bind(k, "c", x + 5, two, 2, &err), QN_OK);
    refuse(run(k, 1, 0, &err), QN_USAGE, &err, "the memory of \"c\" overlaps that of \"a\"");
    qn_kernel_options o;
    qn_kernel_options_init(&o);
    o.devices = "fake:0";
    refuse(qn_kernel_run(k, &o, &err), QN_USAGE, &err, "no kind of device \"fake\"");
    refuse(qn_kernel_replay(k, NULL, &err), QN_USAGE, &err, "not opened from a recipe");
    qn_kernel_free(k);
    uint64_t bins[4] = {0};
    const uint64_t three[1] = {3}, four[1] = {4};
    k = kernel_of("INDEX(i);\nSUM(double, s, 4);\nCOUNT(c, 4);\nKERNEL { s[0] = 1; c[0] = 1; }");
    refuse(qn_kernel_bind(k, "c", bins, two, 2, &err), QN_USAGE, &err, "has 1 dimension, but");
    refuse(qn_kernel_bind(k, "c", bins, three, 1, &err), QN_USAGE, &err, "has 4 bins");
    assert_int_equal(qn_kernel_bind(k, "c", bins, four, 1, &err), QN_OK);
    assert_int_equal(qn_kernel_bind(k, "s", bins, four, 1, &err), QN_OK);
    assert_int_equal(qn_kernel_set_shape(k, three, 1, &err), QN_OK);
    refuse(run(k, 1, 0, &err), QN_USAGE, &err, "overlaps");
    qn_kernel_free(k);
    k = kernel_of("INDEX(i);\nOUTPUT(float, c);\nCOUNT(n, 2);\nKERNEL { c = i; n[0] = 1; }");
    assert_int_equal(qn_kernel_bind_file(k, "c", "c.npy", &err), QN_OK);
    assert_int_equal(qn_kernel_bind_file(k, "n", "./c.npy", &err), QN_OK);
    assert_int_equal(qn_kernel_set_shape(k, three, 1, &err), QN_OK);
    refuse(run(k, 1, 0, &err), QN_USAGE, &err, "\"c\" and \"n\" have the same file");
    qn_kernel_free(k);
    k = kernel_of("INDEX(i);\nOUTPUT(float, c);\nKERNEL { c = i; }");
    assert_int_equal(qn_kernel_bind_file(k, "c", "c.npy", &err), QN_OK);
    refuse(run(k, 1, 0, &err), QN_USAGE, &err, "index space is not known");
    qn_kernel_free(k);
}

static void test_declarations(void **state) {
    (void)state;
    qn_kernel *k = kernel_of(
        "INDEX(y, x);\nWHOLE(int8_t, w, 3);\nSCALAR(float, f, 0.1);\n"
        "HALO(double, h, 4, wrap);\nCOUNT(n);\nCOUNT(b, 7);\nKERNEL { n = 1; b[0] = 1; }");
    qn_kernel_part p = {.size = sizeof p};
    qn_error err;
    assert_int_equal(qn_kernel_dimensions(k), 2);
    assert_int_equal(qn_kernel_parts(k), 5);
    assert_int_equal(qn_kernel_part_get(k, 0, &p, &err), QN_OK);
    assert_true(p.use == QN_KERNEL_WHOLE && p.dimensions == 3 && !p.text);
    assert_string_equal(p.type, "int8");
    assert_int_equal(qn_kernel_part_get(k, 1, &p, &err), QN_OK);
    assert_string_equal(p.text, "0.1");
    assert_int_equal(qn_kernel_part_get(k, 2, &p, &err), QN_OK);
    assert_true(p.use == QN_KERNEL_HALO && p.dimensions == 2 && p.reach == 4);
    assert_int_equal(qn_kernel_part_get(k, 3, &p, &err), QN_OK);
    assert_true(p.use == QN_KERNEL_COUNT && p.dimensions == 0);
    assert_string_equal(p.name, "n");
    assert_int_equal(qn_kernel_part_get(k, 4, &p, &err), QN_OK);
    assert_true(p.use == QN_KERNEL_COUNT && p.dimensions == 1 && p.bins == 7);
    assert_string_equal(p.type, "uint64");
    assert_int_equal(qn_kernel_part_get(k, 5, &p, &err), QN_USAGE);
    qn_kernel_free(k);
}

typedef struct stopped {
    qn_kernel *kernel;
    qn_status status;
    atomic_int ended;
} stopped;

static void *run_stopped(void *context) {
    stopped *s = context;
    s->status = qn_kernel_run(s->kernel, NULL, NULL);
    atomic_store(&s->ended, 1);
    return NULL;
}

/* Days of work end soon. A stop before the run has no effect, so it is repeated. */
static void test_stop(void **state) {
    const uint64_t many[1] = {(uint64_t)1 << 48}, few[1] = {3};
    const struct timespec moment = {.tv_nsec = 1000000};
    pthread_t thread;
    (void)state;
    stopped s = {.kernel = kernel_of("INDEX(i);\nCOUNT(n);\nKERNEL { n = 1; }")};
    assert_int_equal(qn_kernel_set_shape(s.kernel, few, 1, NULL), QN_OK);
    qn_kernel_stop(s.kernel);
    if (qn_kernel_run(s.kernel, NULL, NULL) == QN_UNSUPPORTED) {
        qn_kernel_free(s.kernel);
        skip();
    }
    assert_int_equal(qn_kernel_set_shape(s.kernel, many, 1, NULL), QN_OK);
    assert_int_equal(pthread_create(&thread, NULL, run_stopped, &s), 0);
    while (!atomic_load(&s.ended)) {
        nanosleep(&moment, NULL);
        qn_kernel_stop(s.kernel);
    }
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_int_equal(s.status, QN_INTERRUPTED);
    assert_int_equal(qn_kernel_set_shape(s.kernel, few, 1, NULL), QN_OK);
    assert_int_equal(run(s.kernel, 1, 0, NULL), QN_OK);
    qn_kernel_free(s.kernel);
}

/* The files of a folder, in a text. */
static void list(const char *folder, char names[256]) {
    DIR *all = opendir(folder);
    const struct dirent *one;
    names[0] = '\0';
    assert_non_null(all);
    while ((one = readdir(all)))
        if (strcmp(one->d_name, ".") != 0 && strcmp(one->d_name, "..") != 0) {
            assert_true(strlen(names) + strlen(one->d_name) < 255);
            strcat(strcat(names, one->d_name), " ");
        }
    closedir(all);
}

/* A run that fails at a step releases what the steps before made: temporary files, the lock of the
 * checkpoint, and memory (which the address sanitizer sees). The next run succeeds. */
static void test_failing_steps(void **state) {
    enum { FILES, OPTIONS, CHECKPOINT, SPACE, DEVICES, DIGEST, WORK, STEPS };
    static const struct {
        qn_status status;
        const char *what, *left; /* the message, and the files that are there */
    } wanted[STEPS] = {{QN_IO, "cannot open the folder", ""}, {QN_USAGE, "has no NEXT", ""},
                       {QN_IO, "not a file", "sub "},         {QN_USAGE, "has the shape", ""},
                       {QN_USAGE, "no kind of device", ""},   {QN_FORMAT, "is damaged", "state "},
                       {QN_NUMERIC, "\"s\" is infinite", ""}};
    static const char *const file[] = {"y.npy", "no/y.json", "state", "sub", "y.json"};
    char folder[] = "/tmp/quern-steps-XXXXXX", path[5][64], names[256];
    const uint64_t nine[1] = {9}, eight[1] = {8};
    double x[9] = {1};
    qn_error err = {0};
    qn_kernel_report report = {.size = sizeof report};
    (void)state;
    assert_non_null(mkdtemp(folder));
    for (int i = 0; i < 5; i++)
        snprintf(path[i], sizeof path[i], "%s/%s", folder, file[i]);
    qn_kernel *k = kernel_of("INDEX(i);\nINPUT(double, x);\nOUTPUT(double, y);\nSUM(double, s);\n"
                             "KERNEL { y = x; s = 1 / x; }");
    assert_int_equal(qn_kernel_bind(k, "x", x, nine, 1, &err), QN_OK);
    assert_int_equal(qn_kernel_bind_file(k, "y", path[0], &err), QN_OK);
    for (int step = 0; step < STEPS; step++) {
        qn_kernel_options o;
        qn_kernel_options_init(&o);
        o.threads = 1;
        o.recipe = step == FILES ? path[1] : path[4];
        o.iterations = 1 + (step == OPTIONS);
        o.resume = step >= CHECKPOINT;
        if (o.resume)
            o.checkpoint = step == CHECKPOINT ? path[3] : path[2];
        if (step == CHECKPOINT)
            assert_int_equal(mkdir(path[3], 0700), 0);
        if (step == DEVICES)
            o.devices = "fake:0";
        if (step == SPACE)
            assert_int_equal(qn_kernel_set_shape(k, eight, 1, &err), QN_OK);
        if (step == WORK)
            unlink(path[2]);
        if (step == DIGEST) {
            FILE *other = fopen(path[2], "we");
            assert_non_null(other);
            fputs("of another run\n", other);
            fclose(other);
        }
        const qn_status status = qn_kernel_run(k, &o, &err);
        if (status == QN_UNSUPPORTED)
            break; /* no compiler */
        list(folder, names);
        if (status != wanted[step].status || !strstr(err.what, wanted[step].what) ||
            strcmp(names, wanted[step].left) != 0)
            fail_msg("step %d: %d %s (%s), left: %s", step, (int)status, err.what, err.where,
                     names);
        assert_int_equal(qn_kernel_report_get(k, &report, NULL), QN_USAGE);
        qn_kernel_stop(k);
        rmdir(path[3]);
        assert_int_equal(qn_kernel_set_shape(k, nine, 1, &err), QN_OK);
    }
    for (int i = 0; i < 9; i++)
        x[i] = 0.5;
    unlink(path[2]);
    const qn_status status = run(k, 1, 0, &err);
    assert_true(status == QN_OK || status == QN_UNSUPPORTED);
    qn_kernel_free(k);
    unlink(path[0]);
    rmdir(folder);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_failing_steps), cmocka_unit_test(test_faults),
        cmocka_unit_test(test_refused),       cmocka_unit_test(test_declarations),
        cmocka_unit_test(test_stop),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
