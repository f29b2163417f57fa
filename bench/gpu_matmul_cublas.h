/* cuBLAS on the same memory of the same device as Quern's products: float32, TF32, and products of
 * bytes, which are the ceiling for one digit of an integer. The few declarations follow
 * cublas_api.h and library_types.h of CUDA 11 to 13. */
#ifndef QN_BENCH_GPU_MATMUL_CUBLAS_H
#define QN_BENCH_GPU_MATMUL_CUBLAS_H

#include "gpu_matmul_wanted.h"

#include <dlfcn.h>

enum { BLAS_PLAIN = 0, BLAS_TRANSPOSED = 1, BLAS_USUAL = -1 };
enum { BLAS_FLOAT = 0, BLAS_INT8 = 3, BLAS_INT32 = 10 };
enum { BLAS_BY_FLOAT = 68, BLAS_BY_INT32 = 72, BLAS_BY_TF32 = 77 };

typedef enum blas_way { WAY_FLOAT, WAY_TF32, WAY_BYTES } blas_way;

typedef struct cublas {
    int (*gemm)(void *handle, int transpose_a, int transpose_b, int m, int n, int k,
                const void *alpha, const void *a, int type_a, int ld_a, const void *b, int type_b,
                int ld_b, const void *beta, void *c, int type_c, int ld_c, int compute,
                int algorithm);
    int (*wait)(void);
    void *handle;
    int version; /* 130000 and so on */
} cublas;

static inline void *symbol(void *library, const char *name, const char *where) {
    void *found = library ? dlsym(library, name) : NULL;
    if (!found)
        printf("cuBLAS is missing: no %s in %s\n", name, where);
    return found;
}

/* Opens it in the device's own context, so that both use the same memory. 0: not available. */
static inline int open_blas(cublas *b, uint32_t index) {
    static const char *const names[] = {"libcublas.so.13", "libcublas.so.12", "libcublas.so.11"};
    static const char here[] = "libcublas.so.13, .12 or .11";
    void *library = NULL, *driver = dlopen("libcuda.so.1", RTLD_NOW), *context = NULL;
    int (*create)(void **), (*version)(void *, int *), (*retain)(void **, int), (*set)(void *);
    int (*begin)(unsigned), (*device)(int *, int), ordinal = 0;
    for (int i = 0; i < 3 && !library; ++i)
        library = dlopen(names[i], RTLD_NOW);
    *(void **)&create = symbol(library, "cublasCreate_v2", here);
    *(void **)&version = symbol(library, "cublasGetVersion_v2", here);
    *(void **)&b->gemm = symbol(library, "cublasGemmEx", here);
    *(void **)&b->wait = symbol(driver, "cuCtxSynchronize", "libcuda.so.1");
    *(void **)&begin = symbol(driver, "cuInit", "libcuda.so.1");
    *(void **)&device = symbol(driver, "cuDeviceGet", "libcuda.so.1");
    *(void **)&retain = symbol(driver, "cuDevicePrimaryCtxRetain", "libcuda.so.1");
    *(void **)&set = symbol(driver, "cuCtxSetCurrent", "libcuda.so.1");
    if (!create || !version || !b->gemm || !b->wait || !begin || !device || !retain || !set)
        return 0;
    if (begin(0) != 0 || device(&ordinal, (int)index) != 0 || retain(&context, ordinal) != 0 ||
        set(context) != 0 || create(&b->handle) != 0 || version(b->handle, &b->version) != 0) {
        printf("cuBLAS cannot be used here\n");
        return 0;
    }
    return 1;
}

/* A row-major matrix is its transpose for cuBLAS. For floats: Y' = W' A', with weights by input. */
static inline int multiply_floats(const cublas *b, const trained *t, int compute) {
    const qn__gpu_layer *l = t->worker->layer;
    const int n = (int)l[1].layer->out, ld = (int)qn__gpu_ld(l[1].layer->out);
    const float one = 1.0f, zero = 0.0f;
    const char *weights = (const char *)t->worker->model.parameters.handle;
    return b->gemm(b->handle, BLAS_PLAIN, BLAS_PLAIN, n, n, n, &one,
                   weights + l[1].weights * sizeof(float), BLAS_FLOAT, ld, l[0].output.handle,
                   BLAS_FLOAT, ld, &zero, l[1].output.handle, BLAS_FLOAT, ld, compute, BLAS_USUAL);
}

