#include "base/system/cores.h"

#include "base/system/clock.h"
#include "base/system/threads.h"

#include <fcntl.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { SMALL_FILE = 4096, PATH_CAPACITY = SMALL_FILE + 32 };

/* Reads the start of a small system file as text. Returns 0 when it does not exist. */
static int read_small(const char *path, char text[SMALL_FILE]) {
    const int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0)
        return 0;
    const ssize_t size = read(file, text, SMALL_FILE - 1);
    close(file);
    if (size < 0)
        return 0;
    text[size] = 0;
    return 1;
}

/* Cores of one group, or 0. Version 2 has "QUOTA PERIOD" or "max PERIOD" in cpu.max; version 1 has
 * two files, with -1 for no quota. Both in microseconds. */
static int group_cores(const char folder[SMALL_FILE]) {
    char path[PATH_CAPACITY], text[SMALL_FILE];
    long long quota = 0, period = 0;
    snprintf(path, sizeof path, "%s/cpu.max", folder);
    if (read_small(path, text)) {
        if (sscanf(text, "%lld %lld", &quota, &period) != 2)
            return 0;
    } else {
        snprintf(path, sizeof path, "%s/cpu.cfs_quota_us", folder);
        if (!read_small(path, text))
            return 0;
        quota = strtoll(text, NULL, 10);
        snprintf(path, sizeof path, "%s/cpu.cfs_period_us", folder);
        if (!read_small(path, text))
            return 0;
        period = strtoll(text, NULL, 10);
    }
    if (quota <= 0 || period <= 0)
        return 0;
    const long long cores = quota / period + (quota % period != 0);
    return cores > 1 << 20 ? 0 : (int)cores;
}

/* The smallest quota from `group` (a path that begins with '/') up to the mount's root. In a
 * container the path may be the host's and not exist; its root then is the container's group, so
 * missing folders are skipped. */
static int chain_cores(const char *mount, const char *controller, const char *group) {
    char folder[SMALL_FILE];
    const int size = snprintf(folder, sizeof folder, "%s%s%s", mount, controller, group);
    if (size < 0 || (size_t)size >= sizeof folder)
        return 0;
    const size_t root = strlen(mount) + strlen(controller);
    int least = 0;
    for (;;) {
        const int cores = group_cores(folder);
        if (cores > 0 && (least == 0 || cores < least))
            least = cores;
        char *slash = strrchr(folder, '/');
        if (!slash || (size_t)(slash - folder) < root)
            return least;
        *slash = 0;
    }
}

/* 1 when the comma-separated list of controllers holds "cpu" itself (not only "cpuset"). */
static int has_cpu(const char *list) {
    for (const char *at = list; at; at = strchr(at, ',')) {
        at += *at == ',';
        if (strncmp(at, "cpu", 3) == 0 && (at[3] == 0 || at[3] == ','))
            return 1;
    }
    return 0;
}

/* A line is "NUMBER:CONTROLLERS:PATH"; version 2 has the number 0 and no controllers. */
int qn__quota_cores(const char *groups_file, const char *mount) {
    char text[SMALL_FILE];
    if (!read_small(groups_file, text))
        return 0;
    int least = 0;
    char *rest = NULL;
    for (char *line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
        char *controllers = strchr(line, ':');
        char *group = controllers ? strchr(controllers + 1, ':') : NULL;
        if (!group)
            continue;
        *group++ = 0;
        controllers++;
        const int version2 = *controllers == 0;
        if (group[0] != '/' || (!version2 && !has_cpu(controllers)))
            continue;
        const int cores = chain_cores(mount, version2 ? "" : "/cpu", group);
        if (cores > 0 && (least == 0 || cores < least))
            least = cores;
    }
    return least;
}

/* The set grows until the kernel's mask fits: on large machines 1024 cores are not enough. */
cpu_set_t *qn__own_mask(size_t *size) {
    for (size_t cores = 1024; cores <= 1 << 20; cores *= 2) {
        cpu_set_t *set = CPU_ALLOC(cores);
        if (!set)
            return NULL;
        *size = CPU_ALLOC_SIZE(cores);
        if (sched_getaffinity(0, *size, set) == 0)
            return set;
        CPU_FREE(set);
    }
    return NULL;
}

static int mask_cores(void) {
    size_t size;
    cpu_set_t *set = qn__own_mask(&size);
    if (set) {
        const int count = CPU_COUNT_S(size, set);
        CPU_FREE(set);
        return count > 0 ? count : 1;
    }
    const long online = sysconf(_SC_NPROCESSORS_ONLN);
    return online > 0 ? (int)online : 1;
}

/* The quota of this process, read at most once in a second: that takes 15 system calls, and a
 * training of a small table asks several times. */
static int own_quota(void) {
    static _Atomic double due;
    static atomic_int known;
    const double now = qn__now();
    if (now >= atomic_load(&due)) {
        atomic_store(&known, qn__quota_cores("/proc/self/cgroup", "/sys/fs/cgroup"));
        atomic_store(&due, now + 1);
    }
    return atomic_load(&known);
}

int qn__cores(void) {
    const int mask = mask_cores();
    const int quota = own_quota();
    return quota > 0 && quota < mask ? quota : mask;
}
