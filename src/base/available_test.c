/* The estimate of memory: what the system says, and never more than the address space leaves. */
#include "base/available.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <sys/resource.h>
#include <sys/sysinfo.h>
#include <sys/wait.h>
#include <unistd.h>

static void test_system(void **state) {
    (void)state;
    struct sysinfo info;
    assert_int_equal(sysinfo(&info), 0);
    const uint64_t all = (uint64_t)info.totalram * info.mem_unit, left = qn__available_memory();
    assert_true(left > 0 && left <= all);
}

/* Bytes of address space that are in use; sanitizers map terabytes. */
static rlim_t mapped(void) {
    unsigned long long pages = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    assert_non_null(file);
    assert_int_equal(fscanf(file, "%llu", &pages), 1);
    fclose(file);
    return (rlim_t)pages * (rlim_t)sysconf(_SC_PAGESIZE);
}

/* In a child, because the limit cannot be raised again. */
static void test_address_space(void **state) {
    (void)state;
    int ended = -1;
    const rlim_t most = mapped() + ((rlim_t)1 << 28);
    const struct rlimit limit = {most, most};
    const pid_t child = fork();
    if (child == 0) {
        if (setrlimit(RLIMIT_AS, &limit) != 0)
            _exit(1);
        _exit(qn__available_memory() <= (uint64_t)1 << 28 ? 0 : 2);
    }
    assert_int_equal(waitpid(child, &ended, 0), child);
    assert_int_equal(ended, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_system),
        cmocka_unit_test(test_address_space),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