/* Bytes of a row of words of all digits. */
static inline uint32_t row_of_digits(const trained *t) {
    return (uint32_t)t->program.arith * 4 * (uint32_t)qn__gpu_words(t->program.layer[1].in);
}

/* For bytes both operands are contiguous along the sum: the lowest digits of the packed items and
 * weights. */
static inline int multiply_bytes(const cublas *b, const trained *t) {
    const qn__gpu_layer *l = &t->worker->layer[1];
    const int n = (int)l->layer->out, ld = (int)row_of_digits(t);
    const int32_t one = 1, zero = 0;
    return b->gemm(b->handle, BLAS_TRANSPOSED, BLAS_PLAIN, n, n, ld / (int)t->program.arith, &one,
                   l->by_output.handle, BLAS_INT8, ld, t->worker->integers.quantized_items.handle,
                   BLAS_INT8, ld, &zero, l->output.handle, BLAS_INT32,
                   (int)qn__gpu_ld(l->layer->out), BLAS_BY_INT32, BLAS_USUAL);
}

/* 0, or cuBLAS's error number. */
static inline int multiply_by_blas(const cublas *b, const trained *t, blas_way way) {
    if (way == WAY_BYTES)
        return multiply_bytes(b, t);
    return multiply_floats(b, t, way == WAY_TF32 ? BLAS_BY_TF32 : BLAS_BY_FLOAT);
}

/* 1 if element (r, o) of a float product is within the error of its arithmetic, for any order of
 * the sum: TF32 keeps 10 fraction bits of each operand. */
static inline int near(const trained *t, const network *net, blas_way way, uint32_t r, uint32_t o,
                       float got) {
    const float *a = t->inputs + r * (size_t)qn__gpu_ld(net->n);
    const float *w = net->parameters + net->layer[1].weights + (size_t)o * net->n;
    double sum = 0, size = 0;
    for (uint32_t k = 0; k < net->n; ++k) {
        sum += (double)a[k] * w[k];
        size += fabs((double)a[k] * w[k]);
    }
    return fabs(got - sum) <= (way == WAY_TF32 ? 0x1p-9 : 0x1p-24 * net->n) * size;
}

/* Bytes of the packed operands, on the host. */
static inline int8_t *bytes_of(const trained *t, const qn__gpu_memory *memory) {
    qn_error err = {0};
    const size_t bytes = t->program.layer[1].out * (size_t)row_of_digits(t);
    int8_t *made = buffer(bytes, 1);
    must(qn__gpu_read(noting_below, t->worker->gpu, memory, 0, made, bytes, &err), "a copy", &err);
    return made;
}

/* 1 if cuBLAS's result is close enough; for bytes, if it is exact. */
static inline int right_blas(const trained *t, const network *net, blas_way way, const char *name,
                             const void *got) {
    const size_t n = net->n, ld = (size_t)qn__gpu_ld(n), all = n * n;
    const size_t row = way == WAY_BYTES ? row_of_digits(t) : 0;
    int8_t *items = NULL, *weights = NULL;
    int right = 1;
    if (way == WAY_BYTES) {
        items = bytes_of(t, &t->worker->integers.quantized_items);
        weights = bytes_of(t, &t->worker->layer[1].by_output);
    }
    for (size_t i = 0; i < (all < CHECKED ? all : CHECKED) && right; ++i) {
        const size_t r = place_of(i, all) / n, o = place_of(i, all) % n;
        int32_t sum = 0;
        for (size_t k = 0; k < n && items; ++k)
            sum += items[r * row + k] * weights[o * row + k];
        right = items
                    ? ((const int32_t *)got)[r * ld + o] == sum
                    : near(t, net, way, (uint32_t)r, (uint32_t)o, ((const float *)got)[r * ld + o]);
        if (!right)
            wrong_at(name, r, o);
    }
    free(items);
    free(weights);
    return right;
}

#endif
