/* Which device files let "auto" look for OpenCL devices. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "device/opencl/opencl_likely.h"
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static char folder[64];

static int with(const char *name) {
    char path[128];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    assert_int_equal(mkdir(path, 0700), 0);
    const int likely = qn__cl_likely_in(folder);
    rmdir(path);
    return likely;
}

static void test_files(void **state) {
    (void)state;
    static const char *const plain[] = {"null", "tty0",  "nvme0",           "loop0", "kvm",
                                        "snd",  "input", "cpu_dma_latency", "video0"};
    static const char *const gpus[] = {"dri", "kfd", "nvidia0", "nvidiactl", "mali0", "dxg"};
    snprintf(folder, sizeof folder, "/tmp/quern-dev-XXXXXX");
    assert_non_null(mkdtemp(folder));
    assert_int_equal(qn__cl_likely_in(folder), 0);
    for (size_t i = 0; i < sizeof plain / sizeof *plain; ++i)
        assert_int_equal(with(plain[i]), 0);
    for (size_t i = 0; i < sizeof gpus / sizeof *gpus; ++i)
        assert_int_equal(with(gpus[i]), 1);
    rmdir(folder);
    assert_int_equal(qn__cl_likely_in(folder),
                     1); /* cannot be read: assume that there may be a device */
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_files)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
