/* Programs of user kernels: what the fake NVRTC kept is compiled as C by the system's compiler,
 * with the words of CUDA that the text uses. */
#include "fake_cuda_text.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { NAME = 40 };

struct text_program {
    void *library; /* NULL: not compiled */
    qn_emulated_kernel kernel;
    char name[NAME], letters[MOST_ARGUMENTS + 1];
};

static const char words[] =
    "#include <math.h>\n#include <stdint.h>\n#include <string.h>\n"
    "#define __CUDACC__ 1\n#define __device__\n#define __global__\n#define __forceinline__ inline\n"
    "#define __launch_bounds__(...)\n#define __shared__ static _Thread_local\n"
    "typedef struct { float x, y; } float2;\ntypedef struct { float x, y, z, w; } float4;\n"
    "typedef struct { int x, y; } int2;\ntypedef struct { int x, y, z, w; } int4;\n"
    "typedef struct { unsigned x, y, z; } fake_place;\n"
    "static unsigned (*fake_lane)(void), (*fake_group)(int), (*fake_groups)(int);\n"
    "static void (*fake_barrier)(void);\n"
    "#define threadIdx ((fake_place){fake_lane(), 0, 0})\n"
    "#define blockIdx ((fake_place){fake_group(0), fake_group(1), fake_group(2)})\n"
    "#define gridDim ((fake_place){fake_groups(0), fake_groups(1), fake_groups(2)})\n"
    "#define __syncthreads() fake_barrier()\n"
    "static unsigned __float_as_uint(float x) { unsigned i; memcpy(&i, &x, 4); return i; }\n"
    "static int __float_as_int(float x) { int i; memcpy(&i, &x, 4); return i; }\n"
    "static float __int_as_float(int i) { float x; memcpy(&x, &i, 4); return x; }\n"
    "static long long __double_as_longlong(double x)\n"
    "{ long long i; memcpy(&i, &x, 8); return i; }\n"
    "static double __longlong_as_double(long long i)\n"
    "{ double x; memcpy(&x, &i, 8); return x; }\n"
    "#define __umulhi(a, b) ((unsigned)((uint64_t)(a) * (b) >> 32))\n"
    "static unsigned long long __umul64hi(unsigned long long a, unsigned long long b) {\n"
    "    const uint64_t a0 = (unsigned)a, a1 = a >> 32, b0 = (unsigned)b, b1 = b >> 32;\n"
    "    const uint64_t low = a0 * b0, left = a1 * b0 + (low >> 32);\n"
    "    const uint64_t right = a0 * b1 + (unsigned)left;\n"
    "    return a1 * b1 + (left >> 32) + (right >> 32);\n}\n"
    "#define __fmaf_rn(a, b, c) fmaf(a, b, c)\n#define __fma_rn(a, b, c) fma(a, b, c)\n"
    "#define __fdiv_rn(a, b) ((a) / (b))\n#define __ddiv_rn(a, b) ((a) / (b))\n"
    "#define __fsqrt_rn(a) sqrtf(a)\n#define __dsqrt_rn(a) sqrt(a)\n"
    "#define __float2ll_rn(x) ((long long)rintf(x))\n#define __ll2float_rn(x) ((float)(x))\n"
    "#define __float2int_rn(x) ((int)rintf(x))\n"
    "#define atomicMax(p, v) (*(p) = *(p) > (v) ? *(p) : (v))\n"
    "#define atomicAdd(p, v) (*(p) += (v))\n#define QN_DOUBLE 1\n";

/* The letters of a kernel's arguments, as the text declares them; 0: it has no such kernel. */
static int read_arguments(const char *text, text_program *p) {
    char opened[NAME + 2];
    int n = 0;
    snprintf(opened, sizeof opened, "%s(", p->name);
    const char *at = strstr(text, opened), *end = at ? strchr(at, ')') : NULL;
    for (at = at ? at + strlen(opened) : NULL; at && end && n < MOST_ARGUMENTS; at++) {
        const char *comma = memchr(at, ',', (size_t)(end - at));
        const size_t size = (size_t)((comma ? comma : end) - at);
        p->letters[n++] = memchr(at, '*', size) ? 'M' : memmem(at, size, "qn_u64", 6) ? 'U' : 'u';
        if (!comma)
            return 1;
        at = comma;
    }
    return 0;
}

