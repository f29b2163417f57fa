#include "base/system/available.h"

#include "base/system/clock.h"

#include <inttypes.h>
#include <limits.h>
#include <stdatomic.h>
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

/* The number after a word at the beginning of a line; UINT64_MAX: no line has it. */
static uint64_t number_of(const char *path, const char *word) {
    const size_t length = strlen(word);
    char line[128];
    uint64_t value = UINT64_MAX;
    FILE *file = fopen(path, "re");
    while (file && value == UINT64_MAX && fgets(line, sizeof line, file))
        if (strncmp(line, word, length) != 0 || !strchr(" \t", line[length]) ||
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

/* The names of a control group's files and of what its statistics tell. Above `slow` the system
 * stops the processes of the group again and again, to take memory from them. */
typedef struct version {
    const char *folder, *limit, *slow, *used, *cached, *shared;
} version;

static const version versions[] = {
    {"", "memory.max", "memory.high", "memory.current", "file", "shmem"},
    {"/unified", "memory.max", "memory.high", "memory.current", "file", "shmem"},
    {"/memory", "memory.limit_in_bytes", NULL, "memory.usage_in_bytes", "total_cache",
     "total_shmem"},
};

static uint64_t or_none(uint64_t value) { return value == UINT64_MAX ? 0 : value; }

/* Of one group. What it used includes the page cache, which gives way. */
static uint64_t of_group(const char *root, const version *v, const char *group) {
    char limit[PATH_MAX], slow[PATH_MAX] = "", used[PATH_MAX], statistics[PATH_MAX];
    snprintf(limit, PATH_MAX, "%s%s%s/%s", root, v->folder, group, v->limit);
    if (v->slow)
        snprintf(slow, PATH_MAX, "%s%s%s/%s", root, v->folder, group, v->slow);
    snprintf(used, PATH_MAX, "%s%s%s/%s", root, v->folder, group, v->used);
    snprintf(statistics, PATH_MAX, "%s%s%s/memory.stat", root, v->folder, group);
    const uint64_t all = number_in(used), cache = or_none(number_of(statistics, v->cached));
    const uint64_t gives_way = cache - least(cache, or_none(number_of(statistics, v->shared)));
    return left_of(least(number_in(limit), number_in(slow)),
                   all == UINT64_MAX ? all : all - least(all, gives_way));
}

/* Of a group and those around it. In a container the root is the container's group, and the group
 * may have the path that it has outside: then only the root is found. */
static uint64_t of_groups(const char *root, const version *v, char *group) {
    uint64_t left = UINT64_MAX;
    for (char *end = group + strlen(group); end; end = strrchr(group, '/')) {
        *end = 0;
        left = least(left, of_group(root, v, group));
    }
    return left;
}

/* Whether a line of the list, "ID:CONTROLLERS:PATH", is about memory; version 2 names none. */
static int of_memory(const char *controllers, size_t size) {
    const char word[] = "memory";
    for (const char *at = controllers; at < controllers + size; at += strcspn(at, ",:") + 1)
        if (strcspn(at, ",:") == sizeof word - 1 && strncmp(at, word, sizeof word - 1) == 0)
            return 1;
    return size == 0;
}

uint64_t qn__available_in_groups(const char *list, const char *root) {
    char line[PATH_MAX], group[PATH_MAX];
    uint64_t left = UINT64_MAX;
    FILE *file = fopen(list, "re");
    while (file && fgets(line, sizeof line, file)) {
        line[strcspn(line, "\n")] = 0;
        const char *controllers = strchr(line, ':'), *path;
        if (!controllers || !(path = strchr(++controllers, ':')) ||
            !of_memory(controllers, (size_t)(path - controllers)))
            continue;
        for (size_t v = 0; v < sizeof versions / sizeof *versions; ++v) {
            snprintf(group, sizeof group, "%s", path + 1);
            left = least(left, of_groups(root, &versions[v], group));
        }
    }
    if (file)
        fclose(file);
    return left;
}

/* The type of getrlimit's first argument has no name that all C libraries share. */
int qn__memory_is_limited(void) {
    struct rlimit space, data;
    const int known = getrlimit(RLIMIT_AS, &space) == 0, given = getrlimit(RLIMIT_DATA, &data) == 0;
    return (known && space.rlim_cur != RLIM_INFINITY) || (given && data.rlim_cur != RLIM_INFINITY);
}

static uint64_t of_address_space(void) {
    struct rlimit limit;
    const long page = sysconf(_SC_PAGESIZE);
    if (getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY || page < 1)
        return UINT64_MAX;
    const uint64_t pages = number_in("/proc/self/statm");
    if (pages > UINT64_MAX / (uint64_t)page)
        return UINT64_MAX;
    return left_of((uint64_t)limit.rlim_cur, pages * (uint64_t)page);
}

/* Of private memory, which files that are mapped do not take. */
static uint64_t of_data(void) {
    struct rlimit limit;
    if (getrlimit(RLIMIT_DATA, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY)
        return UINT64_MAX;
    const uint64_t kib = number_of("/proc/self/status", "VmData:");
    if (kib > UINT64_MAX / 1024)
        return UINT64_MAX;
    return left_of((uint64_t)limit.rlim_cur, kib * 1024);
}

/* What other processes change is asked again after this time only. It takes half a millisecond
 * where groups are nested, and a server opens thousands of small tables a second. */
static const double ASKED_AGAIN = 0.02;

static uint64_t of_machine(void) {
    static _Atomic double asked = -1;
    static _Atomic uint64_t left;
    const double now = qn__now();
    if (now - asked < ASKED_AGAIN && asked >= 0)
        return left;
    left = least(of_system(), qn__available_in_groups("/proc/self/cgroup", "/sys/fs/cgroup"));
    asked = now;
    return left;
}

uint64_t qn__available_memory(void) {
    return least(of_machine(), least(of_address_space(), of_data()));
}
