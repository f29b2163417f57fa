/* The estimate of memory: what the system says, and never more than the address space leaves. */
#include "base/system/available.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
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

static void put(const char *root, const char *name, const char *content) {
    char path[256];
    snprintf(path, sizeof path, "%s/%s", root, name);
    for (char *at = path + strlen(root) + 1; (at = strchr(at, '/')); *at++ = '/') {
        *at = 0;
        mkdir(path, 0700);
    }
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs(content, file);
    fclose(file);
}

static uint64_t left(const char *root, const char *list) {
    char path[256];
    put(root, "list", list);
    snprintf(path, sizeof path, "%s/list", root);
    return qn__available_in_groups(path, root);
}

/* Both versions, groups around the own one, and a container that sees its own as the root. */
static void test_groups(void **state) {
    (void)state;
    char root[] = "/tmp/quern-groups-XXXXXX", command[64];
    assert_non_null(mkdtemp(root));
    assert_true(left(root, "0::/a/b\n") == UINT64_MAX);
    put(root, "a/b/memory.max", "max\n");
    put(root, "a/b/memory.current", "100\n");
    put(root, "a/memory.max", "5000\n");
    put(root, "a/memory.current", "3000\n");
    put(root, "a/memory.stat", "anon 7\nfile 1000\nshmem 200\n");
    assert_int_equal(left(root, "0::/a/b\n"), 5000 - (3000 - (1000 - 200)));
    assert_true(left(root, "0::/\n") == UINT64_MAX);
    put(root, "memory/job/memory.limit_in_bytes", "1500\n");
    put(root, "memory/job/memory.usage_in_bytes", "1000\n");
    put(root, "memory/job/memory.stat", "cache 9\ntotal_cache 300\ntotal_shmem 100\n");
    assert_int_equal(left(root, "5:cpu,cpuacct:/\n4:hugetlb,memory:/job\n0::/a/b\n"), 700);
    assert_int_equal(left(root, "4:memoryx:/job\n0::/a\n"), 2800);
    put(root, "memory.max", "600\n");
    put(root, "memory.current", "100\n");
    assert_int_equal(left(root, "0::/outside/this\n"), 500);
    put(root, "a/memory.high", "2500\n"); /* where the system slows the group down */
    assert_int_equal(left(root, "0::/a\n"), 2500 - 2200);
    snprintf(command, sizeof command, "rm -r %s", root);
    assert_int_equal(system(command), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_system),
        cmocka_unit_test(test_address_space),
        cmocka_unit_test(test_groups),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
