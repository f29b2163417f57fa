/* The driver of the CUDA backend, call by call, over the fake libraries of tests/emulated_gpu:
 * copies longer than the staging buffers while the device is late, recordings, slots, time limits,
 * devices that come back after a failure, one thread after another. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/system/clock.h"
#include "device/cuda/cuda_gpu.h"
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const qn__gpu_driver *const driver = &qn__cuda_gpu_driver;
static void (*set_plan)(const char *text);
static void *the_library;
static qn_error err;

/* The libraries are found by their names from here on, because they are already there. */
static void *load_fake(const char *name) {
    char path[1024], full[1200];
    const ssize_t size = readlink("/proc/self/exe", path, sizeof path - 1);
    if (size <= 0)
        return NULL;
    path[size] = '\0';
    *strrchr(path, '/') = '\0';
    snprintf(full, sizeof full, "%s/../fake_gpu/%s", path, name);
    return dlopen(full, RTLD_NOW | RTLD_GLOBAL);
}

static int begin(void **state) {
    (void)state;
    void *cuda = load_fake("libcuda.so.1");
    if (!cuda || !load_fake("libnvrtc.so.13") || !load_fake("libnvidia-ml.so.1")) {
        print_message("the fake GPU was not built: %s\n", dlerror());
        return -1;
    }
    void *found = dlsym(cuda, "qn_fake_cuda_plan");
    memcpy(&set_plan, &found, sizeof found);
    the_library = cuda;
    setenv("QUERN_CACHE", "/proc/self/none", 1); /* no cache */
    set_plan("devices=5,late=1");
    return qn__cuda_count() == 5 ? 0 : -1;
}

static qn__gpu *open_device(uint32_t index, double limit) {
    const qn_compute compute = {.size = sizeof(qn_compute), .device_timeout = limit};
    qn__gpu *gpu = NULL;
    if (driver->open(index, QN_WITH_F32, &compute, &gpu, &err) != QN_OK)
        fail_msg("%s", err.what);
    assert_non_null(gpu);
    return gpu;
}

static void fill(uint8_t *bytes, size_t count, uint32_t seed) {
    for (size_t i = 0; i < count; ++i) {
        seed = seed * 1664525u + 1013904223u;
        bytes[i] = (uint8_t)(seed >> 24);
    }
}

static qn_status good(qn_status status) {
    if (status != QN_OK)
        fail_msg("%s", err.what);
    return status;
}

/* Many writes of all sizes, each from memory that changes as soon as the call is back, and reads of
 * all sizes: what comes back is what went up. */
static void test_copies(void **state) {
    (void)state;
    enum { SIZE = 7 << 20 };
    static const size_t sizes[] = {1, 63, 64, 65, 4096, 2 << 20, (2 << 20) + 1, 5000001, 8, 1000};
    qn__gpu *gpu = open_device(0, 0);
    uint8_t *model = calloc(SIZE, 1), *piece = malloc(SIZE), *got = malloc(SIZE);
    qn__gpu_memory memory;
    qn__traffic before, after;
    assert_true(model && piece && got);
    good(driver->allocate(gpu, SIZE, &memory, &err));
    driver->traffic(gpu, &before);
    good(driver->clear(gpu, &memory, 0, SIZE, &err));
    uint64_t sent = 0, at = 0;
    for (uint32_t round = 0; round < 60; ++round) {
        const size_t bytes = sizes[round % 10];
        at = (at * 31 + 7919 * round) % (SIZE - bytes + 1);
        fill(piece, bytes, round);
        memcpy(model + at, piece, bytes);
        good(driver->write(gpu, &memory, at, piece, bytes, &err));
        memset(piece, 0xee, bytes);
        sent += bytes;
        if (round % 7 == 3) {
            good(driver->clear(gpu, &memory, at + bytes / 2, bytes / 2, &err));
            memset(model + at + bytes / 2, 0, bytes / 2);
        }
        if (round % 5 == 4) {
            good(qn__gpu_read(driver, gpu, &memory, at, got, bytes, &err));
            assert_memory_equal(got, model + at, bytes);
        }
    }
    good(qn__gpu_read(driver, gpu, &memory, 0, got, SIZE, &err));
    assert_memory_equal(got, model, SIZE);
    driver->traffic(gpu, &after);
    assert_int_equal(after.bytes_up - before.bytes_up, sent);
    assert_true(after.bytes_down > SIZE && after.seconds_up > 0 && driver->busy(gpu) > 0);
    driver->release(gpu, &memory);
    driver->release(gpu, &memory); /* without bytes now */
    driver->close(gpu);
    free(model);
    free(piece);
    free(got);
}

