/* The floating-point state of the caller does not reach results, and no call changes it: every
 * public function that computes runs with each rounding direction, with subnormal numbers flushed,
 * with less precision and with traps, and gives the bytes that it gives in the default state. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "device/cpu/float/map.h"
#include <fenv.h>
#include <quern/quern.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { ITEMS = 96, FEATURES = 6, MAPPED = 1001, FLAGS = FE_DIVBYZERO };

static char folder[] = "/tmp/float_state_XXXXXX";
static char path_in[64], path_out[64];

/* ---------------------------------------------------------------- states of a caller */

/* All of the state that a program can see, flags included. */
typedef struct seen {
    uint64_t word[2];
} seen;

static seen look(void) {
    seen s = {{0, 0}};
#if defined(__SSE__)
    uint32_t mxcsr;
    uint16_t control, status;
    __asm__ volatile("stmxcsr %0" : "=m"(mxcsr));
    __asm__ volatile("fnstcw %0" : "=m"(control));
    __asm__ volatile("fnstsw %0" : "=a"(status));
    s.word[0] = mxcsr;
    s.word[1] = (uint64_t)control << 16 | (status & 0x80ffu);
#elif defined(__aarch64__)
    __asm__ volatile("mrs %0, fpcr" : "=r"(s.word[0]));
    __asm__ volatile("mrs %0, fpsr" : "=r"(s.word[1]));
#else
    s.word[0] = (uint64_t)fegetround();
    s.word[1] = (uint64_t)fetestexcept(FE_ALL_EXCEPT);
#endif
    return s;
}

static void nothing(void) {}

/* Where the processor has traps. */
static void trap(void) {
#if defined(__GLIBC__)
    feenableexcept(FE_ALL_EXCEPT);
#endif
}

static void upward(void) { fesetround(FE_UPWARD); }
static void downward(void) { fesetround(FE_DOWNWARD); }
static void to_zero(void) { fesetround(FE_TOWARDZERO); }

#if defined(__SSE__)
static void or_mxcsr(uint32_t bits) {
    uint32_t mxcsr;
    __asm__ volatile("stmxcsr %0" : "=m"(mxcsr));
    mxcsr |= bits;
    __asm__ volatile("ldmxcsr %0" : : "m"(mxcsr));
}

static void flush(void) { or_mxcsr(0x8000); }
static void read_as_zero(void) { or_mxcsr(0x40); }

static void both(void) { or_mxcsr(0x8040); }

static void less_precision(void) {
    const uint16_t control = 0x47f; /* the x87 unit rounds to 24 bits, and downward */
    __asm__ volatile("fldcw %0" : : "m"(control));
}

/* The exception for subnormal operands, which <fenv.h> does not know. */
static void trap_subnormal(void) {
    uint32_t mxcsr;
    __asm__ volatile("stmxcsr %0" : "=m"(mxcsr));
    mxcsr &= ~0x100u;
    __asm__ volatile("ldmxcsr %0" : : "m"(mxcsr));
}
#elif defined(__aarch64__)
static void or_fpcr(uint64_t bits) {
    uint64_t fpcr;
    __asm__ volatile("mrs %0, fpcr" : "=r"(fpcr));
    __asm__ volatile("msr fpcr, %0" : : "r"(fpcr | bits));
}

static void flush(void) { or_fpcr(UINT64_C(1) << 24); }
static void flush_half(void) { or_fpcr(UINT64_C(1) << 19); }
static void default_nan(void) { or_fpcr(UINT64_C(1) << 25); }
#endif

static const struct way {
    const char *name;
    void (*set)(void);
} ways[] = {
    {"default", nothing},
    {"upward", upward},
    {"downward", downward},
    {"toward zero", to_zero},
    {"all traps", trap},
#if defined(__SSE__)
    {"flush to zero", flush},
    {"subnormals are zero", read_as_zero},
    {"flush and zero", both},
    {"x87 with 24 bits", less_precision},
    {"trap of subnormals", trap_subnormal},
#elif defined(__aarch64__)
    {"flush to zero", flush},     {"flush to zero in halves", flush_half},
    {"default NaN", default_nan},
#endif
};

