/* The expected products of gpu_matmul_layer.h, by docs/exactness.md and the scalar reference of
 * src/layer/product.h, from the operands that the device packed. */
#ifndef QN_BENCH_GPU_MATMUL_WANTED_H
#define QN_BENCH_GPU_MATMUL_WANTED_H

#include "gpu_matmul_layer.h"
#include "layer/product.h"

enum { CHECKED = 4096, CHECKED_ROWS = 4 };

static inline int bits_of(const trained *t) { return qn__arith_bits(t->program.arith); }

/* Output o of item r (6.3, 15.4). */
static inline float wanted_output(const trained *t, const network *net, uint32_t r, uint32_t o) {
    const qn__layer *l = &net->layer[1];
    const float *a = t->inputs + r * (size_t)qn__gpu_ld(net->n);
    qn__layer one = qn__layer_flat(l->in, 1, QN__ACT_NONE, l->weights + (uint64_t)o * l->in);
    one.biases = l->biases + o;
    float z = net->parameters[one.biases];
    if (bits_of(t)) {
        qn__product_intgemm_forward(bits_of(t), &one, net->parameters, a, &z);
        return z;
    }
    for (uint32_t k = 0; k < l->in; ++k)
        z = fmaf(a[k], net->parameters[one.weights + k], z);
    return z;
}

/* Errors e[n] of item r of the layer below (8.4, 15.5), through its tanh (8.5). */
static inline void wanted_errors(const trained *t, const network *net, uint32_t r, int64_t *sums,
                                 float *e) {
    const qn__layer *l = &net->layer[1];
    const size_t row = r * (size_t)qn__gpu_ld(net->n);
    const float *delta = t->errors + row, *y = t->inputs + row;
    memset(e, 0, l->in * sizeof *e);
    if (bits_of(t))
        qn__product_intgemm_backward(bits_of(t), l, net->parameters, delta, sums, e);
    for (uint32_t o = 0; o < l->out && !bits_of(t); ++o)
        for (uint32_t k = 0; k < l->in; ++k)
            e[k] = fmaf(delta[o], net->parameters[l->weights + (uint64_t)o * l->in + k], e[k]);
    for (uint32_t k = 0; k < l->in; ++k)
        e[k] = e[k] * fmaf(-y[k], y[k], 1.0f);
}

/* The exponent of the block of a grain's rows, from item `first` on. */
static inline int32_t exponent_of(const trained *t, const network *net, const float *rows,
                                  uint32_t first) {
    const size_t ld = (size_t)qn__gpu_ld(net->n); /* columns after n are 0 */
    const uint32_t items = net->n - first < GRAIN ? net->n - first : GRAIN;
    return qn__block_exponent(bits_of(t), qn__absmax(items * ld, rows + first * ld, 1));
}

/* The exponents of all grains, of inputs and errors: [2][grains], to be freed; integers only. */
static inline int32_t *exponents_of(const trained *t, const network *net) {
    const uint32_t grains = (net->n + GRAIN - 1) / GRAIN;
    int32_t *made = buffer(2 * (size_t)grains, sizeof *made);
    for (uint32_t g = 0; g < grains && bits_of(t); ++g) {
        made[g] = exponent_of(t, net, t->inputs, g * GRAIN);
        made[grains + g] = exponent_of(t, net, t->errors, g * GRAIN);
    }
    return made;
}

/* The sum of weight k of output o over all grains (8.6, 8.7, 15.6). */
static inline int64_t wanted_sum(const trained *t, const network *net, const int32_t *exponents,
                                 uint32_t k, uint32_t o) {
    const size_t ld = (size_t)qn__gpu_ld(net->n);
    const uint32_t grains = (net->n + GRAIN - 1) / GRAIN;
    int64_t sum = 0, units = 0;
    for (uint32_t g = 0; g < grains; ++g) {
        const int32_t ta = exponents[g], td = exponents[grains + g];
        int64_t n = 0;
        float chain = 0.0f;
        for (uint32_t i = g * GRAIN; i < net->n && i < (g + 1) * GRAIN; ++i) {
            const float a = t->inputs[i * ld + k], d = t->errors[i * ld + o];
            chain = fmaf(d, a, chain);
            if (bits_of(t))
                n += (int64_t)qn__quantize(d, qn__block_inverse(td)) *
                     qn__quantize(a, qn__block_inverse(ta));
        }
        units = qn__to_units(chain);
        if (bits_of(t))
            qn__intgemm_units(n, (int64_t)ta + td, t->program.partial_limit, &units);
        sum += units;
    }
    return sum;
}

/* Index of the i-th element to check: all of a small product, otherwise with a stride coprime to
 * powers of two. */
static inline size_t place_of(size_t i, size_t all) {
    return all < CHECKED ? i : i * (all / CHECKED | 1) % all;
}

static inline int wrong_at(const char *name, size_t row, size_t column) {
    printf("    %-36s WRONG at row %zu, column %zu\n", name, row, column);
    return 0;
}

/* Checks whole rows of errors. */
static inline int right_errors(const trained *t, const network *net, const char *name,
                               const float *got) {
    const uint32_t n = net->n, ld = (uint32_t)qn__gpu_ld(n);
    float *e = buffer(n, sizeof *e);
    int64_t *sums = buffer(n, sizeof *sums);
    int right = 1;
    for (uint32_t i = 0; i < CHECKED_ROWS && right; ++i) {
        const uint32_t r = (uint32_t)((uint64_t)i * (n - 1) / (CHECKED_ROWS - 1));
        wanted_errors(t, net, r, sums, e);
        for (uint32_t k = 0; k < n && right; ++k)
            if (memcmp(&got[r * (size_t)ld + k], &e[k], sizeof *e) != 0)
                right = wrong_at(name, r, k);
    }
    free(e);
    free(sums);
    return right;
}

/* 1 if a kernel's result is right, bit for bit. */
static inline int right_product(const trained *t, const network *net, product p, const char *name,
                                const void *got) {
    const size_t n = net->n, ld = (size_t)qn__gpu_ld(n), all = n * n;
    if (p == ERRORS)
        return right_errors(t, net, name, got);
    int32_t *exponents = exponents_of(t, net);
    int right = 1;
    for (size_t i = 0; i < (all < CHECKED ? all : CHECKED) && right; ++i) {
        const uint32_t row = (uint32_t)(place_of(i, all) / n),
                       column = (uint32_t)(place_of(i, all) % n);
        const size_t at = row * ld + column;
        if (p == FORWARD) {
            const float want = wanted_output(t, net, row, column);
            right = memcmp((const float *)got + at, &want, sizeof want) == 0;
        } else {
            right = ((const int64_t *)got)[at] == wanted_sum(t, net, exponents, row, column);
        }
        if (!right)
            wrong_at(name, row, column);
    }
    free(exponents);
    return right;
}

#endif
