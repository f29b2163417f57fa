/* The functions of user kernels on every OpenCL device: the bits that the C build of the same text
 * gives. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/memory.h"
#include "device/opencl/opencl_list.h"
#include "kernels/runtime/function_samples_test.h"
#include "kernels/kernels.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ONE(name) ONE_##name,
#define TWO(name) TWO_##name,
enum { QN__FUNCTIONS_OF_ONE(ONE) QN__FUNCTIONS_OF_TWO(TWO) FUNCTIONS };
#undef ONE
#undef TWO

#define NAME(name) #name,
static const char *const names[] = {QN__FUNCTIONS_OF_ONE(NAME) QN__FUNCTIONS_OF_TWO(NAME)};

/* out[i] = function number `what` of x[i], or of x[i] and y[i]. */
#define ONE(name) "  if (what == at++) out[i] = F(" #name ")(x[i]);\n"
#define TWO(name) "  if (what == at++) out[i] = F(" #name ")(x[i], y[i]);\n"
#define BODY                                                                                       \
    "(__global const T *x, __global const T *y, __global T *out, uint what) {\n"                   \
    "  const size_t i = get_global_id(0);\n  uint at = 0;\n" QN__FUNCTIONS_OF_ONE(ONE)             \
        QN__FUNCTIONS_OF_TWO(TWO) "}\n"
static const char kernel_f32[] = "#define T float\n#define F(f) qn_f32_##f\n"
                                 "__kernel void run_f32" BODY;
static const char kernel_f64[] = "#undef T\n#undef F\n"
                                 "#define T double\n#define F(f) qn_f64_##f\n"
                                 "__kernel void run_f64" BODY;
#undef ONE
#undef TWO

static float of_f32(int what, float x, float y) {
    switch (what) {
#define ONE(name)                                                                                  \
    case ONE_##name:                                                                               \
        return qn__f32_##name(x);
#define TWO(name)                                                                                  \
    case TWO_##name:                                                                               \
        return qn__f32_##name(x, y);
        QN__FUNCTIONS_OF_ONE(ONE) QN__FUNCTIONS_OF_TWO(TWO)
#undef ONE
#undef TWO
    }
    return 0.0f;
}

static double of_f64(int what, double x, double y) {
    switch (what) {
#define ONE(name)                                                                                  \
    case ONE_##name:                                                                               \
        return qn__f64_##name(x);
#define TWO(name)                                                                                  \
    case TWO_##name:                                                                               \
        return qn__f64_##name(x, y);
        QN__FUNCTIONS_OF_ONE(ONE) QN__FUNCTIONS_OF_TWO(TWO)
#undef ONE
#undef TWO
    }
    return 0.0;
}

/* A device with its program and arrays. */
typedef struct bench {
    const qn__cl_api *cl;
    const qn__cl_entry *entry;
    qn__cl_context context;
    qn__cl_queue queue;
    qn__cl_program program;
    qn__cl_memory x, y, out;
    char log[4096];
} bench;

static int has_doubles(const bench *b) {
    size_t bytes = 0;
    b->cl->get_device_info(b->entry->device, QN__CL_DEVICE_EXTENSIONS, 0, NULL, &bytes);
    char *all = qn__alloc(bytes + 1, 1, NULL);
    assert_non_null(all);
    b->cl->get_device_info(b->entry->device, QN__CL_DEVICE_EXTENSIONS, bytes, all, NULL);
    all[bytes] = '\0';
    const int found = strstr(all, "cl_khr_fp64") != NULL;
    qn__free(all);
    return found;
}

static void build(bench *b, int doubles) {
    char options[160];
    int32_t code = 0;
    const char *texts[] = {qn__math_text(QN__OPENCL_C), kernel_f32, doubles ? kernel_f64 : ""};
    snprintf(options, sizeof options, "%s%s%s", qn__kernel_options(QN__OPENCL_C),
             b->entry->correct_divide
                 ? " -cl-fp32-correctly-rounded-divide-sqrt -DQN_CORRECT_DIVIDE=1"
                 : "",
             doubles ? " -DQN_DOUBLE=1" : "");
    b->program = b->cl->create_with_source(b->context, 3, texts, NULL, &code);
    assert_int_equal(code, QN__CL_SUCCESS);
    code = b->cl->build_program(b->program, 1, &b->entry->device, options, NULL, NULL);
    if (code != QN__CL_SUCCESS) {
        b->cl->get_build_info(b->program, b->entry->device, QN__CL_PROGRAM_BUILD_LOG,
                              sizeof b->log - 1, b->log, NULL);
        fail_msg("%s: %s: %s", b->entry->label, qn__cl_error_name(code), b->log);
    }
}

static void run(bench *b, qn__cl_kernel kernel, uint32_t what, size_t bytes, void *results) {
    const size_t count = QN__SAMPLES;
    b->cl->set_argument(kernel, 0, sizeof b->x, &b->x);
    b->cl->set_argument(kernel, 1, sizeof b->y, &b->y);
    b->cl->set_argument(kernel, 2, sizeof b->out, &b->out);
    b->cl->set_argument(kernel, 3, sizeof what, &what);
    assert_int_equal(b->cl->enqueue_kernel(b->queue, kernel, 1, NULL, &count, NULL, 0, NULL, NULL),
                     QN__CL_SUCCESS);
    assert_int_equal(
        b->cl->enqueue_read(b->queue, b->out, 1, 0, count * bytes, results, 0, NULL, NULL),
        QN__CL_SUCCESS);
}

