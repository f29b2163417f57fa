/* The layer that gpu_matmul measures: n inputs, n outputs and n items, hidden behind a narrow one,
 * with the kernels and arguments that training gives it. A worker opens the device and computes a
 * step as in any training, but over a driver that notes each launch on its way; what was noted can
 * then be launched alone, and its kernel be exchanged for another variant. */
#ifndef QN_BENCH_GPU_MATMUL_LAYER_H
#define QN_BENCH_GPU_MATMUL_LAYER_H

#include "device/gpu_call.h"
#include "device/gpu_worker.h"
#include "num/fixed.h"
#include "num/sums.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NARROW = 16, GRAIN = 32, NOTES = 64 };

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

/* A worker of one arithmetic behind its step. */
typedef struct trained {
    qn__program program;
    qn__worker *worker;
    float *inputs; /* [n][ld(n)], of the layer, on the host */
    noted product; /* its forward product in the step */
    /* What packs the layer's items and its weights (integers only). */
    noted items, greatest, weights;
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

static inline void *room(size_t count, size_t bytes) {
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
    net->layer[0] =
        (qn__layer){.in = NARROW, .out = n, .activation = QN__ACT_TANH, .biases = first};
    net->layer[1] = (qn__layer){.in = n,
                                .out = n,
                                .activation = QN__ACT_SOFTMAX,
                                .weights = first + n,
                                .biases = first + n + second};
    net->parameters = room(net->count, sizeof(float));
    net->values = room(first, sizeof(float));
    net->labels = room(n, sizeof(int32_t));
    fill(net->parameters, first + n, 0.5f, 1);
    fill(net->parameters + first + n, second + n, sqrtf(3.0f / (float)n), 2);
    fill(net->values, first, 1.0f, 3);
    net->feed =
        (qn__feed){.features = NARROW, .items = n, .values = net->values, .labels = net->labels};
}

static inline void drop_network(network *net) {
    free(net->parameters);
    free(net->values);
    free(net->labels);
}

/* ---------------------------------------------------------------- the step */

/* The driver below the one that notes; what it noted. */
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

static inline int is_forward(qn__kernel k) {
    return (k >= QN__K_FORWARD_LARGE && k <= QN__K_FORWARD_VECTOR) ||
           (k >= QN__K_WHOLE_FORWARD_I7_LARGE && k <= QN__K_WHOLE_FORWARD_I21_SMALL) ||
           (k >= QN__K_WHOLE_FORWARD_I7_MATRIX_LARGE && k <= QN__K_WHOLE_FORWARD_I21_MATRIX_SMALL);
}

/* The last of the step's forward products is that of the layer, the launch before it packs its
 * items; its weights were packed last when the parameters came. */
static inline void keep_notes(trained *t) {
    for (uint32_t i = 0; i < notes_count; ++i) {
        const noted *n = &notes[i];
        if (n->kernel == QN__K_GREATEST)
            t->greatest = *n;
        if (n->kernel == QN__K_FIX_WEIGHTS)
            t->weights = *n;
        if (!is_forward(n->kernel))
            continue;
        t->product = *n;
        t->items = notes[i - 1];
    }
}

static inline void train(trained *t, const qn__gpu_driver *driver, uint32_t index,
                         const network *net, qn__arith arith) {
    static qn__gpu_driver noting;
    qn_error err = {0};
    const qn_compute compute = {.device_timeout = 600};
    const uint32_t grains = (net->n + GRAIN - 1) / GRAIN;
    const qn__state state = {.parameters = net->parameters};
    const qn__batch batch = {.feed = &net->feed, .items = net->n};
    *t = (trained){.program = {.layers = 2,
                               .layer = net->layer,
                               .parameters = net->count,
                               .arith = arith,
                               .batch = net->n,
                               .grain = GRAIN,
                               .unit = 44,
                               .partial_limit = qn__partial_limit(grains)}};
    noting_below = driver;
    noting = *driver;
    noting.launch = note_launch;
    notes_count = 0;
    must(qn__gpu_open(&noting, index, &compute, &t->program, &t->worker, &err), "the device", &err);
    must(qn__gpu_load(t->worker, &state, &err), "the parameters", &err);
    must(qn__gpu_train_grains(t->worker, &batch, 0, grains, &err), "a step", &err);
    keep_notes(t);
    const qn__gpu_memory *from = &t->worker->layer[0].output;
    const size_t floats = net->n * (size_t)qn__gpu_ld(net->n);
    t->inputs = room(floats, sizeof(float));
    must(driver->read(t->worker->gpu, from, 0, t->inputs, floats * sizeof(float), &err), "a copy",
         &err);
}

static inline void drop_trained(trained *t) {
    qn__gpu_close(t->worker);
    free(t->inputs);
}

/* ---------------------------------------------------------------- one launch of it */

static inline void again(const trained *t, const noted *n) {
    qn_error err = {0};
    must(noting_below->launch(t->worker->gpu, n->kernel, n->groups, n->call.argument, n->call.count,
                              &err),
         "a launch", &err);
}

/* The layer's product by a variant. */
static inline void multiply(const trained *t, qn__kernel kernel) {
    noted n = t->product;
    const uint32_t side = t->program.layer[1].out;
    n.kernel = kernel;
    qn__gpu_tiles(kernel, side, side, n.groups);
    if (t->program.arith != QN__ARITH_F32)
        n.groups[0] *= n.groups[1], n.groups[1] = 1;
    again(t, &n);
}

static inline void pack_items(const trained *t) { again(t, &t->items); }

static inline void pack_weights(const trained *t) {
    again(t, &t->greatest);
    again(t, &t->weights);
}

/* Output o of item r as docs/exactness.md has it (6.3, 15.4), from the inputs that the device made.
 */
static inline float wanted(const trained *t, const network *net, uint32_t r, uint32_t o) {
    const qn__layer *l = &net->layer[1];
    const float *a = t->inputs + r * (size_t)qn__gpu_ld(net->n);
    const qn__layer one = {.in = l->in,
                           .out = 1,
                           .weights = l->weights + (uint64_t)o * l->in,
                           .biases = l->biases + o};
    float z = net->parameters[one.biases];
    if (t->program.arith != QN__ARITH_F32) {
        qn__fixed_forward(qn__arith_bits(t->program.arith), &one, net->parameters, a, &z);
        return z;
    }
    for (uint32_t k = 0; k < l->in; ++k)
        z = fmaf(a[k], net->parameters[one.weights + k], z);
    return z;
}

#endif