/* out[i] = sqrt(in[i]) for `count` floats. */
static void launch_roots(qn__gpu *gpu, const qn__gpu_memory *in, const qn__gpu_memory *out,
                         uint64_t count) {
    const uint32_t groups[3] = {2, 1, 1};
    const qn__gpu_argument arguments[] = {{'M', {.memory = in}},
                                          {'M', {.memory = out}},
                                          {'U', {.U = count}},
                                          {'u', {.u = QN_MAP_SQRT}}};
    good(driver->launch(gpu, QN__K_MAP, groups, arguments, 4, &err));
}

/* A recording does nothing until it is repeated, and can be made anew under its number. */
static void test_recordings_and_slots(void **state) {
    (void)state;
    enum { COUNT = 64 };
    qn__gpu *gpu = open_device(1, 0);
    qn__gpu_memory in, out;
    float x[COUNT], want;
    const void *words;
    good(driver->allocate(gpu, sizeof x, &in, &err));
    good(driver->allocate(gpu, sizeof x, &out, &err));
    for (uint32_t transpose = 0; transpose < 2; ++transpose) {
        good(driver->clear(gpu, &out, 0, sizeof x, &err));
        good(driver->record(gpu, 15, &err));
        good(driver->clear(gpu, &out, sizeof x / 2, sizeof x / 2, &err));
        launch_roots(gpu, &in, &out, transpose ? COUNT / 2 : COUNT);
        good(driver->recorded(gpu, 15, &err));
        good(qn__gpu_read(driver, gpu, &out, 0, x, sizeof x, &err));
        for (int i = 0; i < COUNT; ++i)
            assert_true(x[i] == 0.0f);
        for (uint32_t slot = 0; slot < QN__GPU_SLOTS; ++slot) {
            for (uint32_t i = 0; i < COUNT; ++i)
                x[i] = (float)((slot + 1) * (slot + 1) * (i + 1) * (i + 1));
            good(driver->write(gpu, &in, 0, x, sizeof x, &err));
            good(driver->replay(gpu, 15, &err));
            good(driver->post(gpu, &out, sizeof x, slot, &err));
        }
        for (uint32_t slot = QN__GPU_SLOTS; slot-- > 0;) {
            good(driver->fetch(gpu, slot, &words, &err));
            memcpy(x, words, sizeof x);
            for (uint32_t i = 0; i < COUNT; ++i) {
                want = transpose && i >= COUNT / 2 ? 0.0f : (float)((slot + 1) * (i + 1));
                assert_true(x[i] == want);
            }
        }
    }
    driver->release(gpu, &in);
    driver->release(gpu, &out);
    driver->close(gpu);
}

/* A copy on one lane keeps its place in the staging memory while copies on another one need all of
 * it, and a lane that follows another sees what it has copied. */
static void test_lanes(void **state) {
    (void)state;
    enum { SMALL = 1000, LARGE = 3 * QN__CUDA_STAGE / 2 };
    qn__gpu *gpu = open_device(0, 0);
    qn__gpu_memory small, large;
    uint8_t *bytes = malloc(LARGE), first[SMALL];
    good(driver->allocate(gpu, SMALL, &small, &err));
    good(driver->allocate(gpu, LARGE, &large, &err));
    for (int round = 1; round <= 6; ++round) {
        const void *data;
        size_t got;
        set_plan(round & 1 ? "devices=5,late=1" : "devices=5,late=1,order=3");
        memset(first, round, sizeof first);
        good(driver->lane(gpu, QN__GPU_WORK, &err));
        good(driver->write(gpu, &small, 0, first, SMALL, &err));
        good(driver->lane(gpu, QN__GPU_UP, &err));
        for (int i = 1; i <= 4; ++i) {
            memset(bytes, 16 * round + i, LARGE);
            good(driver->write(gpu, &large, 0, bytes, LARGE, &err));
        }
        good(driver->lane(gpu, QN__GPU_DOWN, &err));
        good(driver->follow(gpu, QN__GPU_UP, &err));
        good(driver->ask(gpu, &large, LARGE - SMALL, SMALL, &err));
        good(driver->follow(gpu, QN__GPU_WORK, &err));
        good(driver->ask(gpu, &small, 0, SMALL, &err));
        good(driver->get(gpu, &data, &got, &err));
        assert_int_equal(got, SMALL);
        assert_memory_equal(data, bytes, SMALL);
        good(driver->get(gpu, &data, &got, &err));
        assert_memory_equal(data, first, SMALL);
    }
    set_plan("devices=5,late=1");
    driver->release(gpu, &small);
    driver->release(gpu, &large);
    driver->close(gpu);
    free(bytes);
}

