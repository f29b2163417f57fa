/* The layer that gpu_matmul measures: n inputs, n outputs and n items, after a narrow layer, with
 * the kernels and arguments of training. A worker opens the device and computes a training step
 * through a driver that records each launch. A recorded launch can then be repeated alone, with
 * another variant of its kernel. */
#ifndef QN_BENCH_GPU_MATMUL_LAYER_H
#define QN_BENCH_GPU_MATMUL_LAYER_H

#include "device/gpu/gpu_call.h"
#include "device/gpu/gpu_worker.h"
#include "num/intgemm_reference.h"
#include "num/sums.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NARROW = 16, GRAIN = 32, NOTES = 64 };

/* The products of the layer: its outputs, the errors of the layer below, its weights' gradient. */
typedef enum product { FORWARD, ERRORS, GRADIENT, PRODUCTS } product;

typedef struct noted {
    qn__kernel kernel;
    uint32_t groups[3];
    qn__gpu_call call;
} noted;

/* The network 16-n-n and n items, the same for every arithmetic. */
typedef struct network {
    uint32_t n;
    qn__layer layer[2];
    uint64_t count;    /* of parameters */
    float *parameters; /* in the order of num/program.h */
    float *values;     /* [n][NARROW] */
    int32_t *labels;
    qn__feed feed;
} network;

/* A product as the step launched it, and the packing of its operands (integers only). */
typedef struct launched {
    noted product, packing[2];
    int packings;
} launched;

/* A worker of one arithmetic after its step. */
typedef struct trained {
    qn__program program;
    qn__worker *worker;
    launched of[PRODUCTS];
    noted absmax, weights;              /* the packing of the layer's weights */
    const qn__gpu_memory *to[PRODUCTS]; /* memory of the products' results, */
    size_t offset[PRODUCTS];            /* from this byte on, */
    size_t bytes[PRODUCTS];             /* [n][ld(n)] floats or int64 */
    float *inputs, *errors;             /* [n][ld(n)], of the layer, on the host */
} trained;

static inline void fail(const char *what, const qn_error *err) {
    fprintf(stderr, "gpu_matmul: %s%s%s\n", what, err ? ": " : "", err ? err->what : "");
    if (err && err->remedy[0])
        fprintf(stderr, "            %s\n", err->remedy);
    exit(1);
}

static inline void must(qn_status status, const char *what, const qn_error *err) {
    if (status != QN_OK)
        fail(what, err);
}

static inline void *buffer(size_t count, size_t bytes) {
    void *made = calloc(count, bytes);
    if (!made)
        fail("not enough memory on the host", NULL);
    return made;
}

/* ---------------------------------------------------------------- the network */

/* Numbers from -most to most. */
static inline void fill(float *to, uint64_t count, float most, uint32_t seed) {
    for (uint64_t i = 0; i < count; ++i) {
        seed = seed * 1664525u + 1013904223u;
        to[i] = most * ((float)(int32_t)seed * 0x1p-31f);
    }
}

static inline void make_network(network *net, uint32_t n) {
    const uint64_t first = (uint64_t)n * NARROW, second = (uint64_t)n * n;
    *net = (network){.n = n, .count = first + n + second + n};
    net->layer[0] = qn__layer_flat(NARROW, n, QN__ACT_TANH, 0);
    net->layer[1] = qn__layer_flat(n, n, QN__ACT_SOFTMAX, first + n);
    net->parameters = buffer(net->count, sizeof(float));
    net->values = buffer(first, sizeof(float));
    net->labels = buffer(n, sizeof(int32_t));
    fill(net->parameters, first + n, 0.5f, 1);
    fill(net->parameters + first + n, second + n, sqrtf(3.0f / (float)n), 2);
    fill(net->values, first, 1.0f, 3);
    net->feed = (qn__feed){.type = QN__ELEMENT_F32,
                           .features = NARROW,
                           .items = n,
                           .values = net->values,
                           .labels = net->labels};
}

static inline void drop_network(network *net) {
    free(net->parameters);
    free(net->values);
    free(net->labels);
}

/* ---------------------------------------------------------------- the step */

/* The driver below the recording one; what it recorded. */
static const qn__gpu_driver *noting_below;
static noted notes[NOTES];
static uint32_t notes_count;

static inline qn_status note_launch(qn__gpu *gpu, qn__kernel kernel, const uint32_t groups[3],
                                    const qn__gpu_argument *arguments, uint32_t count,
                                    qn_error *err) {
    if (notes_count < NOTES) {
        noted *n = &notes[notes_count++];
        n->kernel = kernel;
        n->call.count = count;
        memcpy(n->groups, groups, sizeof n->groups);
        memcpy(n->call.argument, arguments, count * sizeof *arguments);
    }
    return noting_below->launch(gpu, kernel, groups, arguments, count, err);
}

/* PRODUCTS if the kernel is not a product. */
static inline product product_of(qn__kernel kernel) {
    static const struct {
        qn__kernel first, last;
    } family[][3] = {
        [FORWARD] = {{QN__K_FORWARD_LARGE, QN__K_FORWARD_VECTOR},
                     {QN__K_INTGEMM_FORWARD_I7_LARGE, QN__K_INTGEMM_FORWARD_I21_SMALL},
                     {QN__K_INTGEMM_FORWARD_I7_MATRIX_LARGE,
                      QN__K_INTGEMM_FORWARD_I21_MATRIX_SMALL}},
        [ERRORS] = {{QN__K_ERRORS_LARGE, QN__K_ERRORS_VECTOR},
                    {QN__K_INTGEMM_ERRORS_I7_LARGE, QN__K_INTGEMM_ERRORS_I21_SMALL},
                    {QN__K_INTGEMM_ERRORS_I7_MATRIX_LARGE, QN__K_INTGEMM_ERRORS_I21_MATRIX_SMALL}},
        [GRADIENT] = {
            {QN__K_GRADIENT_LARGE, QN__K_GRADIENT_VECTOR},
            {QN__K_INTGEMM_GRADIENT_I7_LARGE, QN__K_INTGEMM_GRADIENT_I21_SMALL},
            {QN__K_INTGEMM_GRADIENT_I7_MATRIX_SMALL, QN__K_INTGEMM_GRADIENT_I21_MATRIX_SMALL}}};
    for (int p = 0; p < PRODUCTS; ++p)
        for (int i = 0; i < 3; ++i)
            if (kernel >= family[p][i].first && kernel <= family[p][i].last)
                return (product)p;
    return PRODUCTS;
}

