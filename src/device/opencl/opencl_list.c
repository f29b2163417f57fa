/* The list of devices, in a fixed order, and the reasons why a device cannot keep the contract
 * according to its own driver. The self-test decides for the others (opencl_open.c). */
#include "device/opencl/opencl_list.h"
#include "device/device.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

enum { PLATFORMS = 16, DEVICES = 64, EXTENSIONS = 8192 };

static pthread_once_t once = PTHREAD_ONCE_INIT;
static const qn__cl_api *cl;
static qn__cl_entry entries[DEVICES];
static uint32_t count;
static char absence[400];

/* A text property of a device, without leading and trailing blanks. */
static void device_text(qn__cl_device device, uint32_t name, char *to, size_t capacity) {
    char text[EXTENSIONS] = "";
    size_t size = 0;
    if (cl->get_device_info(device, name, sizeof text - 1, text, &size) != QN__CL_SUCCESS)
        text[0] = '\0';
    const char *from = text + strspn(text, " \t");
    size_t length = strlen(from);
    while (length > 0 && from[length - 1] == ' ')
        --length;
    snprintf(to, capacity, "%.*s", (int)length, from);
}

static void platform_text(qn__cl_platform platform, uint32_t name, char *to, size_t capacity) {
    char text[512] = "";
    if (cl->get_platform_info(platform, name, sizeof text - 1, text, NULL) != QN__CL_SUCCESS)
        text[0] = '\0';
    snprintf(to, capacity, "%s", text);
}

/* A number of 4 or 8 bytes; 0 when the device does not report it. */
static uint64_t device_number(qn__cl_device device, uint32_t name) {
    uint64_t number = 0;
    size_t size = 0;
    if (cl->get_device_info(device, name, sizeof number, &number, &size) != QN__CL_SUCCESS)
        return 0;
    if (size == sizeof(uint32_t)) { /* the upper half was not written; byte order does not matter */
        uint32_t half;
        memcpy(&half, &number, sizeof half);
        return half;
    }
    return number;
}

/* Whether a list of words contains this word. */
static int has_word(const char *list, const char *word) {
    const size_t length = strlen(word);
    for (const char *at = strstr(list, word); at; at = strstr(at + length, word))
        if ((at == list || at[-1] == ' ') && (at[length] == ' ' || at[length] == '\0'))
            return 1;
    return 0;
}

static int is_older_than_1_2(const char *version) {
    int major = 0, minor = 0;
    if (sscanf(version, "OpenCL %d.%d", &major, &minor) != 2)
        return 1;
    return major < 1 || (major == 1 && minor < 2);
}

/* The reason why this device cannot be used at all, or NULL. */
static const char *refusal(const qn__cl_entry *e, const char *extensions) {
    static _Thread_local char text[200];
    char profile[32];
    const uint64_t floats = device_number(e->device, QN__CL_DEVICE_SINGLE_FP_CONFIG);
    device_text(e->device, QN__CL_DEVICE_PROFILE, profile, sizeof profile);
    if (is_older_than_1_2(e->version)) {
        snprintf(text, sizeof text, "it has %.60s, and 1.2 is needed; a newer driver may have it",
                 e->version);
        return text;
    }
    if (!device_number(e->device, QN__CL_DEVICE_AVAILABLE))
        return "its driver says that it is not available; another program may hold it, try again";
    if (!device_number(e->device, QN__CL_DEVICE_COMPILER_AVAILABLE))
        return "its driver has no compiler for OpenCL C; install the driver as a whole";
    if (strcmp(profile, "FULL_PROFILE") != 0)
        return has_word(extensions, "cles_khr_int64")
                   ? "it has OpenCL's embedded profile alone, whose arithmetic may be less exact"
                   : "it has no 64-bit integers (OpenCL's embedded profile)";
    if (!(floats & QN__CL_FP_DENORM))
        return "it flushes subnormal numbers to zero, as its driver says";
    if (!(floats & QN__CL_FP_INF_NAN) || !(floats & QN__CL_FP_ROUND_TO_NEAREST))
        return "its numbers are not those of IEEE-754, as its driver says";
    const uint64_t little = __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__;
    if (device_number(e->device, QN__CL_DEVICE_ENDIAN_LITTLE) != little)
        return "its byte order is not that of this machine";
    return NULL;
}

/* An earlier entry that is the same card on another platform, or NULL. */
static const qn__cl_entry *twin(const qn__cl_entry *e) {
    for (const qn__cl_entry *other = entries; other < e; ++other)
        if (other->has_pci && e->has_pci && !other->info.refused &&
            memcmp(other->pci, e->pci, sizeof e->pci) == 0)
            return other;
    return NULL;
}

/* Decides whether "auto" uses the device, with the reason if not. */
static void judge(qn__cl_entry *e) {
    qn_device_info *const info = &e->info;
    if (info->refused)
        return;
    const qn__cl_entry *const same = twin(e);
    const qn__device_table *const other = qn__device_driving(info->platform, info->kind);
    if (e->is_cpu)
        snprintf(info->reason, sizeof info->reason, "the same cores as the device cpu");
    else if (other)
        snprintf(info->reason, sizeof info->reason, "a GPU of %s, which %s drives", other->vendor,
                 other->name);
    else if (same)
        snprintf(info->reason, sizeof info->reason, "the same card as %s", same->info.id);
    else
        info->automatic = 1;
}

