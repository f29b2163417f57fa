/* The exact float32 product on one device, beside cuBLAS where it is a CUDA device.
 *
 *     gpu_matmul [DEVICE [SIZE...]] [--peak TFLOPS]
 *
 * DEVICE is a name of `quern devices` (cuda:0 unless given), a SIZE n means n x n by n x n (1024,
 * 2048 and 4096 unless given). For each variant of the kernel FORWARD, which is how a training step
 * multiplies: the median of 7 samples, the fastest and the slowest, in GFLOP/s, an fma counted as
 * two, and the share of the device's float32 peak (an H200's is 67) where --peak names it.
 *
 * Verified first, by bits: 4,096 elements of each product, or all of a small one, against the
 * chain of docs/exactness.md 6.3 on the CPU. cuBLAS (float32, no TF32) adds in an order of its own,
 * so it only has to be near. Samples of all candidates take turns.
 */
#include "base/clock.h"
#include "device/cuda/cuda_gpu.h"
#include "device/gpu_call.h"
#include "device/opencl/opencl_table.h"

#include <dlfcn.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SAMPLES = 7, CHECKED = 4096, SIZES = 16, CANDIDATES = 8 };
#define SAMPLE_SECONDS 0.2

typedef struct task task;

typedef struct candidate {
    const char *name;
    qn__kernel kernel; /* QN__KERNELS: cuBLAS */
    uint32_t times;    /* products to a sample */
    double seconds[SAMPLES];
} candidate;

/* cuBLAS and what it needs of the driver, with their few names declared here. */
typedef struct cublas {
    int (*sgemm)(void *, int, int, int, int, int, const float *, const float *, int, const float *,
                 int, const float *, float *, int);
    int (*wait)(void);
    void *handle;
} cublas;

struct task {
    const qn__gpu_driver *driver;
    qn__gpu *gpu;
    uint32_t n;
    size_t floats;    /* of one matrix; columns are a multiple of QN_LD */
    float *a, *w, *y; /* on the host; w has a row of biases behind it */
    qn__gpu_memory A, W, Y, step;
    cublas blas;
};

static void fail(const char *what, const qn_error *err) {
    fprintf(stderr, "gpu_matmul: %s%s%s\n", what, err ? ": " : "", err ? err->what : "");
    if (err && err->remedy[0])
        fprintf(stderr, "            %s\n", err->remedy);
    exit(1);
}

static void must(qn_status status, const char *what, const qn_error *err) {
    if (status != QN_OK)
        fail(what, err);
}

static void *room(size_t floats) {
    float *made = calloc(floats, sizeof *made);
    if (!made)
        fail("not enough memory on the host", NULL);
    return made;
}

/* Numbers between -1 and 1; what lies behind column n stays +0. */
static void fill(float *to, uint32_t rows, uint32_t n, size_t ld, uint32_t seed) {
    for (uint32_t r = 0; r < rows; ++r)
        for (uint32_t c = 0; c < n; ++c) {
            seed = seed * 1664525u + 1013904223u;
            to[r * ld + c] = (float)(int32_t)seed * 0x1p-31f;
        }
}

static void prepare(task *t) {
    qn_error err = {0};
    const size_t ld = (t->n + QN_LD - 1) / QN_LD * QN_LD, bytes = sizeof(float);
    const qn_step step = {.items = t->n, .grain = 1};
    t->floats = t->n * ld;
    t->a = room(t->floats);
    t->w = room(t->floats + ld);
    t->y = room(t->floats);
    fill(t->a, t->n, t->n, ld, 1);
    fill(t->w, t->n + 1, t->n, ld, 2);
    must(t->driver->allocate(t->gpu, t->floats * bytes, &t->A, &err), "memory", &err);
    must(t->driver->allocate(t->gpu, (t->floats + ld) * bytes, &t->W, &err), "memory", &err);
    must(t->driver->allocate(t->gpu, t->floats * bytes, &t->Y, &err), "memory", &err);
    must(t->driver->allocate(t->gpu, sizeof step, &t->step, &err), "memory", &err);
    must(t->driver->write(t->gpu, &t->A, 0, t->a, t->floats * bytes, &err), "a copy", &err);
    must(t->driver->write(t->gpu, &t->W, 0, t->w, (t->floats + ld) * bytes, &err), "a copy", &err);
    must(t->driver->write(t->gpu, &t->step, 0, &step, sizeof step, &err), "a copy", &err);
}

static void clean(task *t) {
    t->driver->release(t->gpu, &t->A);
    t->driver->release(t->gpu, &t->W);
    t->driver->release(t->gpu, &t->Y);
    t->driver->release(t->gpu, &t->step);
    free(t->a);
    free(t->w);
    free(t->y);
}