static void test_out_of_memory_is_no_failure(void **state) {
    (void)state;
    qn__gpu *gpu = open_device(0, 0);
    qn__gpu_memory memory;
    uint32_t word = 5, got = 0;
    assert_int_equal(driver->allocate(gpu, (size_t)1 << 40, &memory, &err), QN_DEVICE);
    assert_non_null(strstr(err.what, "out of memory: 1.04858e+06 MiB were asked for"));
    assert_null(memory.handle);
    good(driver->allocate(gpu, sizeof word, &memory, &err));
    good(driver->write(gpu, &memory, 0, &word, sizeof word, &err));
    good(qn__gpu_read(driver, gpu, &memory, 0, &got, sizeof got, &err));
    assert_int_equal(got, word);
    driver->release(gpu, &memory);
    driver->close(gpu);
}

/* The first failure is told by every later call; closed and opened again, the device works. */
static void test_a_failed_device_comes_back(void **state) {
    (void)state;
    qn__gpu *gpu = open_device(2, 0);
    qn__gpu_memory memory, more;
    uint8_t bytes[256] = {0};
    char first[sizeof err.what];
    good(driver->allocate(gpu, sizeof bytes, &memory, &err));
    good(driver->write(gpu, &memory, 0, bytes, sizeof bytes, &err));
    set_plan("devices=5,late=1,on=2,launch=1");
    launch_roots(gpu, &memory, &memory, 64);
    assert_int_equal(qn__gpu_read(driver, gpu, &memory, 0, bytes, sizeof bytes, &err), QN_DEVICE);
    assert_non_null(strstr(err.what, "cuda:2 (Emulated GPU 2) failed at"));
    assert_non_null(strstr(err.what, "CUDA_ERROR_ILLEGAL_ADDRESS"));
    assert_non_null(strstr(err.what, "the fault lies in work begun before"));
    assert_true(err.remedy[0] != '\0');
    memcpy(first, err.what, sizeof first);
    set_plan("devices=5,late=1");
    assert_int_equal(driver->write(gpu, &memory, 0, bytes, 1, &err), QN_DEVICE);
    assert_string_equal(err.what, first);
    assert_int_equal(driver->allocate(gpu, 64, &more, &err), QN_DEVICE);
    assert_int_equal(driver->record(gpu, 0, &err), QN_DEVICE);
    assert_int_equal(driver->replay(gpu, 0, &err), QN_DEVICE);
    assert_int_equal(driver->flush(gpu, &err), QN_DEVICE);
    assert_string_equal(err.what, first);
    driver->release(gpu, &memory);
    driver->close(gpu);
    test_out_of_memory_is_no_failure(NULL);
    driver->close(open_device(2, 0));
}

/* A recording under way when the device fails is closed with it. */
static void test_failure_while_recording(void **state) {
    (void)state;
    qn__gpu *gpu = open_device(2, 0);
    qn__gpu_memory memory;
    uint8_t byte;
    good(driver->allocate(gpu, 64, &memory, &err));
    set_plan("devices=5,late=1,on=2,launch=1");
    launch_roots(gpu, &memory, &memory, 16);
    good(driver->record(gpu, 3, &err));
    launch_roots(gpu, &memory, &memory, 16);
    assert_int_equal(qn__gpu_read(driver, gpu, &memory, 0, &byte, 1, &err), QN_DEVICE);
    driver->release(gpu, &memory);
    driver->close(gpu);
    set_plan("devices=5,late=1");
    driver->close(open_device(2, 0));
}

