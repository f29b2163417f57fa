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

/* The number behind a word at the beginning of a line; UINT64_MAX: no line has it. */
static uint64_t number_of(const char *path, const char *word) {
    const size_t length = strlen(word);
    char line[128];
    uint64_t value = UINT64_MAX;
    FILE *file = fopen(path, "re");
    while (file && value == UINT64_MAX && fgets(line, sizeof line, file))
        if (strncmp(line, word, length) != 0 || line[length] != ' ' ||
            sscanf(line + length, "%" SCNu64, &value) != 1)
            value = UINT64_MAX;
    if (file)
        fclose(file);
    return value;
}

static uint64_t of_system(void) {
    const uint64_t kib = number_of("/proc/meminfo", "MemAvailable:");
    return kib < UINT64_MAX / 1024 ? kib * 1024 : UINT64_MAX;
}

static uint64_t least(uint64_t a, uint64_t b) { return a < b ? a : b; }

static uint64_t left_of(uint64_t limit, uint64_t used) {
    return limit == UINT64_MAX || used == UINT64_MAX ? UINT64_MAX : limit - least(limit, used);
}

/* Of a control group by its files. What it used includes the page cache, which gives way. */
static uint64_t of_files(const char *limit, const char *used, const char *statistics,
                         const char *cached) {
    const uint64_t all = number_in(used);
    uint64_t cache = number_of(statistics, cached), kept = number_of(statistics, "shmem");
    cache = cache == UINT64_MAX ? 0 : cache;
    kept = kept == UINT64_MAX ? 0 : kept;
    const uint64_t gives_way = cache - least(cache, kept);
    return left_of(number_in(limit), all == UINT64_MAX ? all : all - least(all, gives_way));
}

/* Of the group whose files a container sees as the root: version 2, then 1. */
static uint64_t of_group(void) {
    return least(of_files("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory.current",
                          "/sys/fs/cgroup/memory.stat", "file"),
                 of_files("/sys/fs/cgroup/memory/memory.limit_in_bytes",
                          "/sys/fs/cgroup/memory/memory.usage_in_bytes",
                          "/sys/fs/cgroup/memory/memory.stat", "cache"));
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