static inline int packs(qn__kernel kernel) {
    return kernel == QN__K_QUANTIZE_ITEMS || kernel == QN__K_QUANTIZE_GRAINS;
}

/* The layer is the last in the forward pass and the first in the backward pass, where the layer
 * below needs no errors. Its weights were packed last when the parameters were loaded. Operands are
 * packed right before their product. */
static inline void keep_notes(trained *t) {
    for (uint32_t i = 0; i < notes_count; ++i) {
        const noted *n = &notes[i];
        const product p = product_of(n->kernel);
        if (n->kernel == QN__K_ABSMAX)
            t->absmax = *n;
        if (n->kernel == QN__K_QUANTIZE_WEIGHTS)
            t->weights = *n;
        if (p == PRODUCTS || (p != FORWARD && t->of[p].product.call.count > 0))
            continue;
        launched *l = &t->of[p];
        l->product = *n;
        l->packings = 0;
        for (uint32_t k = i; k > 0 && l->packings < 2 && packs(notes[k - 1].kernel); --k)
            l->packing[l->packings++] = notes[k - 1];
    }
}

/* An array of the layer, on the host. */
static inline float *copy_of(const trained *t, const qn__gpu_memory *memory) {
    qn_error err = {0};
    float *made = buffer(t->bytes[FORWARD], 1);
    must(qn__gpu_read(noting_below, t->worker->gpu, memory, 0, made, t->bytes[FORWARD], &err),
         "a copy", &err);
    return made;
}

static inline void train(trained *t, const qn__gpu_driver *driver, uint32_t index,
                         const network *net, qn__arith arith) {
    static qn__gpu_driver noting;
    qn_error err = {0};
    const qn_compute compute = {.size = sizeof(qn_compute), .device_timeout = 600};
    const uint32_t grains = (net->n + GRAIN - 1) / GRAIN;
    const qn__state state = {.parameters = net->parameters};
    const qn__batch batch = {.feed = &net->feed, .items = net->n};
    *t = (trained){.program = {.layers = 2,
                               .layer = net->layer,
                               .parameters = net->count,
                               .arith = arith,
                               .batch = net->n,
                               .grain = GRAIN,
                               .gradient_scale = 44,
                               .partial_limit = qn__partial_limit(grains)}};
    noting_below = driver;
    noting = *driver;
    noting.launch = note_launch;
    notes_count = 0;
    must(qn__gpu_open(&noting, index, &compute, &t->program, &t->worker, &err), "the device", &err);
    must(qn__gpu_load(t->worker, &state, &err), "the parameters", &err);
    must(qn__gpu_train(t->worker, &batch, &err), "a step", &err);
    keep_notes(t);
    const qn__worker *w = t->worker;
    const size_t numbers = net->n * (size_t)qn__gpu_ld(net->n);
    t->to[FORWARD] = &w->layer[1].output;
    t->to[ERRORS] = qn__gpu_errors_of(w, 0);
    t->to[GRADIENT] = &w->model.sums;
    t->offset[GRADIENT] = w->layer[1].weights * sizeof(int64_t);
    t->bytes[FORWARD] = t->bytes[ERRORS] = numbers * sizeof(float);
    t->bytes[GRADIENT] = numbers * sizeof(int64_t);
    t->inputs = copy_of(t, &w->layer[0].output);
    t->errors = copy_of(t, qn__gpu_errors_of(w, 1));
}

static inline void drop_trained(trained *t) {
    qn__gpu_close(t->worker);
    free(t->inputs);
    free(t->errors);
}

/* ---------------------------------------------------------------------------- repeated launches */

static inline void again(const trained *t, const noted *n) {
    qn_error err = {0};
    must(noting_below->launch(t->worker->gpu, n->kernel, n->groups, n->call.argument, n->call.count,
                              &err),
         "a launch", &err);
}

/* A product of the layer by a variant. Gradients are overwritten, by one group for each tile; if
 * there are too few tiles for the device, a step has several groups per tile. */
static inline void multiply(const trained *t, product p, qn__kernel kernel) {
    noted n = t->of[p].product;
    const uint32_t side = t->program.layer[1].out;
    n.kernel = kernel;
    qn__gpu_tiles(kernel, side, side, n.groups);
    if (t->program.arith != QN__ARITH_F32)
        n.groups[0] *= n.groups[1], n.groups[1] = 1;
    if (p == GRADIENT) {
        n.call.argument[n.call.count - 2].value.u = 1; /* k-blocks */
        n.call.argument[n.call.count - 1].value.u = 0; /* flags */
    }
    again(t, &n);
}

/* Packs the operands of a product that depend on items. */
static inline void pack_items(const trained *t, product p) {
    for (int i = t->of[p].packings; i-- > 0;)
        again(t, &t->of[p].packing[i]);
}

static inline void pack_weights(const trained *t) {
    again(t, &t->absmax);
    again(t, &t->weights);
}

#endif