/* A part of the program that uses CUDA by itself, in the primary context. */
typedef struct other_user {
    qn__cu_result (*retain)(qn__cu_context **context, qn__cu_device device);
    qn__cu_result (*release)(qn__cu_device device);
    qn__cu_result (*enter)(qn__cu_context *context);
    qn__cu_result (*allocate)(qn__cu_address *address, size_t bytes);
    qn__cu_result (*free)(qn__cu_address address);
    qn__cu_context *context;
    qn__cu_address memory;
} other_user;

static void find(const char *name, void *function) {
    void *found = dlsym(the_library, name);
    assert_non_null(found);
    memcpy(function, &found, sizeof found);
}

static void other_begins(other_user *u, qn__cu_device device) {
    find("cuDevicePrimaryCtxRetain", &u->retain);
    find("cuDevicePrimaryCtxRelease_v2", &u->release);
    find("cuCtxSetCurrent", &u->enter);
    find("cuMemAlloc_v2", &u->allocate);
    find("cuMemFree_v2", &u->free);
    assert_int_equal(u->retain(&u->context, device), QN__CU_SUCCESS);
    assert_int_equal(u->enter(u->context), QN__CU_SUCCESS);
    assert_int_equal(u->allocate(&u->memory, 100), QN__CU_SUCCESS);
}

static void other_ends(other_user *u, qn__cu_device device) {
    assert_int_equal(u->enter(u->context), QN__CU_SUCCESS);
    assert_int_equal(u->free(u->memory), QN__CU_SUCCESS);
    assert_int_equal(u->enter(NULL), QN__CU_SUCCESS);
    assert_int_equal(u->release(device), QN__CU_SUCCESS);
}

static void check_way(uint32_t index, const char *isa, const char *integers) {
    const qn_compute compute = {.size = sizeof(qn_compute), .gpu_isa = isa};
    qn__gpu *gpu = NULL;
    good(driver->open(index, QN_WITH_I7, &compute, &gpu, &err));
    assert_string_equal(driver->facts(gpu)->integers, integers);
    driver->close(gpu);
}

/* Kernels that fail in their self-test leave those alone who have something in the primary context,
 * and are not tried again; what is barred is forgotten with the opening. */
static void test_kernels_that_fail(void **state) {
    (void)state;
    other_user user = {0};
    char note[400];
    while (qn_device_note(note, sizeof note))
        continue;
    set_plan("devices=5,late=1,dots_fault=700");
    check_way(4, "plain", "plain");
    other_begins(&user, qn__cuda_device_get(4)->device);
    check_way(4, NULL, "plain");
    other_ends(&user, qn__cuda_device_get(4)->device);
    assert_true(qn_device_note(note, sizeof note));
    assert_non_null(
        strstr(note, "cuda:4 (Emulated GPU 4) goes on without matrix instructions for"));
    assert_true(qn_device_note(note, sizeof note));
    assert_non_null(strstr(note, "cuda:4 (Emulated GPU 4) goes on without dp4a for integers: "));
    set_plan("devices=5,late=1");
    check_way(4, NULL, "plain");
    check_way(3, "dp4a", "dp4a");
    check_way(3, NULL, "mma.sync");
    assert_false(qn_device_note(note, sizeof note));
}

static void check_silence(double begun, qn_status status) {
    assert_int_equal(status, QN_DEVICE);
    assert_non_null(strstr(err.what, "did not end its work within 1 s and is given up"));
    assert_true(qn__now() - begun >= 1);
}

/* A device that hangs is given up after the limit, and nothing waits for it twice. The last of the
 * tests that use device 1, which stays lost to the process. */