/* FORWARD without an activation: Y = chain from the bias. */
static void launch(task *t, qn__kernel kernel) {
    qn_error err = {0};
    qn__gpu_call c = {0};
    uint32_t groups[3];
    qn__gpu_tiles(kernel, t->n, t->n, groups);
    qn__give_memory(&c, &t->step);
    qn__give_memory(&c, &t->A);
    qn__give_memory(&c, &t->W);
    qn__give_wide(&c, 0);
    qn__give_wide(&c, t->floats);
    qn__give_memory(&c, &t->Y);
    qn__give_memory(&c, &t->step);
    qn__give_memory(&c, &t->step);
    qn__give(&c, t->n);
    qn__give(&c, t->n);
    qn__give(&c, 0);
    qn__give(&c, QN_ACT_NONE);
    qn__give(&c, 0);
    qn__give_float(&c, 1.0f);
    qn__give_wide(&c, 0);
    must(t->driver->launch(t->gpu, kernel, groups, c.argument, c.count, &err), "a launch", &err);
}

/* Row by row as it lies here, a matrix is its transpose to cuBLAS: Y' = W' A'. */
static void launch_blas(task *t) {
    const float one = 1.0f, zero = 0.0f;
    const int n = (int)t->n, ld = (int)(t->floats / t->n);
    if (t->blas.sgemm(t->blas.handle, 0, 0, n, n, n, &one, t->W.handle, ld, t->A.handle, ld, &zero,
                      t->Y.handle, ld) != 0)
        fail("cublasSgemm failed", NULL);
}

static void wait_for(task *t, const candidate *c) {
    qn_error err = {0};
    float one;
    if (c->kernel == QN__KERNELS && t->blas.wait() != 0)
        fail("cuCtxSynchronize failed", NULL);
    must(t->driver->read(t->gpu, &t->Y, 0, &one, sizeof one, &err), "the device", &err);
}

static double sample(task *t, const candidate *c) {
    wait_for(t, c);
    const double begun = qn__now();
    for (uint32_t i = 0; i < c->times; ++i)
        if (c->kernel == QN__KERNELS)
            launch_blas(t);
        else
            launch(t, c->kernel);
    wait_for(t, c);
    return (qn__now() - begun) / c->times;
}

/* 1 when the product on the device is the chain, or for cuBLAS near it. */
static int verified(task *t, const candidate *c) {
    qn_error err = {0};
    const size_t ld = t->floats / t->n, all = (size_t)t->n * t->n;
    const int exact = c->kernel != QN__KERNELS;
    memset(t->y, 0xff, t->floats * sizeof *t->y);
    must(t->driver->write(t->gpu, &t->Y, 0, t->y, t->floats * sizeof *t->y, &err), "a copy", &err);
    sample(t, &(candidate){.kernel = c->kernel, .times = 1});
    must(t->driver->read(t->gpu, &t->Y, 0, t->y, t->floats * sizeof *t->y, &err), "a copy", &err);
    for (size_t i = 0; i < (all < CHECKED ? all : CHECKED); ++i) {
        /* a stride that shares no factor with powers of two */
        const size_t at = all < CHECKED ? i : i * (all / CHECKED | 1) % all;
        const size_t row = at / t->n, column = at % t->n;
        float want = exact ? t->w[t->floats + column] : 0.0f;
        for (size_t k = 0; k < t->n; ++k)
            want = fmaf(t->a[row * ld + k], t->w[k * ld + column], want);
        const float got = t->y[row * ld + column];
        if (exact ? memcmp(&got, &want, sizeof want) != 0
                  : !(fabsf(got - want) <= 1e-5f * (float)t->n)) {
            printf("    %-18s WRONG at row %zu, column %zu: %a, not %a\n", c->name, row, column,
                   (double)got, (double)want);
            return 0;
        }
    }
    return 1;
}

