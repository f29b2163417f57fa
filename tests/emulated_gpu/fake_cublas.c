/* A cuBLAS whose one product is a plain loop over the memory of the fake CUDA driver: for
 * bench/gpu_matmul, so that what it asks of the real one is tried on machines without a GPU. It
 * follows the description of cublasGemmEx: matrices lie column by column, C = op(A) op(B). */
#include "fake_cuda.h"

#include <string.h>

/* Numbers of cublas_api.h and library_types.h. */
enum { NOT_INITIALISED = 1, BAD_VALUE = 7, NOT_SUPPORTED = 15 };
enum { PLAIN = 0, TRANSPOSED = 1, R_32F = 0, R_8I = 3, R_32I = 10 };
enum { BY_FLOAT = 68, BY_INT32 = 72, BY_TF32 = 77 };

static int the_handle;

EXPORT int cublasCreate_v2(void **handle);
int cublasCreate_v2(void **handle) {
    *handle = &the_handle;
    return 0;
}

EXPORT int cublasGetVersion_v2(void *handle, int *version);
int cublasGetVersion_v2(void *handle, int *version) {
    *version = 130000;
    return handle == &the_handle ? 0 : NOT_INITIALISED;
}

/* An operand and its place on the host. */
typedef struct matrix {
    const void *data;
    int transposed, type, ld;
} matrix;

static matrix matrix_of(const void *far, int transposed, int type, int ld) {
    return (matrix){(const void *)(uintptr_t)((CUdeviceptr)(uintptr_t)far - FAR), transposed, type,
                    ld};
}

/* A number of op(M); for TF32 without the lowest 13 bits. */
static double at(const matrix *m, int row, int column, int compute) {
    const size_t place = m->transposed ? (size_t)row * (size_t)m->ld + (size_t)column
                                       : (size_t)column * (size_t)m->ld + (size_t)row;
    float v;
    uint32_t bits;
    if (m->type == R_8I)
        return ((const int8_t *)m->data)[place];
    memcpy(&bits, (const char *)m->data + place * sizeof bits, sizeof bits);
    if (compute == BY_TF32)
        bits &= 0xffffe000u;
    memcpy(&v, &bits, sizeof v);
    return v;
}

static int refused(int compute, const matrix *a, const matrix *b, const matrix *c, int m, int n,
                   int k) {
    const int whole = compute == BY_INT32;
    if (m < 1 || n < 1 || k < 1 || a->ld < (a->transposed ? k : m) ||
        b->ld < (b->transposed ? n : k) || c->ld < m)
        return BAD_VALUE;
    if (!whole && compute != BY_FLOAT && compute != BY_TF32)
        return NOT_SUPPORTED;
    if (a->type != b->type || a->type != (whole ? R_8I : R_32F) ||
        c->type != (whole ? R_32I : R_32F))
        return NOT_SUPPORTED;
    /* Products of bytes want rows at multiples of four. */
    return whole && (a->ld % 4 || b->ld % 4 || (uintptr_t)a->data % 4 || (uintptr_t)b->data % 4)
               ? NOT_SUPPORTED
               : 0;
}

EXPORT int cublasGemmEx(void *handle, int transpose_a, int transpose_b, int m, int n, int k,
                        const void *alpha, const void *a, int type_a, int ld_a, const void *b,
                        int type_b, int ld_b, const void *beta, void *c, int type_c, int ld_c,
                        int compute, int algorithm);
int cublasGemmEx(void *handle, int transpose_a, int transpose_b, int m, int n, int k,
                 const void *alpha, const void *a, int type_a, int ld_a, const void *b, int type_b,
                 int ld_b, const void *beta, void *c, int type_c, int ld_c, int compute,
                 int algorithm) {
    const matrix A = matrix_of(a, transpose_a == TRANSPOSED, type_a, ld_a);
    const matrix B = matrix_of(b, transpose_b == TRANSPOSED, type_b, ld_b);
    const matrix C = matrix_of(c, 0, type_c, ld_c);
    const float one = 1.0f;
    const int32_t whole_one = 1;
    const uint32_t zero = 0; /* of either type */
    if (handle != &the_handle)
        return NOT_INITIALISED;
    if (algorithm != -1 ||
        memcmp(alpha, type_c == R_32I ? (const void *)&whole_one : &one, sizeof one) != 0 ||
        memcmp(beta, &zero, sizeof zero) != 0)
        return BAD_VALUE;
    const int result = refused(compute, &A, &B, &C, m, n, k);
    for (int column = 0; result == 0 && column < n; ++column)
        for (int row = 0; row < m; ++row) {
            char *to = (char *)(uintptr_t)C.data +
                       ((size_t)column * (size_t)ld_c + (size_t)row) * sizeof(float);
            double sum = 0;
            for (int i = 0; i < k; ++i)
                sum += at(&A, row, i, compute) * at(&B, i, column, compute);
            const float rounded = (float)sum;
            const int32_t whole = type_c == R_32I ? (int32_t)sum : 0;
            memcpy(to, type_c == R_32I ? (const void *)&whole : &rounded, sizeof rounded);
        }
    return result;
}
