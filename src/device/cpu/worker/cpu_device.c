/* The CPU as a device: its table and its description. */
#include "base/system/threads.h"
#include "device/cpu/cpu_isa.h"
#include "device/cpu/worker/cpu_table.h"
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static uint32_t count(void) { return 1; }

static pthread_once_t name_once = PTHREAD_ONCE_INIT;
static char name[128];

/* The processor's name in /proc/cpuinfo; "CPU" if there is none. It is read once: the file may take
 * the kernel long, and every training asks for the name. */
static void find_name(void) {
    char line[256];
    FILE *f = fopen("/proc/cpuinfo", "re");
    snprintf(name, sizeof name, "CPU");
    while (f && fgets(line, sizeof line, f)) {
        const char *value = strchr(line, ':');
        if (strncmp(line, "model name", 10) != 0 || !value)
            continue;
        snprintf(name, sizeof name, "%.*s", (int)strcspn(value + 2, "\n"), value + 2);
        break;
    }
    if (f)
        fclose(f);
}

static uint64_t at_least_0(long value) { return value > 0 ? (uint64_t)value : 0; }

/* 0 if the C library does not report it, as musl. */
static void find_caches(uint64_t bytes[3]) {
#ifdef _SC_LEVEL1_DCACHE_SIZE
    bytes[0] = at_least_0(sysconf(_SC_LEVEL1_DCACHE_SIZE));
    bytes[1] = at_least_0(sysconf(_SC_LEVEL2_CACHE_SIZE));
    bytes[2] = at_least_0(sysconf(_SC_LEVEL3_CACHE_SIZE));
#else
    memset(bytes, 0, 3 * sizeof *bytes);
#endif
}

static qn_status describe(uint32_t index, qn_device_info *info, qn_error *err) {
    (void)index;
    (void)err;
    memset(info, 0, sizeof *info);
    snprintf(info->id, sizeof info->id, "cpu");
    snprintf(info->kind, sizeof info->kind, "cpu");
    snprintf(info->type, sizeof info->type, "CPU");
    info->automatic = 1;
    pthread_once(&name_once, find_name);
    snprintf(info->name, sizeof info->name, "%s", name);
    snprintf(info->isa, sizeof info->isa, "%s", qn__cpu_isa_find(NULL)->name);
    qn__cpu_isa_list(info->isas, sizeof info->isas);
    info->cores = qn__cores();
    info->memory = at_least_0(sysconf(_SC_PHYS_PAGES)) * at_least_0(sysconf(_SC_PAGESIZE));
    find_caches(info->cache);
    return QN_OK;
}

static int supports(const qn__program *program) {
    (void)program;
    return 1;
}

const qn__device_table qn__cpu_device = {
    .version = QN__DEVICE_VERSION,
    .name = "cpu",
    .about = "the CPU; cpu:4 is four of its cores",
    .host = 1,
    .check = qn__cpu_check,
    .instructions = qn__cpu_isa_word,
    .jobs = (1u << QN__JOB_KINDS) - 1,
    .in_place = 1,
    .count = count,
    .describe = describe,
    .supports = supports,
    .open = qn__cpu_open,
    .close = qn__cpu_close,
    .load = qn__cpu_load,
    .save = qn__cpu_save,
    .run = qn__cpu_compute,
    .collect = qn__cpu_collect,
    .update = qn__cpu_update,
    .train_step = qn__cpu_train_step,
    .busy = qn__cpu_busy,
    .measure = qn__cpu_measure,
    .energy = qn__cpu_energy,
    .memory = qn__cpu_memory,
    .extend = qn__cpu_extend,
};