/* The function that the lanes call, and the one that takes what they ask for. */
static void write_ends(FILE *file, const text_program *p) {
    fprintf(file, "\n#line 1 \"fake\"\nvoid fake_call(void *const *a) {\n    %s(", p->name);
    for (int i = 0; p->letters[i]; i++)
        fprintf(file, "%s*(%s const *)a[%d]", i ? ", " : "",
                p->letters[i] == 'M'   ? "void *"
                : p->letters[i] == 'U' ? "qn_u64"
                                       : "qn_u32",
                i);
    fprintf(file, ");\n}\n"
                  "void fake_set(unsigned (*lane)(void), unsigned (*group)(int),\n"
                  "              unsigned (*groups)(int), void (*barrier)(void)) {\n"
                  "    fake_lane = lane; fake_group = group; fake_groups = groups;\n"
                  "    fake_barrier = barrier;\n}\n");
}

/* C has no extern "C". */
static void write_text(FILE *file, const char *text) {
    static const char linkage[] = "extern \"C\"";
    for (const char *next; (next = strstr(text, linkage)); text = next + sizeof linkage - 1)
        fwrite(text, 1, (size_t)(next - text), file);
    fputs(text, file);
}

static unsigned lane(void) { return qn_emulated_now.lane; }
static unsigned group(int d) { return qn_emulated_now.group[d]; }
static unsigned groups(int d) { return qn_emulated_now.groups[d]; }

static int write_source(const char *path, const text_program *p, const char *text) {
    FILE *file = fopen(path, "we");
    if (!file)
        return 0;
    fputs(words, file);
    write_text(file, text);
    write_ends(file, p);
    return fclose(file) == 0;
}

/* Compiled to a new folder. The name of the library is its text's, so that it can be kept where
 * QN_FAKE_KEEP says. */
static void *compile(const text_program *p, const char *text) {
    const char *keep = getenv("QN_FAKE_KEEP");
    char folder[] = "/tmp/fake-cuda-XXXXXX", source[64], made[64], kept[512], command[1024];
    uint64_t hash = 14695981039346656037u;
    for (const char *c = text; *c; c++)
        hash = (hash ^ (unsigned char)*c) * 1099511628211u;
    snprintf(kept, sizeof kept, "%s/fake-%016llx.so", keep ? keep : "", (unsigned long long)hash);
    void *library = keep ? dlopen(kept, RTLD_NOW | RTLD_LOCAL) : NULL;
    if (library || !mkdtemp(folder))
        return library;
    snprintf(source, sizeof source, "%s/kernel.c", folder);
    snprintf(made, sizeof made, "%s/kernel.so", folder);
    snprintf(command, sizeof command,
             "cc -std=gnu17 -O1 -w -fPIC -shared -ffp-contract=off -fwrapv -o %s %s -lm", made,
             source);
    if (write_source(source, p, text) && system(command) == 0)
        library = dlopen(made, RTLD_NOW | RTLD_LOCAL);
    unlink(source);
    if (!keep || rename(made, kept) != 0)
        unlink(made);
    rmdir(folder);
    return library;
}

text_program *text_program_make(const char *text) {
    static const char *const names[] = {"qn_user_items", "qn_user_totals", "qn_user_trials"};
    text_program *p = calloc(1, sizeof *p);
    if (!p)
        abort();
    for (int i = 0; i < 3 && !p->letters[0]; i++) {
        snprintf(p->name, sizeof p->name, "%s", names[i]);
        if (!read_arguments(text, p))
            p->letters[0] = '\0';
    }
    if (p->letters[0])
        p->library = compile(p, text);
    void *const call = p->library ? dlsym(p->library, "fake_call") : NULL;
    void *const set = p->library ? dlsym(p->library, "fake_set") : NULL;
    void (*put)(unsigned (*)(void), unsigned (*)(int), unsigned (*)(int), void (*)(void));
    if (!call || !set) {
        text_program_free(p);
        return NULL;
    }
    memcpy(&put, &set, sizeof put);
    put(lane, group, groups, qn_emulated_barrier);
    p->kernel = (qn_emulated_kernel){.name = p->name, .arguments = p->letters};
    memcpy(&p->kernel.call, &call, sizeof call);
    return p;
}

const qn_emulated_kernel *text_program_kernel(const text_program *p, const char *name) {
    return strcmp(name, p->name) == 0 ? &p->kernel : NULL;
}

void text_program_free(text_program *p) {
    if (p && p->library)
        dlclose(p->library);
    free(p);
}
