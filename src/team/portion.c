#include "team/portion.h"

#include "base/memory.h"
#include "base/system/cores.h"
#include "cluster/cluster.h"
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* --------------------------------------------------------------------------------------- claims */

/* FNV-1a, of 64 bits; never 0. */
static uint64_t digest(uint64_t hash, const void *bytes, size_t size) {
    const unsigned char *at = bytes;
    hash = hash ? hash : UINT64_C(0xcbf29ce484222325);
    for (size_t i = 0; i < size; ++i)
        hash = (hash ^ at[i]) * UINT64_C(0x100000001b3);
    return hash ? hash : 1;
}

static uint64_t digest_file(uint64_t hash, const char *path) {
    char text[4096];
    const int file = open(path, O_RDONLY | O_CLOEXEC);
    const ssize_t size = file < 0 ? 0 : read(file, text, sizeof text);
    if (file >= 0)
        close(file);
    return digest(hash, text, size > 0 ? (size_t)size : 0);
}

/* The variables by which launchers and users select GPUs. */
static uint64_t digest_visible(void) {
    static const char *const names[] = {"CUDA_VISIBLE_DEVICES", "NVIDIA_VISIBLE_DEVICES",
                                        "ROCR_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES",
                                        "ZE_AFFINITY_MASK",     "GPU_DEVICE_ORDINAL"};
    uint64_t hash = 0;
    for (size_t i = 0; i < sizeof names / sizeof *names; ++i) {
        const char *value = getenv(names[i]);
        hash = digest(hash, value ? value : "", value ? strlen(value) + 1 : 0);
        hash = digest(hash, "|", 1);
    }
    return hash;
}

static void describe(qn__claim *claim, const cpu_set_t *mask, size_t size) {
    struct stat space;
    memset(claim, 0, sizeof *claim);
    claim->kernel = digest_file(0, "/proc/sys/kernel/random/boot_id");
    claim->visible = digest_visible();
    claim->group = digest_file(0, "/proc/self/cgroup");
    if (stat("/proc/self/ns/cgroup", &space) == 0)
        claim->group = digest(claim->group, &space.st_ino, sizeof space.st_ino);
    for (size_t c = 0; mask && c < QN__CLAIM_CORES && c < 8 * size; ++c)
        if (CPU_ISSET_S(c, size, mask))
            claim->mask[c / 64] |= UINT64_C(1) << c % 64;
}

/* ------------------------------------------------------------------------------------- division */

void qn__portion_deal(const qn__claim *claims, uint32_t ranks, uint32_t rank, qn__dealt *dealt) {
    const qn__claim *own = &claims[rank];
    memset(dealt, 0, sizeof *dealt);
    for (uint32_t r = 0; r < ranks; ++r) {
        const qn__claim *c = &claims[r];
        if (!c->kernel || c->kernel != own->kernel)
            continue;
        const uint32_t cores = memcmp(c->mask, own->mask, sizeof c->mask) == 0;
        const uint32_t devices = c->visible == own->visible;
        dealt->same_cores += cores;
        dealt->core_place += cores && r < rank;
        dealt->same_devices += devices;
        dealt->device_place += devices && r < rank;
        dealt->same_quota += c->group == own->group;
    }
}

void qn__portion_cores(uint32_t cores, uint32_t same, uint32_t place, uint32_t *first,
                       uint32_t *count) {
    if (cores < same || same == 0) {
        *first = cores ? place % cores : 0;
        *count = cores ? 1 : 0;
        return;
    }
    *first = (uint32_t)((uint64_t)cores * place / same);
    *count = (uint32_t)((uint64_t)cores * (place + 1) / same) - *first;
}

/* The members of the kind of members[index] that may be divided, and this one's index among
 * them. */
static uint32_t of_kind(const qn__member *members, uint32_t count, uint32_t index,
                        uint32_t *number) {
    uint32_t all = 0;
    *number = 0;
    for (uint32_t i = 0; i < count; ++i) {
        if (!members[i].optional || members[i].device != members[index].device)
            continue;
        *number += i < index;
        ++all;
    }
    return all;
}

void qn__portion_members(const qn__dealt *dealt, qn__member *members, uint32_t *count) {
    qn__member kept[64], wrapped = members[0];
    const uint32_t same = dealt->same_devices > 0 ? dealt->same_devices : 1;
    uint32_t left = 0;
    for (uint32_t i = 0; i < *count; ++i) {
        uint32_t number;
        const uint32_t all = of_kind(members, *count, i, &number);
        if (!members[i].optional || number % same == dealt->device_place)
            kept[left++] = members[i];
        else if (all > 0 && number == dealt->device_place % all)
            wrapped = members[i];
    }
    if (left == 0)
        kept[left++] = wrapped; /* more ranks than devices, and nothing else: ranks share one */
    memcpy(members, kept, left * sizeof *members);
    *count = left;
}