static int by_time(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void *symbol(void *library, const char *name, const char *where) {
    void *found = library ? dlsym(library, name) : NULL;
    if (!found)
        printf("    cuBLAS is missing: no %s in %s\n", name, where);
    return found;
}

/* Opens cuBLAS on the device's own context, so that both use the same memory. */
static int open_blas(cublas *b, uint32_t index) {
    static const char *const names[] = {"libcublas.so.13", "libcublas.so.12", "libcublas.so.11"};
    void *library = NULL, *driver = dlopen("libcuda.so.1", RTLD_NOW), *context = NULL;
    int (*create)(void **), (*retain)(void **, int), (*set)(void *);
    for (int i = 0; i < 3 && !library; ++i)
        library = dlopen(names[i], RTLD_NOW);
    *(void **)&create = symbol(library, "cublasCreate_v2", "libcublas.so.13, .12 or .11");
    *(void **)&b->sgemm = symbol(library, "cublasSgemm_v2", "libcublas.so.13, .12 or .11");
    *(void **)&b->wait = symbol(driver, "cuCtxSynchronize", "libcuda.so.1");
    *(void **)&retain = symbol(driver, "cuDevicePrimaryCtxRetain", "libcuda.so.1");
    *(void **)&set = symbol(driver, "cuCtxSetCurrent", "libcuda.so.1");
    if (!create || !b->sgemm || !b->wait || !retain || !set)
        return 0;
    if (retain(&context, (int)index) != 0 || set(context) != 0 || create(&b->handle) != 0) {
        printf("    cuBLAS cannot be used here\n");
        return 0;
    }
    return 1;
}

/* All candidates at one size; 1 when one of them was wrong. */
static int contest(task *t, candidate *all, int count, double peak) {
    int wrong = 0;
    printf("%u x %u x %u\n", t->n, t->n, t->n);
    prepare(t);
    for (int i = 0; i < count; ++i) {
        all[i].times = verified(t, &all[i]) ? 1 : 0;
        wrong |= all[i].times == 0;
        while (all[i].times > 0 && all[i].times < 1u << 14 &&
               sample(t, &all[i]) * all[i].times < SAMPLE_SECONDS)
            all[i].times *= 2;
    }
    for (int s = 0; s < SAMPLES; ++s)
        for (int i = 0; i < count; ++i)
            all[i].seconds[s] = all[i].times ? sample(t, &all[i]) : 0;
    for (int i = 0; i < count; ++i) {
        double *const s = all[i].seconds;
        const double work = 2e-9 * t->n * t->n * t->n;
        if (!all[i].times)
            continue;
        qsort(s, SAMPLES, sizeof *s, by_time);
        printf("    %-18s %10.1f GFLOP/s  (%.1f to %.1f)", all[i].name, work / s[SAMPLES / 2],
               work / s[SAMPLES - 1], work / s[0]);
        if (peak > 0)
            printf("  %.1f %% of the peak", 0.1 * work / s[SAMPLES / 2] / peak);
        printf("  %s\n", all[i].kernel == QN__KERNELS ? "near" : "bits verified");
    }
    clean(t);
    return wrong;
}

int main(int argc, char **argv) {
    const char *device = "cuda:0";
    uint32_t sizes[SIZES] = {1024, 2048, 4096}, given = 0;
    double peak = 0;
    candidate all[CANDIDATES] = {0};
    int count = 0, wrong = 0;
    task t = {0};
    qn_error err = {0};
    for (int i = 1; i < argc; ++i)
        if (strcmp(argv[i], "--peak") == 0 && i + 1 < argc)
            peak = atof(argv[++i]);
        else if (strchr(argv[i], ':'))
            device = argv[i];
        else if (given < SIZES && atoi(argv[i]) > 0 && atoi(argv[i]) <= 16384)
            sizes[given++] = (uint32_t)atoi(argv[i]);
        else
            fail("use: gpu_matmul [DEVICE [SIZE...]] [--peak TFLOPS]", NULL);
    const int cuda = strncmp(device, "cuda:", 5) == 0;
    const uint32_t index = (uint32_t)atoi(strchr(device, ':') + 1);
    const qn_compute compute = {.device_timeout = 600};
    t.driver = cuda ? &qn__cuda_gpu_driver : &qn__opencl_driver;
    must(t.driver->open(index, &compute, &t.gpu, &err), device, &err);
    const qn__gpu_facts *facts = t.driver->facts(t.gpu);
    printf("%s, %u units, the exact float32 product\n", facts->name, facts->units);
    for (int k = QN__K_FORWARD_LARGE; k <= QN__K_FORWARD_VECTOR; ++k) {
        const qn__kernel_shape *shape = qn__kernel_shape_of((qn__kernel)k);
        if (!shape->opencl_only || facts->vectors)
            all[count++] = (candidate){.name = shape->name, .kernel = (qn__kernel)k};
    }
    if (cuda && open_blas(&t.blas, index))
        all[count++] = (candidate){.name = "cuBLAS", .kernel = QN__KERNELS};
    for (uint32_t i = 0; i < (given ? given : 3); ++i) {
        t.n = sizes[i];
        wrong |= contest(&t, all, count, peak);
    }
    t.driver->close(t.gpu);
    return wrong;
}