static void send(bench *b, const void *x, const void *y, size_t bytes) {
    const size_t all = QN__SAMPLES * bytes;
    assert_int_equal(b->cl->enqueue_write(b->queue, b->x, 1, 0, all, x, 0, NULL, NULL), 0);
    assert_int_equal(b->cl->enqueue_write(b->queue, b->y, 1, 0, all, y, 0, NULL, NULL), 0);
}

static void check_f32(bench *b) {
    static float x[QN__SAMPLES], y[QN__SAMPLES], out[QN__SAMPLES];
    int32_t code = 0;
    qn__cl_kernel kernel = b->cl->create_kernel(b->program, "run_f32", &code);
    assert_int_equal(code, QN__CL_SUCCESS);
    for (uint32_t i = 0; i < QN__SAMPLES; i++) {
        x[i] = qn__sample_f32(i);
        y[i] = qn__sample_f32(3 * i + 1);
    }
    send(b, x, y, sizeof *x);
    for (int what = 0; what < FUNCTIONS; what++) {
        run(b, kernel, (uint32_t)what, sizeof *out, out);
        for (int i = 0; i < QN__SAMPLES; i++) {
            const uint32_t want = qn__bits_f32(of_f32(what, x[i], y[i]));
            if (qn__bits_f32(out[i]) != want)
                fail_msg("%s: %s of %a and %a in binary32 gives %08x, not %08x", b->entry->label,
                         names[what], (double)x[i], (double)y[i], qn__bits_f32(out[i]), want);
        }
    }
    b->cl->release_kernel(kernel);
}

static void check_f64(bench *b) {
    static double x[QN__SAMPLES], y[QN__SAMPLES], out[QN__SAMPLES];
    int32_t code = 0;
    qn__cl_kernel kernel = b->cl->create_kernel(b->program, "run_f64", &code);
    assert_int_equal(code, QN__CL_SUCCESS);
    for (uint32_t i = 0; i < QN__SAMPLES; i++) {
        x[i] = qn__sample_f64(i);
        y[i] = qn__sample_f64(3 * i + 1);
    }
    send(b, x, y, sizeof *x);
    for (int what = 0; what < FUNCTIONS; what++) {
        run(b, kernel, (uint32_t)what, sizeof *out, out);
        for (int i = 0; i < QN__SAMPLES; i++) {
            const uint64_t want = qn__bits_f64(of_f64(what, x[i], y[i]));
            if (qn__bits_f64(out[i]) != want)
                fail_msg("%s: %s of %a and %a in binary64 gives %016llx, not %016llx",
                         b->entry->label, names[what], x[i], y[i],
                         (unsigned long long)qn__bits_f64(out[i]), (unsigned long long)want);
        }
    }
    b->cl->release_kernel(kernel);
}

static void check_device(const qn__cl_entry *entry, const qn__cl_api *cl) {
    static bench b;
    const size_t capacity = QN__SAMPLES * sizeof(double);
    int32_t code = 0;
    b = (bench){.cl = cl, .entry = entry};
    b.context = cl->create_context(NULL, 1, &entry->device, NULL, NULL, &code);
    assert_int_equal(code, QN__CL_SUCCESS);
    b.queue = cl->create_queue(b.context, entry->device, 0, &code);
    assert_int_equal(code, QN__CL_SUCCESS);
    b.x = cl->create_buffer(b.context, QN__CL_MEM_READ_WRITE, capacity, NULL, &code);
    b.y = cl->create_buffer(b.context, QN__CL_MEM_READ_WRITE, capacity, NULL, &code);
    b.out = cl->create_buffer(b.context, QN__CL_MEM_READ_WRITE, capacity, NULL, &code);
    assert_int_equal(code, QN__CL_SUCCESS);
    const int doubles = has_doubles(&b);
    build(&b, doubles);
    check_f32(&b);
    if (doubles)
        check_f64(&b);
    print_message("%s: %s\n", entry->label, doubles ? "binary32, binary64" : "binary32");
    cl->release_program(b.program);
    cl->release_memory(b.x);
    cl->release_memory(b.y);
    cl->release_memory(b.out);
    cl->release_queue(b.queue);
    cl->release_context(b.context);
}

static void test_functions_of_every_device(void **state) {
    uint32_t checked = 0;
    (void)state;
    for (uint32_t i = 0; i < qn__cl_entries(); ++i) {
        const qn__cl_api *cl = NULL;
        const qn__cl_entry *entry = qn__cl_entry_at(i, &cl);
        if (entry->info.refused) {
            print_message("SKIPPED: %s is refused: %s\n", entry->label, entry->info.reason);
            continue;
        }
        check_device(entry, cl);
        ++checked;
    }
    if (checked == 0) {
        print_message("SKIPPED: %s\n", qn__cl_absence());
        skip();
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_functions_of_every_device)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
