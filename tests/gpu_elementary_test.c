/* The elementary functions on every OpenCL and CUDA device, by the digests of docs/exactness.md
 * 13.13: over one argument in 65521, or over all 2^32 with QN_TEST_ALL=1, which takes minutes. On a
 * device that is a CPU both its kernels are asked, the one for any device and the vectors'. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/system/clock.h"
#include "base/memory.h"
#include "device/cuda/cuda_gpu.h"
#include "device/gpu/gpu_call.h"
#include "device/opencl/opencl_table.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PIECE = 1 << 22, BLOCK = 1 << 16, STRIDE = 65521 };

static const struct function {
    const char *name;
    uint32_t op;
    uint64_t chain, digest; /* of the table in 13.13, of that in 13.12 */
} functions[] = {
    {"exp", QN_MAP_EXP, 0x9a7ac86623200b60u, 0x3e08e08a21746d08u},
    {"log", QN_MAP_LOG, 0xf5f5c2ae24dac282u, 0xcfc624c3ab5e0ae0u},
    {"tanh", QN_MAP_TANH, 0x042d7fc3732c6f3au, 0x35a87040e0df74bau},
    {"sigmoid", QN_MAP_SIGMOID, 0x8f26d74e385986dcu, 0x7915e23944b3b243u},
    /* 17.2 */
    {"gelu", QN_MAP_GELU, 0x587705adbb539f4cu, 0x38f92ccb4943a642u},
    {"gelu_slope", QN_MAP_GELU_SLOPE, 0x556de6d1f7caa378u, 0x275ebefd53907f0eu},
    {"silu", QN_MAP_SILU, 0xa50adea9ecda1110u, 0xbce332d436d12f87u},
    {"silu_slope", QN_MAP_SILU_SLOPE, 0xa13ae13e77340a9eu, 0xe90d8417f4b9d628u},
    /* 25.80 */
    {"gelu_tanh", QN_MAP_GELU_TANH, 0x4e3f8504ff2158efu, 0x579ccd65ac08d595u},
    {"gelu_tanh_slope", QN_MAP_GELU_TANH_SLOPE, 0x268386f8a21b9335u, 0x4e94ff28df19c35du},
};

static const struct kind {
    const char *name;
    const qn__gpu_driver *driver;
} kinds[] = {{"opencl", &qn__opencl_driver}, {"cuda", &qn__cuda_gpu_driver}};

/* A device with an array of arguments and one of results. */
typedef struct scratch_space {
    const qn__gpu_driver *driver;
    qn__gpu *gpu;
    qn__gpu_memory in, out;
    uint32_t *bits; /* PIECE of them, the arguments and then the results */
    qn_error err;
} scratch_space;

static void must(scratch_space *r, qn_status status) {
    if (status != QN_OK)
        fail_msg("%s", r->err.what);
}

/* 13.13: one more result of a chain. */
static uint64_t link(uint64_t h, uint32_t bits) {
    if ((bits & 0x7fffffffu) > 0x7f800000u)
        bits = 0x7fc00000u;
    h = (h ^ bits) * 0x100000001b3u;
    return h ^ (h >> 29);
}

/* r->bits[i] = op(r->bits[i]) for i < count. */
static void map(scratch_space *r, qn__kernel kernel, uint32_t op, uint32_t count) {
    uint32_t groups[3];
    qn__gpu_call call = {0};
    QN__PUSH_MEMORY(&call, &r->in, &r->out);
    QN__PUSH_WIDE(&call, count);
    QN__PUSH_NUMBERS(&call, op);
    qn__gpu_grid(kernel, count, groups);
    must(r, r->driver->write(r->gpu, &r->in, 0, r->bits, count * sizeof *r->bits, &r->err));
    must(r, r->driver->launch(r->gpu, kernel, groups, call.argument, call.count, &r->err));
    must(r, qn__gpu_read(r->driver, r->gpu, &r->out, 0, r->bits, count * sizeof *r->bits, &r->err));
}