static void test_a_device_that_hangs(void **state) {
    (void)state;
    qn__gpu *gpu = open_device(1, 1);
    qn__gpu_memory memory;
    uint8_t bytes[64] = {0};
    const void *words;
    good(driver->allocate(gpu, sizeof bytes, &memory, &err));
    good(driver->write(gpu, &memory, 0, bytes, sizeof bytes, &err));
    set_plan("devices=5,late=1,on=1,hang=1");
    const double begun = qn__now();
    launch_roots(gpu, &memory, &memory, 16);
    good(driver->post(gpu, &memory, sizeof bytes, 0, &err));
    check_silence(begun, driver->fetch(gpu, 0, &words, &err));
    const double abandoned = qn__now();
    check_silence(begun, qn__gpu_read(driver, gpu, &memory, 0, bytes, 1, &err));
    driver->release(gpu, &memory);
    driver->close(gpu);
    assert_true(qn__now() - abandoned < 1);
    set_plan("devices=5,late=1");
}

typedef struct passage {
    uint32_t index;
    qn__gpu *gpu;
    qn__gpu_memory memory;
    uint32_t word;
} passage;

static void *second_thread(void *context) {
    passage *p = context;
    uint32_t got = 0;
    if (qn__gpu_read(driver, p->gpu, &p->memory, 0, &got, sizeof got, NULL) != QN_OK ||
        got != p->word)
        return p;
    ++p->word;
    if (driver->write(p->gpu, &p->memory, 0, &p->word, sizeof p->word, NULL) != QN_OK)
        return p;
    return NULL;
}

/* Devices go from thread to thread, each thread with the context that the call needs. */
static void test_one_thread_after_another(void **state) {
    (void)state;
    passage p[2] = {{.index = 0, .word = 17}, {.index = 2, .word = 99}};
    pthread_t thread[2];
    uint32_t got;
    for (int i = 0; i < 2; ++i) {
        p[i].gpu = open_device(p[i].index, 0);
        good(driver->allocate(p[i].gpu, sizeof got, &p[i].memory, &err));
        good(driver->write(p[i].gpu, &p[i].memory, 0, &p[i].word, sizeof got, &err));
    }
    for (int i = 0; i < 2; ++i)
        assert_int_equal(pthread_create(&thread[i], NULL, second_thread, &p[i]), 0);
    for (int i = 0; i < 2; ++i) {
        void *failed;
        pthread_join(thread[i], &failed);
        assert_null(failed);
    }
    for (int i = 0; i < 2; ++i) {
        good(qn__gpu_read(driver, p[i].gpu, &p[i].memory, 0, &got, sizeof got, &err));
        assert_int_equal(got, i ? 100 : 18);
        driver->release(p[i].gpu, &p[i].memory);
        driver->close(p[i].gpu);
    }
}

static void test_grids_that_no_device_takes(void **state) {
    (void)state;
    qn__gpu *gpu = open_device(0, 0);
    qn__gpu_memory memory;
    const uint32_t none[3] = {0, 1, 1}, tall[3] = {1, 65536, 1};
    good(driver->allocate(gpu, 64, &memory, &err));
    const qn__gpu_argument arguments[] = {
        {'M', {.memory = &memory}}, {'M', {.memory = &memory}}, {'U', {.U = 16}}, {'u', {.u = 0}}};
    good(driver->launch(gpu, QN__K_MAP, none, arguments, 4, &err)); /* nothing to do */
    assert_int_equal(driver->launch(gpu, QN__K_MAP, tall, arguments, 4, &err), QN_DEVICE);
    assert_non_null(strstr(err.what, "qn_map over 1 x 65536 x 1 groups"));
    driver->release(gpu, &memory);
    driver->close(gpu);
}

static void test_energy(void **state) {
    (void)state;
    double first, second;
    assert_int_equal(qn__cuda_energy(0, &first), 1);
    while (qn__cuda_energy(0, &second) && second <= first)
        continue;
    assert_true(second - first < 1000);
    assert_int_equal(qn__cuda_energy(7, &first), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_copies),
        cmocka_unit_test(test_recordings_and_slots),
        cmocka_unit_test(test_lanes),
        cmocka_unit_test(test_out_of_memory_is_no_failure),
        cmocka_unit_test(test_a_failed_device_comes_back),
        cmocka_unit_test(test_failure_while_recording),
        cmocka_unit_test(test_one_thread_after_another),
        cmocka_unit_test(test_kernels_that_fail),
        cmocka_unit_test(test_grids_that_no_device_takes),
        cmocka_unit_test(test_energy),
        cmocka_unit_test(test_a_device_that_hangs),
    };
    return cmocka_run_group_tests(tests, begin, NULL);
}