enum { WAYS = sizeof ways / sizeof *ways };

/* ---------------------------------------------------------------- what is computed */

/* When the state is set. */
typedef enum moment { BEFORE_ALL, AFTER_OPEN, IN_CALLBACKS } moment;

typedef struct results {
    char data[65], arrays[65], model[65];
    char loaded[65], layer[64];
    double loss, valid_loss;
    uint64_t predicted, written;
    uint32_t mapped[4 * MAPPED];
} results;

typedef struct job {
    const struct way *way;
    moment when;
    results *got;
} job;

/* Runs one call in the state of the caller and asks that it leaves the state as it was. */
#define CALL(j, call)                                                                              \
    do {                                                                                           \
        qn_error err_ = {0};                                                                       \
        qn_error *const err = &err_;                                                               \
        (j)->way->set();                                                                           \
        if ((j)->way->set != trap) {                                                               \
            feclearexcept(FE_ALL_EXCEPT);                                                          \
            feraiseexcept(FLAGS);                                                                  \
        }                                                                                          \
        const seen before_ = look();                                                               \
        const qn_status status_ = (call);                                                          \
        const seen after_ = look();                                                                \
        fesetenv(FE_DFL_ENV);                                                                      \
        if (status_ != QN_OK)                                                                      \
            fail_msg("%s: " #call ": %s", (j)->way->name, err->what);                              \
        if (memcmp(&before_, &after_, sizeof before_) != 0)                                        \
            fail_msg("%s: " #call " left the state %llx %llx as %llx %llx", (j)->way->name,        \
                     (unsigned long long)before_.word[0], (unsigned long long)before_.word[1],     \
                     (unsigned long long)after_.word[0], (unsigned long long)after_.word[1]);      \
    } while (0)

/* Decimals that lie beside the middle between two floats, subnormal numbers, both zeros. */
static void write_input(void) {
    static const char *const hard[] = {
        "1.00000005960464477539062500000001", "1.000000059604644775390625",
        "0.100000001490116119384765625001",   "8388608.500000000000000000000001",
        "0.33333334326744079589843749999999", "3.00000011920928955078125",
    };
    static const char *const sizes[] = {"1e-40", "2.5e-38", "3e-39", "1.4e-45", "7.1e-38"};
    FILE *file = fopen(path_in, "w");
    assert_non_null(file);
    for (int i = 0; i < ITEMS; ++i)
        fprintf(file, "%d,%s,%s,%d.%d,%s,0.%d,%d.3e-20\n", i * 7 % 3, hard[i * 5 % 6],
                sizes[i * 3 % 5], i % 9, i * 37 % 101, i % 4 ? "-0" : "1", i * 71 % 997, i % 11);
    assert_int_equal(fclose(file), 0);
}

static uint64_t file_sum(const char *path) {
    uint64_t h = 0xcbf29ce484222325u;
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    for (int c; (c = fgetc(file)) != EOF;)
        h = (h ^ (uint64_t)c) * 0x100000001b3u;
    fclose(file);
    return h;
}

static void set_state(const job *j) {
    if (j->when == IN_CALLBACKS)
        j->way->set();
}

static void on_step(void *user, const qn_step_event *event) {
    (void)event;
    set_state(user);
}

static void on_epoch(void *user, const qn_epoch_event *event) {
    (void)event;
    set_state(user);
}

static void on_note(void *user, const char *text) {
    (void)text;
    set_state(user);
}

static void train(const job *j, const qn_data *data, qn_model **model) {
    static const struct way plain = {"default", nothing};
    job open = *j, run = *j;
    if (j->when != BEFORE_ALL)
        open.way = &plain;
    if (j->when == IN_CALLBACKS)
        run.way = &plain;
    qn_train_options o;
    qn_train_options_init(&o);
    o.model = "dense 19 tanh dropout 0.25; dense 7 sigmoid; dense 3 softmax";
    o.optimizer = "adam";
    o.schedule = "cosine";
    o.scale = "standard";
    o.learning_rate = 0.01f;
    o.epsilon = 1e-30f;
    o.gradient_scale = 52;
    o.warmup = 3;
    o.valid_fraction = 0.25f;
    o.batch = 20;
    o.grain = 8;
    o.epochs = 3;
    o.compute.threads = 2;
    o.compute.devices = "cpu";
    o.user = (void *)(uintptr_t)j;
    o.on_step = on_step;
    o.on_epoch = on_epoch;
    o.on_note = on_note;
    qn_train *t = NULL;
    qn_train_report report = {.size = sizeof report};
    CALL(&open, qn_train_open(&o, data, NULL, NULL, &t, err));
    CALL(&run, qn_train_run(t, err));
    CALL(&run, qn_train_report_get(t, &report, err));
    CALL(&run, qn_train_model(t, model, err));
    CALL(&run, (qn_train_close(t), QN_OK));
    j->got->loss = report.train.loss;
    j->got->valid_loss = report.valid.loss;
    strcpy(j->got->model, qn_model_digest(*model));
}

static void use(const job *j, const qn_data *data, qn_model *model) {
    const qn_compute compute = {.size = sizeof(qn_compute), .threads = 2, .devices = "cpu"};
    qn_model *again = NULL;
    CALL(j, qn_model_save(model, path_out, err));
    CALL(j, qn_model_load(path_out, &again, err));
    strcpy(j->got->loaded, qn_model_digest(again));
    CALL(j, (qn_model_layer_text(again, 0, j->got->layer, sizeof j->got->layer), QN_OK));
    CALL(j, qn_predict_csv(again, data, &compute, path_out, 1, NULL, err));
    j->got->predicted = file_sum(path_out);
    CALL(j, qn_data_write_csv(data, path_out, err));
    j->got->written = file_sum(path_out);
    qn_model_free(again);
}

static void apply_maps(const job *j) {
    const qn__maps *const maps = &qn__maps_scalar;
    qn__map_function *const map[4] = {maps->exp, maps->log, maps->tanh, maps->sigmoid};
    static float x[MAPPED], y[MAPPED];
    for (uint32_t i = 0; i < MAPPED; ++i) {
        const uint32_t bits = i * 4286577u;
        memcpy(&x[i], &bits, sizeof bits);
    }
    for (int f = 0; f < 4; ++f) {
        CALL(j, (map[f](MAPPED, x, y), QN_OK));
        for (uint32_t i = 0; i < MAPPED; ++i) {
            uint32_t bits;
            memcpy(&bits, &y[i], sizeof bits);
            j->got->mapped[f * MAPPED + (int)i] = (bits & 0x7fffffffu) > 0x7f800000u ? 0 : bits;
        }
    }
}

/* Everything, with the state of `way` set at `when`. */
static void compute(const struct way *way, moment when, results *got) {
    static const float values[] = {0x1p-149f, -0.0f, 0x1.8p-127f, 0x1p-126f, 1, 3};
    const job j = {way, when, got};
    qn_data_options o;
    qn_data *data = NULL, *arrays = NULL;
    qn_model *model = NULL;
    memset(got, 0, sizeof *got);
    qn_data_options_init(&o);
    o.threads = 2;
    CALL(&j, qn_data_open(path_in, &o, &data, err));
    CALL(&j, qn_data_from_arrays(QN_F32, 2, 3, values, NULL, &arrays, err));
    strcpy(got->data, qn_data_digest(data));
    strcpy(got->arrays, qn_data_digest(arrays));
    train(&j, data, &model);
    use(&j, data, model);
    apply_maps(&j);
    qn_model_free(model);
    qn_data_close(data);
    qn_data_close(arrays);
}

static void same(const results *want, const results *got) {
    assert_string_equal(want->data, got->data);
    assert_string_equal(want->arrays, got->arrays);
    assert_string_equal(want->model, got->model);
    assert_string_equal(want->loaded, got->loaded);
    assert_string_equal(want->layer, got->layer);
    assert_memory_equal(&want->loss, &got->loss, sizeof got->loss);
    assert_memory_equal(&want->valid_loss, &got->valid_loss, sizeof got->valid_loss);
    assert_int_equal(want->predicted, got->predicted);
    assert_int_equal(want->written, got->written);
    assert_memory_equal(want->mapped, got->mapped, sizeof got->mapped);
}

static void compare(moment when) {
    static results want, got;
    compute(&ways[0], BEFORE_ALL, &want);
    for (int i = 0; i < WAYS; ++i) {
        print_message("    %s\n", ways[i].name);
        compute(&ways[i], when, &got);
        same(&want, &got);
    }
}

static void test_set_before_all(void **state) {
    (void)state;
    compare(BEFORE_ALL);
}

static void test_set_after_open(void **state) {
    (void)state;
    compare(AFTER_OPEN);
}

static void test_set_in_callbacks(void **state) {
    (void)state;
    compare(IN_CALLBACKS);
}

/* What trains nothing: plans, advice, devices, digits. */
static void test_other_calls_keep_the_state(void **state) {
    (void)state;
    for (int i = 0; i < WAYS; ++i) {
        const job j = {&ways[i], BEFORE_ALL, NULL};
        qn_data *digits = NULL;
        qn_device_info info = {.size = sizeof(qn_device_info)};
        qn_train_options o;
        qn_advice advice[8] = {{.size = sizeof *advice}};
        uint32_t count = 0;
        double rate = 0;
        qn_train_options_init(&o);
        o.model = "dense 5 tanh; dense 3 softmax";
        o.compute.threads = 1;
        o.compute.devices = "cpu";
        CALL(&j, qn_data_synth_digits(1, 0, 10, &digits, err));
        CALL(&j, (qn_device_count(), QN_OK));
        CALL(&j, qn_device_get(0, &info, err));
        CALL(&j, qn_compute_check(&o.compute, err));
        CALL(&j, qn_advise(&o, 4, 0.01, advice, 8, &count, &rate, err));
        qn_data_close(digits);
    }
}

/* ---------------------------------------------------------------- kernels */

static const char kernel_text[] =
    "INDEX(i); INPUT(double, x); SCALAR(double, c, 4.9406564584124654e-324); SCALAR(float, f);\n"
    "RANDOM; ITERATION(t); OUTPUT(double, y); NEXT(y, x); OUTPUT(float, z); OUTPUT(int32_t, n);\n"
    "SCAN(double, before); SUM(double, all); SUM(float, some, 3); MIN(float, least);\n"
    "KERNEL {\n"
    "    y = x * 0.3 + c * t; z = (float)(x * 0x1p1000) * f; n = (int)(rint(x * 0x1p1020) + "
    "exp(x));\n"
    "    before = x / 7 + normal(0); all = x * 1e-5; some[i % 3] = f * (float)i; least = (float)x "
    "+ f;\n"
    "}\n";

enum { KERNEL_ITEMS = 3000, KERNEL_RESULTS = 2 };

typedef struct kernel_results {
    double y[KERNEL_ITEMS], before[KERNEL_ITEMS];
    float z[KERNEL_ITEMS], some[3];
    int32_t n[KERNEL_ITEMS];
    char value[KERNEL_RESULTS][40];
    uint64_t recipe;
} kernel_results;

static void on_kernel_progress(void *user, const qn_kernel_progress *progress) {
    (void)progress;
    set_state(user);
}

static void run_kernel(const struct way *way, moment when, kernel_results *got) {
    static const struct way plain = {"default", nothing};
    static const char *const names[KERNEL_RESULTS] = {"all", "least"};
    static double x[KERNEL_ITEMS];
    const job caller = {way, when, NULL};
    const job j = {when == IN_CALLBACKS ? &plain : way, when, NULL};
    const uint64_t items[1] = {KERNEL_ITEMS}, bins[1] = {3};
    qn_kernel *k = NULL;
    qn_kernel_options o;
    for (int i = 0; i < KERNEL_ITEMS; i++)
        x[i] = (i % 2 ? 0x1.3p-1031 : 0x1.7p-1022) * (i - 1000);
    memset(got, 0, sizeof *got);
    CALL(&j, qn_kernel_read(kernel_text, "k.c", &k, err));
    CALL(&j, qn_kernel_set(k, "f", "1.00000005960464477539062500000001e-38", err));
    CALL(&j, qn_kernel_bind(k, "x", x, items, 1, err));
    CALL(&j, qn_kernel_bind(k, "y", got->y, items, 1, err));
    CALL(&j, qn_kernel_bind(k, "z", got->z, items, 1, err));
    CALL(&j, qn_kernel_bind(k, "n", got->n, items, 1, err));
    CALL(&j, qn_kernel_bind(k, "before", got->before, items, 1, err));
    CALL(&j, qn_kernel_bind(k, "some", got->some, bins, 1, err));
    qn_kernel_options_init(&o);
    o.threads = 2;
    o.grain = 100;
    o.devices = "cpu";
    o.iterations = 3;
    o.recipe = path_out;
    o.user = (void *)(uintptr_t)&caller;
    o.on_note = on_note;
    o.on_progress = on_kernel_progress;
    CALL(&j, qn_kernel_run(k, &o, err));
    for (int i = 0; i < KERNEL_RESULTS; i++) {
        qn_kernel_result r = {.size = sizeof r};
        CALL(&j, qn_kernel_result_get(k, names[i], &r, err));
        snprintf(got->value[i], sizeof got->value[i], "%s", r.value);
    }
    got->recipe = file_sum(path_out);
    CALL(&j, (qn_kernel_free(k), QN_OK));
}

static int has_compiler(void) {
    const uint64_t one[1] = {1};
    qn_kernel *k = NULL;
    assert_int_equal(qn_kernel_read("INDEX(i); COUNT(n); KERNEL { n = 1; }", "k.c", &k, NULL),
                     QN_OK);
    assert_int_equal(qn_kernel_set_shape(k, one, 1, NULL), QN_OK);
    const qn_status status = qn_kernel_run(k, NULL, NULL);
    qn_kernel_free(k);
    return status != QN_UNSUPPORTED;
}

static void test_kernels(void **state) {
    static kernel_results want, got;
    (void)state;
    if (!has_compiler())
        skip();
    run_kernel(&ways[0], BEFORE_ALL, &want);
    for (int i = 0; i < WAYS; ++i)
        for (int m = 0; m < 2; ++m) {
            run_kernel(&ways[i], m ? IN_CALLBACKS : BEFORE_ALL, &got);
            assert_memory_equal(want.y, got.y, sizeof got.y);
            assert_memory_equal(want.z, got.z, sizeof got.z);
            assert_memory_equal(want.n, got.n, sizeof got.n);
            assert_memory_equal(want.before, got.before, sizeof got.before);
            assert_memory_equal(want.some, got.some, sizeof got.some);
            assert_string_equal(want.value[0], got.value[0]);
            assert_string_equal(want.value[1], got.value[1]);
            assert_int_equal(want.recipe, got.recipe);
        }
}

static int set_up(void **state) {
    (void)state;
    if (!mkdtemp(folder))
        return -1;
    snprintf(path_in, sizeof path_in, "%s/in.csv", folder);
    snprintf(path_out, sizeof path_out, "%s/out", folder);
    write_input();
    return 0;
}

static int tear_down(void **state) {
    (void)state;
    unlink(path_in);
    unlink(path_out);
    return rmdir(folder);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_set_before_all),   cmocka_unit_test(test_set_after_open),
        cmocka_unit_test(test_set_in_callbacks), cmocka_unit_test(test_other_calls_keep_the_state),
        cmocka_unit_test(test_kernels),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
