/* NVRTC. Versions that the driver supports are tried before newer ones, since a driver may refuse
 * the output of a newer toolkit. */
#include "device/cuda/cuda_compile.h"

#include "base/memory.h"
#include "device/cuda/cuda_api.h"
#include "device/gpu/gpu.h"
#include "kernels/kernels.h"
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct nvrtc_program nvrtc_program;

typedef struct nvrtc {
    int (*version)(int *major, int *minor);
    const char *(*error_text)(int result);
    int (*create)(nvrtc_program **program, const char *text, const char *name, int headers,
                  const char *const *header, const char *const *header_name);
    int (*compile)(nvrtc_program *program, int options, const char *const *option);
    int (*destroy)(nvrtc_program **program);
    int (*log_size)(nvrtc_program *program, size_t *bytes);
    int (*log)(nvrtc_program *program, char *text);
    int (*ptx_size)(nvrtc_program *program, size_t *bytes);
    int (*ptx)(nvrtc_program *program, char *image);
    /* Available since CUDA 11.1 and 11.2. */
    int (*cubin_size)(nvrtc_program *program, size_t *bytes);
    int (*cubin)(nvrtc_program *program, char *image);
    int (*archs)(int *count);
    int (*arch_list)(int *archs);
    int major, minor;
} nvrtc;

#define PLACE(member) offsetof(nvrtc, member)

static const qn__cuda_symbol symbols[] = {
    {"nvrtcVersion", PLACE(version), 0},
    {"nvrtcGetErrorString", PLACE(error_text), 0},
    {"nvrtcCreateProgram", PLACE(create), 0},
    {"nvrtcCompileProgram", PLACE(compile), 0},
    {"nvrtcDestroyProgram", PLACE(destroy), 0},
    {"nvrtcGetProgramLogSize", PLACE(log_size), 0},
    {"nvrtcGetProgramLog", PLACE(log), 0},
    {"nvrtcGetPTXSize", PLACE(ptx_size), 0},
    {"nvrtcGetPTX", PLACE(ptx), 0},
    {"nvrtcGetCUBINSize", PLACE(cubin_size), 1},
    {"nvrtcGetCUBIN", PLACE(cubin), 1},
    {"nvrtcGetNumSupportedArchs", PLACE(archs), 1},
    {"nvrtcGetSupportedArchs", PLACE(arch_list), 1},
    {NULL, 0, 0},
};

