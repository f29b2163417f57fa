#include "base/available.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

/* The number in a file of one; UINT64_MAX: there is none, or it is "max". */
static uint64_t number_in(const char *path) {
    uint64_t value = UINT64_MAX;
    FILE *file = fopen(path, "re");
    if (!file)
        return UINT64_MAX;
    if (fscanf(file, "%" SCNu64, &value) != 1)
        value = UINT64_MAX;
    fclose(file);
    return value;
}

static uint64_t of_system(void) {
    char line[128];
    uint64_t kib = UINT64_MAX;
    FILE *file = fopen("/proc/meminfo", "re");
    while (file && fgets(line, sizeof line, file))
        if (sscanf(line, "MemAvailable: %" SCNu64, &kib) == 1)
            break;
    if (file)
        fclose(file);
    return kib < UINT64_MAX / 1024 ? kib * 1024 : UINT64_MAX;
}

static uint64_t least(uint64_t a, uint64_t b) { return a < b ? a : b; }

static uint64_t left_of(uint64_t limit, uint64_t used) {
    return limit == UINT64_MAX || used == UINT64_MAX ? UINT64_MAX : limit - least(limit, used);
}

/* Of the group whose files a container sees as the root: version 2, then 1. */
static uint64_t of_group(void) {
    const char *const v2 = "/sys/fs/cgroup/", *const v1 = "/sys/fs/cgroup/memory/";
    char limit[64], used[64];
    snprintf(limit, sizeof limit, "%smemory.max", v2);
    snprintf(used, sizeof used, "%smemory.current", v2);
    const uint64_t left = left_of(number_in(limit), number_in(used));
    snprintf(limit, sizeof limit, "%smemory.limit_in_bytes", v1);
    snprintf(used, sizeof used, "%smemory.usage_in_bytes", v1);
    return least(left, left_of(number_in(limit), number_in(used)));
}

static uint64_t of_address_space(void) {
    struct rlimit limit;
    const long page = sysconf(_SC_PAGESIZE);
    const uint64_t pages = number_in("/proc/self/statm");
    if (getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY || page < 0 ||
        pages > UINT64_MAX / (uint64_t)page)
        return UINT64_MAX;
    return left_of((uint64_t)limit.rlim_cur, pages * (uint64_t)page);
}

uint64_t qn__available_memory(void) {
    return least(of_system(), least(of_group(), of_address_space()));
}