static uint64_t chain_of_some(scratch_space *r, qn__kernel kernel, uint32_t op) {
    uint64_t h = 0xcbf29ce484222325u;
    uint32_t count = 0;
    for (uint64_t i = 0; i < (uint64_t)1 << 32; i += STRIDE)
        r->bits[count++] = (uint32_t)i;
    map(r, kernel, op, count);
    for (uint32_t i = 0; i < count; ++i)
        h = link(h, r->bits[i]);
    return h;
}

static uint64_t digest_of_all(scratch_space *r, qn__kernel kernel, uint32_t op) {
    uint64_t sum = 0;
    for (uint64_t first = 0; first < (uint64_t)1 << 32; first += PIECE) {
        for (uint32_t i = 0; i < PIECE; ++i)
            r->bits[i] = (uint32_t)first + i;
        map(r, kernel, op, PIECE);
        for (uint32_t b = 0; b < PIECE; b += BLOCK) {
            uint64_t h = 0xcbf29ce484222325u ^ (first + b) >> 16;
            for (uint32_t i = b; i < b + BLOCK; ++i)
                h = link(h, r->bits[i]);
            sum += h;
        }
    }
    return sum;
}

static void check_kernel(scratch_space *r, qn__kernel kernel) {
    const int all = getenv("QN_TEST_ALL") != NULL;
    const char *device = r->driver->facts(r->gpu)->name;
    for (size_t f = 0; f < sizeof functions / sizeof *functions; ++f) {
        const struct function *function = &functions[f];
        const double begun = qn__now();
        const uint64_t got =
            all ? digest_of_all(r, kernel, function->op) : chain_of_some(r, kernel, function->op);
        const uint64_t want = all ? function->digest : function->chain;
        if (got != want)
            fail_msg("%s: %s of %s gives the digest %016llx, not %016llx", device,
                     qn__kernel_shape_of(kernel)->name, function->name, (unsigned long long)got,
                     (unsigned long long)want);
        if (all)
            print_message("  %s: %s, %s: %016llx, %.0f s\n", device,
                          qn__kernel_shape_of(kernel)->name, function->name,
                          (unsigned long long)got, qn__now() - begun);
    }
}

static void check_device(const qn__gpu_driver *driver, uint32_t index) {
    scratch_space r = {.driver = driver};
    const qn_compute compute = {.size = sizeof(qn_compute)};
    must(&r, driver->open(index, QN_WITH_F32, &compute, &r.gpu, &r.err));
    must(&r, driver->allocate(r.gpu, PIECE * sizeof *r.bits, &r.in, &r.err));
    must(&r, driver->allocate(r.gpu, PIECE * sizeof *r.bits, &r.out, &r.err));
    r.bits = qn__alloc(PIECE, sizeof *r.bits, NULL);
    assert_non_null(r.bits);
    if (driver->facts(r.gpu)->vectors)
        check_kernel(&r, qn__kernel_vector(QN__K_MAP));
    check_kernel(&r, QN__K_MAP);
    qn__free(r.bits);
    driver->release(r.gpu, &r.in);
    driver->release(r.gpu, &r.out);
    driver->close(r.gpu);
}

static void test_functions_of_every_device(void **state) {
    uint32_t devices = 0;
    qn_device_info info = {.size = sizeof(qn_device_info)};
    (void)state;
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; ++k) {
        const qn__device_table *table = qn__device_find(kinds[k].name);
        for (uint32_t i = 0; i < table->count(); ++i) {
            assert_int_equal(table->describe(i, &info, NULL), QN_OK);
            if (info.refused) {
                print_message("SKIPPED: %s is refused: %s\n", info.id, info.reason);
                continue;
            }
            check_device(kinds[k].driver, i);
            print_message("%s: %s\n", info.id, info.name);
            ++devices;
        }
        if (table->count() == 0)
            print_message("SKIPPED: %s: %s\n", kinds[k].name, table->absence());
    }
    if (devices == 0)
        skip();
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_functions_of_every_device)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