enum { NAMES = 5, FOLDERS = 4, ROOM = 512, ARCHS = 64, OPTIONS = 16 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* protects the next two */
static nvrtc compiler;
static int state; /* 0: not tried, 1: loaded, -1: absent */
static char reason[512];

/* ---- finding the library */

/* Library names: the version of the driver's own CUDA and older ones first. */
static void order_names(int driver_version, const char *names[NAMES]) {
    static const struct {
        int version;
        const char *name;
    } known[NAMES] = {{13000, "libnvrtc.so.13"},
                      {12000, "libnvrtc.so.12"},
                      {11020, "libnvrtc.so.11.2"},
                      {11010, "libnvrtc.so.11.1"},
                      {11000, "libnvrtc.so.11.0"}};
    int n = 0;
    for (int newer = 0; newer < 2; ++newer)
        for (int i = 0; i < NAMES; ++i)
            if ((known[i].version > driver_version) == newer)
                names[n++] = known[i].name;
}

/* The system's search path, then the usual folders of toolkits. */
static void *open_anywhere(int driver_version, char *why) {
    const char *named = getenv("QUERN_NVRTC"), *home = getenv("CUDA_HOME");
    const char *path = getenv("CUDA_PATH"), *names[NAMES];
    char full[ROOM];
    if (named && *named)
        return qn__cuda_library_open((const char *const[]){named, NULL}, NULL, why);
    const char *const folders[FOLDERS] = {"", home, path, "/usr/local/cuda"};
    order_names(driver_version, names);
    for (int f = 0; f < FOLDERS; ++f)
        for (int i = 0; folders[f] && i <= NAMES; ++i) {
            const char *name = i < NAMES ? names[i] : "libnvrtc.so";
            const int size =
                snprintf(full, sizeof full, "%s%s%s", folders[f], f ? "/lib64/" : "", name);
            if (size < 0 || size >= ROOM)
                continue;
            void *library = qn__cuda_library_open((const char *const[]){full, NULL}, NULL, why);
            if (library)
                return library;
        }
    return NULL;
}

static void open_compiler(int driver_version) {
    char why[256] = "";
    void *library = open_anywhere(driver_version, why);
    state = -1;
    if (!library) {
        const char *named = getenv("QUERN_NVRTC");
        if (named && *named)
            snprintf(reason, sizeof reason,
                     "NVRTC cannot be opened where QUERN_NVRTC says: correct it or take it out of "
                     "the environment (%s)",
                     why);
        else
            snprintf(reason, sizeof reason,
                     "NVRTC, CUDA's run-time compiler, is not there; install libnvrtc of CUDA 11, "
                     "12 or 13, or set CUDA_HOME to the toolkit's folder or QUERN_NVRTC to the "
                     "library");
        return;
    }
    const char *missing = qn__cuda_library_fill(library, symbols, &compiler);
    if (missing) {
        snprintf(reason, sizeof reason,
                 "the NVRTC library found here has no function %s; install NVRTC of CUDA 11, 12 or "
                 "13, or name its library in QUERN_NVRTC",
                 missing);
        return;
    }
    if (compiler.version(&compiler.major, &compiler.minor) != 0) {
        snprintf(reason, sizeof reason, "NVRTC does not report its version; install it anew");
        return;
    }
    state = 1;
}

const char *qn__cuda_compiler_absence(int driver_version) {
    pthread_mutex_lock(&lock);
    if (state == 0)
        open_compiler(driver_version);
    pthread_mutex_unlock(&lock);
    return reason;
}

/* ---- compiling */

/* The newest architecture that NVRTC supports and the device can run, as 90 for 9.0; 0: none. */
static int choose_arch(int capability) {
    static const int of_11_0[] = {35, 37, 50, 52, 53, 60, 61, 62, 70, 72, 75, 80};
    int list[ARCHS], count = 0, best = 0;
    const int *archs = list;
    if (compiler.archs && compiler.arch_list && compiler.archs(&count) == 0 && count > 0 &&
        count <= ARCHS && compiler.arch_list(list) == 0) {
    } else {
        archs = of_11_0;
        count = sizeof of_11_0 / sizeof *of_11_0;
    }
    for (int i = 0; i < count; ++i)
        if (archs[i] <= capability && archs[i] > best)
            best = archs[i];
    return best;
}

/* Fails with the first error in NVRTC's log. */
static qn_status complain(nvrtc_program *program, int result, const char *device, qn_error *err) {
    size_t size = 0;
    char *log = NULL, line[200] = "";
    if (compiler.log_size(program, &size) == 0 && size > 1 && size < ((size_t)1 << 24) &&
        (log = qn__alloc(size + 1, 1, NULL)) && compiler.log(program, log) == 0) {
        const char *first = strstr(log, "error");
        while (first && first > log && first[-1] != '\n')
            --first;
        if (!first)
            first = log;
        snprintf(line, sizeof line, "%.*s", (int)strcspn(first, "\n"), first);
    }
    qn__free(log);
    qn__fail(err, QN_DEVICE, "NVRTC %d.%d cannot compile the kernels for %s: %s%s%s",
             compiler.major, compiler.minor, device, compiler.error_text(result),
             line[0] ? ": " : "", line);
    return qn__remedy(err, QN_DEVICE,
                      "this is a fault of Quern or of that NVRTC: install NVRTC of another CUDA "
                      "version (11 to 13), and report it");
}

static qn_status take_image(nvrtc_program *program, int machine_code, const char *device,
                            void **image, size_t *bytes, qn_error *err) {
    size_t size = 0;
    int result =
        machine_code ? compiler.cubin_size(program, &size) : compiler.ptx_size(program, &size);
    if (result != 0 || size == 0)
        return complain(program, result, device, err);
    char *data = qn__alloc(size + 1, 1, err);
    if (!data)
        return QN_MEMORY;
    result = machine_code ? compiler.cubin(program, data) : compiler.ptx(program, data);
    if (result != 0) {
        qn__free(data);
        return complain(program, result, device, err);
    }
    *image = data;
    *bytes = size;
    return QN_OK;
}

/* Splits `options` into words, in place. */
static int split_options(char *options, const char *option[OPTIONS]) {
    int count = 0;
    char *rest = NULL;
    for (char *word = strtok_r(options, " ", &rest); word && count < OPTIONS;
         word = strtok_r(NULL, " ", &rest))
        option[count++] = word;
    return count;
}

/* Changes `options`. */
static qn_status compile(const char *text, char *options, int machine_code, const char *device,
                         void **image, size_t *bytes, qn_error *err) {
    const char *option[OPTIONS];
    nvrtc_program *program = NULL;
    const int count = split_options(options, option);
    int result = compiler.create(&program, text, "quern.cu", 0, NULL, NULL);
    qn_status status;
    if (result != 0)
        status = qn__fail(err, QN_DEVICE, "NVRTC %d.%d does not start for %s: %s", compiler.major,
                          compiler.minor, device, compiler.error_text(result));
    else if ((result = compiler.compile(program, count, option)) != 0)
        status = complain(program, result, device, err);
    else
        status = take_image(program, machine_code, device, image, bytes, err);
    if (program)
        compiler.destroy(&program);
    return status;
}

/* What is compiled: a text with its digest, options, and where the program is kept. */
typedef struct source {
    const char *text, *digest, *options;
    void (*load)(const char *key, void **program, size_t *bytes, char *note);
    void (*store)(const char *key, const void *program, size_t bytes, char *note);
} source;

static qn_status make(const source *from, int capability, int driver_version, int fresh,
                      const char *device, void **image, size_t *bytes, qn_error *err) {
    char options[256], key[640], note[256];
    *image = NULL;
    *bytes = 0;
    if (qn__cuda_compiler_absence(driver_version)[0]) {
        qn__fail(err, QN_DEVICE, "%s cannot be used: the run-time compiler is missing", device);
        return qn__remedy(err, QN_DEVICE, "%s", reason);
    }
    const int chosen = choose_arch(capability);
    if (chosen == 0) {
        qn__fail(err, QN_DEVICE,
                 "NVRTC %d.%d knows no device as old as %s (compute capability "
                 "%d.%d)",
                 compiler.major, compiler.minor, device, capability / 10, capability % 10);
        return qn__remedy(err, QN_DEVICE,
                          "install NVRTC of an older CUDA version beside it and "
                          "name its library in QUERN_NVRTC");
    }
    const int machine_code = chosen == capability && compiler.cubin_size && compiler.cubin;
    snprintf(options, sizeof options, "%s %s --gpu-architecture=%s_%d",
             qn__kernel_options(QN__CUDA_C), from->options, machine_code ? "sm" : "compute",
             chosen);
    snprintf(key, sizeof key, "quern cuda 2 text %s options %s nvrtc %d.%d driver %d", from->digest,
             options, compiler.major, compiler.minor, driver_version);
    if (!fresh)
        from->load(key, image, bytes, note);
    if (*bytes)
        return QN_OK;
    const qn_status status = compile(from->text, options, machine_code, device, image, bytes, err);
    if (status == QN_OK)
        from->store(key, *image, *bytes, note);
    return status;
}

qn_status qn__cuda_compile(int capability, int driver_version, uint32_t products, int fresh,
                           const char *device, void **image, size_t *bytes, qn_error *err) {
    char options[40];
    snprintf(options, sizeof options, "-DQN_PRODUCTS=%u", products);
    const source from = {qn__kernel_text(QN__CUDA_C), qn__kernel_digest(QN__CUDA_C), options,
                         qn__gpu_cache_load, qn__gpu_cache_store};
    return make(&from, capability, driver_version, fresh, device, image, bytes, err);
}

qn_status qn__cuda_compile_text(int capability, int driver_version, const qn__gpu_text *text,
                                int fresh, const char *device, void **image, size_t *bytes,
                                qn_error *err) {
    char digest[65];
    qn__gpu_text_digest(text, digest);
    const source from = {text->text, digest, "-DQN_DOUBLE=1", qn__gpu_text_load,
                         qn__gpu_text_store};
    return make(&from, capability, driver_version, fresh, device, image, bytes, err);
}
