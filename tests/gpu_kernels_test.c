/* The kernels for GPUs by real compilers, the results of each case beside the reference;
 * in some cases, or with QN_TEST_DEVICE in all, launch by launch beside the same text as C
 * (gpu_lockstep_test.h). A machine without a GPU
 * has OpenCL devices that are CPUs, for which the worker takes other kernels; here it is told that
 * they are GPUs, small ones and large ones in turn, so that every variant runs. QN_TEST_SEED,
 * QN_TEST_CASES, QN_TEST_DEVICE and QN_TEST_SECONDS as in the conformance suite. */
#include "device/conformance_intgemm_test.h"
#include "device/conformance_picture_test.h"
#include "device/conformance_settings_test.h"
#include "device/conformance_subject_test.h"
#include "device/conformance_zeros_test.h"
#include "device/cuda/cuda_gpu.h"
#include "device/cuda/cuda_table.h"
#include "device/gpu/gpu_worker.h"
#include "device/opencl/opencl_table.h"
#include "gpu_lockstep_test.h"

static qn__gpu_facts told; /* `units` is set by the test */
static qn__gpu_driver alone;
static int in_step; /* each launch is compared, which takes three times as long */
static uint32_t checked;

static const qn__gpu_facts *facts(const qn__gpu *gpu) {
    const uint32_t units = told.compute_units;
    told = *lockstep_inner->facts(gpu);
    told.vectors = 0;
    told.compute_units = units;
    return &told;
}

static qn_status open_worker(uint32_t index, const qn_compute *compute, const qn__program *program,
                             qn__worker **out, qn_error *err) {
    return qn__gpu_open(in_step ? &lockstep : &alone, index, compute, program, out, err);
}

static void draw_case(test_case *c, uint64_t seed) {
    if (seed % 4 == 0)
        case_begin(c, seed);
    else if (seed % 4 == 1)
        zeros_begin(c, seed);
    else if (seed % 4 == 2)
        integers_begin(c, seed);
    else
        pictures_begin(c, seed, 1);
    if (seed % 8 == 7)
        c->program.arith = (qn__arith)(QN__ARITH_I7 + seed / 8 % 3);
    augment_some(c);
}

static void check_cases(const qn__device_table *device, uint32_t index) {
    static const uint32_t units[] = {1, 12, 1000}; /* large tiles; some; small ones and k-blocks */
    const uint64_t first = setting("QN_TEST_SEED", 1), cases = setting("QN_TEST_CASES", 24);
    static test_case c;
    static expected e;
    uint64_t seed = first;
    time_begins();
    for (; seed < first + cases && !time_is_over(); ++seed) {
        subject s = {.device = device, .index = index, .threads = 1, .c = &c, .e = &e};
        draw_case(&c, seed);
        if (!device->supports(&c.program))
            continue;
        assert_true(expect(&c, &e));
        told.compute_units = units[seed / 4 % 3];
        in_step = seed % 3 == 0 || getenv("QN_TEST_DEVICE");
        check_subject(&s);
    }
    case_end(&c);
    print_message("%s:%u: %llu cases from seed %llu\n", device->name, index,
                  (unsigned long long)(seed - first), (unsigned long long)first);
}

static void check_kind(const qn__device_table *table, const qn__gpu_driver *driver) {
    qn__device_table device = *table;
    qn_device_info info = {.size = sizeof(qn_device_info)};
    lockstep_begin(driver);
    alone = *driver;
    lockstep.facts = alone.facts = facts;
    device.open = open_worker;
    for (uint32_t i = 0; i < device.count(); ++i) {
        assert_int_equal(device.describe(i, &info, NULL), QN_OK);
        if (!is_wanted(info.id))
            continue;
        if (info.refused) {
            print_message("SKIPPED: %s is refused: %s\n", info.id, info.reason);
            continue;
        }
        check_cases(&device, i);
        ++checked;
    }
    if (device.count() == 0)
        print_message("SKIPPED: %s\n", device.absence());
}

static void test_kernels_for_gpus_give_the_reference_bytes(void **state) {
    (void)state;
    check_kind(&qn__opencl_device, &qn__opencl_driver);
    check_kind(&qn__cuda_device, &qn__cuda_gpu_driver);
    if (checked == 0)
        skip();
}

/* Also after a failure of the test, for a kernel may be its cause. */
static int say_which_kernels_ran(void **state) {
    (void)state;
    return lockstep_end() != 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_kernels_for_gpus_give_the_reference_bytes)};
    return cmocka_run_group_tests(tests, NULL, say_which_kernels_ran);
}