static void describe_entry(qn__cl_entry *e) {
    char extensions[EXTENSIONS];
    qn_device_info *const info = &e->info;
    const uint64_t type = device_number(e->device, QN__CL_DEVICE_TYPE),
                   floats = device_number(e->device, QN__CL_DEVICE_SINGLE_FP_CONFIG);
    e->is_cpu = (type & QN__CL_TYPE_CPU) != 0;
    snprintf(info->kind, sizeof info->kind, "opencl");
    snprintf(info->type, sizeof info->type, "%s",
             type & QN__CL_TYPE_GPU ? "GPU"
             : e->is_cpu            ? "CPU"
                                    : "accelerator");
    device_text(e->device, QN__CL_DEVICE_NAME, info->name, sizeof info->name);
    platform_text(e->platform, QN__CL_PLATFORM_NAME, info->platform, sizeof info->platform);
    platform_text(e->platform, QN__CL_PLATFORM_VERSION, e->base_version, sizeof e->base_version);
    device_text(e->device, QN__CL_DRIVER_VERSION, info->driver, sizeof info->driver);
    device_text(e->device, QN__CL_DEVICE_VERSION, e->version, sizeof e->version);
    device_text(e->device, QN__CL_DEVICE_EXTENSIONS, extensions, sizeof extensions);
    info->cores = (int)device_number(e->device, QN__CL_DEVICE_MAX_COMPUTE_UNITS);
    info->memory = device_number(e->device, QN__CL_DEVICE_GLOBAL_MEM_SIZE);
    e->largest = device_number(e->device, QN__CL_DEVICE_MAX_MEM_ALLOC_SIZE);
    e->correct_divide = (floats & QN__CL_FP_CORRECTLY_ROUNDED_DIVIDE_SQRT) != 0;
    e->atomics = has_word(extensions, "cl_khr_int64_base_atomics");
    e->doubles = has_word(extensions, "cl_khr_fp64");
    e->dots = has_word(extensions, "cl_khr_integer_dot_product");
    e->has_pci = has_word(extensions, "cl_khr_pci_bus_info") &&
                 cl->get_device_info(e->device, QN__CL_DEVICE_PCI_BUS_INFO, sizeof e->pci, e->pci,
                                     NULL) == QN__CL_SUCCESS;
    const char *const why = refusal(e, extensions);
    info->refused = why != NULL;
    snprintf(info->reason, sizeof info->reason, "%s", why ? why : "");
}

static int rank_of(const qn__cl_entry *e) {
    if (strcmp(e->info.type, "GPU") == 0)
        return 0;
    return strcmp(e->info.type, "accelerator") == 0 ? 1 : 2;
}

/* GPUs first, then accelerators, then processors; platforms by name; otherwise in the library's
 * order. */
static int comes_before(const qn__cl_entry *a, const qn__cl_entry *b) {
    if (rank_of(a) != rank_of(b))
        return rank_of(a) < rank_of(b);
    return strcmp(a->info.platform, b->info.platform) < 0;
}

static void add(qn__cl_platform platform, qn__cl_device device) {
    if (count == DEVICES)
        return;
    qn__cl_entry new = {.platform = platform, .device = device};
    describe_entry(&new);
    uint32_t at = count++;
    for (; at > 0 && comes_before(&new, &entries[at - 1]); --at)
        entries[at] = entries[at - 1];
    entries[at] = new;
}

/* Names the platforms without devices in the sentence that explains the absence. */
static void explain(const qn__cl_platform *platforms, uint32_t found) {
    char names[200] = "";
    size_t used = 0;
    for (uint32_t i = 0; i < found && used < sizeof names; ++i) {
        char name[64];
        platform_text(platforms[i], QN__CL_PLATFORM_NAME, name, sizeof name);
        used += (size_t)snprintf(names + used, sizeof names - used, "%s%s", i ? ", " : "", name);
    }
    snprintf(absence, sizeof absence,
             "OpenCL is here (%s), but no device: is the card's kernel driver loaded, and may this "
             "user open it (group render or video)?",
             names);
}

static void find(void) {
    const char *why;
    qn__cl_platform platforms[PLATFORMS];
    uint32_t found = 0;
    cl = qn__cl_load(&why);
    if (!cl) {
        snprintf(absence, sizeof absence, "%s", why);
        return;
    }
    if (cl->get_platforms(PLATFORMS, platforms, &found) != QN__CL_SUCCESS || found == 0) {
        snprintf(absence, sizeof absence,
                 "the OpenCL library has no platform: install the OpenCL driver of the GPU's "
                 "vendor (it writes a file into /etc/OpenCL/vendors), or pocl-opencl-icd for "
                 "processors");
        return;
    }
    found = found < PLATFORMS ? found : PLATFORMS;
    for (uint32_t p = 0; p < found; ++p) {
        qn__cl_device devices[DEVICES];
        uint32_t here = 0;
        const uint64_t types = QN__CL_TYPE_CPU | QN__CL_TYPE_GPU | QN__CL_TYPE_ACCELERATOR;
        if (cl->get_devices(platforms[p], types, DEVICES, devices, &here) != QN__CL_SUCCESS)
            continue;
        for (uint32_t d = 0; d < here && d < DEVICES; ++d)
            add(platforms[p], devices[d]);
    }
    if (count == 0)
        explain(platforms, found);
    for (uint32_t i = 0; i < count; ++i) {
        qn__cl_entry *const e = &entries[i];
        char id[32], name[sizeof e->info.name];
        snprintf(id, sizeof id, "opencl:%u", i);
        memcpy(name, e->info.name, sizeof name);
        memcpy(e->info.id, id, sizeof id);
        snprintf(e->label, sizeof e->label, "%.20s (%.128s)", id, name);
        judge(e);
    }
}

uint32_t qn__cl_entries(void) {
    pthread_once(&once, find);
    return count;
}

const qn__cl_entry *qn__cl_entry_at(uint32_t index, const qn__cl_api **api) {
    pthread_once(&once, find);
    if (api)
        *api = cl;
    return index < count ? &entries[index] : NULL;
}

const char *qn__cl_absence(void) {
    pthread_once(&once, find);
    return absence;
}