/* ---------------------------------------------------------------------------------------- cores */

typedef struct place {
    int package, core, number;
} place;

/* A topology number of a core from sysfs; 0 if there is none. */
static int topology(int number, const char *what) {
    char path[96], text[32] = "";
    snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu%d/topology/%s", number, what);
    const int file = open(path, O_RDONLY | O_CLOEXEC);
    const ssize_t size = file < 0 ? 0 : read(file, text, sizeof text - 1);
    if (file >= 0)
        close(file);
    return size > 0 ? (int)strtol(text, NULL, 10) : 0;
}

static int in_order(const void *one, const void *other) {
    const place *a = one, *b = other;
    if (a->package != b->package)
        return a->package < b->package ? -1 : 1;
    if (a->core != b->core)
        return a->core < b->core ? -1 : 1;
    return (a->number > b->number) - (a->number < b->number);
}

/* Binds the calling thread to its part of the cores. If that fails, the thread stays unbound: only
 * speed depends on it. */
static void bind_to(qn__portion *portion, const place *cores, uint32_t count) {
    cpu_set_t *set = CPU_ALLOC(8 * portion->size);
    if (!set)
        return;
    CPU_ZERO_S(portion->size, set);
    for (uint32_t i = 0; i < count; ++i)
        CPU_SET_S((size_t)cores[i].number, portion->size, set);
    if (sched_setaffinity(0, portion->size, set) != 0) {
        CPU_FREE(portion->before);
        portion->before = NULL;
    }
    CPU_FREE(set);
}

static int asked_for_threads(const qn_compute *compute, const qn__member *members, uint32_t count) {
    int asked = compute->threads;
    for (uint32_t i = 0; members && i < count; ++i)
        asked = members[i].threads > asked ? members[i].threads : asked;
    return asked;
}

/* Takes this rank's cores, when the other users of them are known. */
static void take_cores(const qn__dealt *dealt, qn_compute *compute, int asked,
                       qn__portion *portion) {
    static const char groups[] = "/proc/self/cgroup", mount[] = "/sys/fs/cgroup";
    place cores[QN__CLAIM_CORES];
    uint32_t count = 0, first, own;
    for (size_t c = 0; c < QN__CLAIM_CORES && c < 8 * portion->size; ++c)
        if (CPU_ISSET_S(c, portion->size, portion->before))
            cores[count++] = (place){topology((int)c, "physical_package_id"),
                                     topology((int)c, "core_id"), (int)c};
    qsort(cores, count, sizeof *cores, in_order);
    qn__portion_cores(count, dealt->same_cores, dealt->core_place, &first, &own);
    const int all = qn__quota_cores(groups, mount);
    const int quota = dealt->same_quota > 0 ? all / (int)dealt->same_quota : all;
    if (!asked && (dealt->same_cores > 1 || dealt->same_quota > 1)) {
        compute->threads = (int)own;
        if (all > 0 && quota < (int)own)
            compute->threads = quota > 1 ? quota : 1;
    }
    if (dealt->same_cores > 1 && asked <= (int)own && own > 0) {
        bind_to(portion, cores + first, own);
    } else {
        CPU_FREE(portion->before);
        portion->before = NULL;
    }
}

/* --------------------------------------------------------------------------- take and give back */

qn_status qn__portion_take(qn_compute *compute, qn__member *members, uint32_t *count,
                           qn__portion *portion, qn_error *err) {
    const uint32_t ranks = qn_cluster_ranks(compute->cluster);
    qn__dealt dealt;
    qn__claim own;
    *portion = (qn__portion){0};
    if (ranks < 2)
        return QN_OK;
    qn__claim *claims = qn__alloc(ranks, sizeof *claims, err);
    if (!claims)
        return QN_MEMORY;
    portion->before = qn__own_mask(&portion->size);
    describe(&own, portion->before, portion->size);
    const qn_status status = qn__cluster_gather(compute->cluster, &own, sizeof own, claims, err);
    if (status == QN_OK) {
        qn__portion_deal(claims, ranks, qn_cluster_rank(compute->cluster), &dealt);
        if (members && !compute->shares)
            qn__portion_members(&dealt, members, count);
        if (portion->before)
            take_cores(&dealt, compute, asked_for_threads(compute, members, *count), portion);
    } else {
        CPU_FREE(portion->before);
        portion->before = NULL;
    }
    qn__free(claims);
    return status;
}

void qn__portion_give(qn__portion *portion) {
    if (!portion->before)
        return;
    sched_setaffinity(0, portion->size, portion->before);
    CPU_FREE(portion->before);
    portion->before = NULL;
}
