/* The kernels for GPUs under real OpenCL compilers. A machine without a GPU has OpenCL devices that
 * are CPUs, for which the worker takes other kernels; here it is told that they are GPUs, small
 * ones and large ones in turn, so that every variant runs. QN_TEST_SEED and QN_TEST_CASES as in the
 * conformance suite. */
#include "device/conformance_intgemm_test.h"
#include "device/conformance_picture_test.h"
#include "device/conformance_subject_test.h"
#include "device/conformance_zeros_test.h"
#include "device/gpu/gpu_worker.h"
#include "device/opencl/opencl_table.h"

static qn__gpu_driver disguised;
static qn__gpu_facts told; /* `units` is set by the test */

static const qn__gpu_facts *facts(const qn__gpu *gpu) {
    const uint32_t units = told.compute_units;
    told = *qn__opencl_driver.facts(gpu);
    told.vectors = 0;
    told.compute_units = units;
    return &told;
}

static qn_status open_worker(uint32_t index, const qn_compute *compute, const qn__program *program,
                             qn__worker **out, qn_error *err) {
    return qn__gpu_open(&disguised, index, compute, program, out, err);
}

static uint64_t setting(const char *name, uint64_t otherwise) {
    const char *text = getenv(name);
    return text ? strtoull(text, NULL, 10) : otherwise;
}

static void check_cases(const qn__device_table *device, uint32_t index) {
    static const uint32_t units[] = {1, 12, 1000}; /* large tiles; some; small ones and k-blocks */
    const uint64_t first = setting("QN_TEST_SEED", 1), cases = setting("QN_TEST_CASES", 24);
    static test_case c;
    static expected e;
    for (uint64_t seed = first; seed < first + cases; ++seed) {
        subject s = {.device = device, .index = index, .threads = 1, .c = &c, .e = &e};
        if (seed % 4 == 0)
            case_begin(&c, seed);
        else if (seed % 4 == 1)
            zeros_begin(&c, seed);
        else if (seed % 4 == 2)
            integers_begin(&c, seed);
        else
            pictures_begin(&c, seed, 1);
        if (seed % 8 == 7)
            c.program.arith = (qn__arith)(QN__ARITH_I7 + seed / 8 % 3);
        if (!device->supports(&c.program))
            continue;
        augment_some(&c);
        assert_true(expect(&c, &e));
        told.compute_units = units[seed / 4 % 3];
        check_subject(&s);
    }
    case_end(&c);
    print_message("opencl:%u: %llu cases from seed %llu\n", index, (unsigned long long)cases,
                  (unsigned long long)first);
}

static void test_kernels_for_gpus_give_the_reference_bytes(void **state) {
    qn__device_table device = qn__opencl_device;
    qn_device_info info = {.size = sizeof(qn_device_info)};
    uint32_t checked = 0;
    (void)state;
    disguised = qn__opencl_driver;
    disguised.facts = facts;
    device.open = open_worker;
    for (uint32_t i = 0; i < device.count(); ++i) {
        assert_int_equal(device.describe(i, &info, NULL), QN_OK);
        if (info.refused) {
            print_message("SKIPPED: %s is refused: %s\n", info.id, info.reason);
            continue;
        }
        check_cases(&device, i);
        ++checked;
    }
    if (checked == 0) {
        print_message("SKIPPED: %s\n", device.absence());
        skip();
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_kernels_for_gpus_give_the_reference_bytes)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
