/*
 * conv_layers: the products of each convolution of a ready model in float32, one thread.
 *
 *     conv_layers [MODEL [BATCH [ISA]]]      (resnet20 128 auto)
 *
 * A step of training on made-up images, in the grains of `quern train`, gives all layers their
 * values; one of two items is compared with the scalar one first. Then the forward pass, the errors
 * below and the weight gradients of each convolution run by themselves over the whole batch. A line
 * has times, GFLOP/s and the part of the peak: the best rate, in between, of a product in the L1
 * cache. The time is that of the thread, and the least of several rounds. Activations, absmax and
 * updates are part of it. The last line has all batchnorms together: forward pass, errors. Errors
 * below a maxpool are products with all their zeros, which a step leaves out. */
#define LAYER_BENCH "conv_layers"
#define SCALE 20
#include "layer_bench.h"
#include "model/recipe/defaults.h"
#include "model/recipe/ready_text.h"

enum { ROUNDS = 7, THREADS = 2, CLASSES = 10 };

/* Seconds of this thread: others that take its processor do not count. */
static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void make_program(const char *name, qn__shape *input) {
    const qn__ready *ready = qn__ready_find(name, strlen(name));
    const qn__labels_like labels = {QN__TASK_CLASSIFY, QN__LOSS_CROSS_ENTROPY, CLASSES, 0};
    static qn__network network;
    qn_error err;
    if (!ready)
        stop("not a ready model");
    qn__text text = {0};
    qn__ready_text(ready, &labels, &text);
    check(qn__network_parse(text.data, &network, &err), &err);
    check(qn__network_program(&network, ready->input, layer, &program.parameters, &err), &err);
    program.layers = network.layers;
    *input = ready->input;
    free(text.data);
}

/* Opens a worker and trains one step. */
static qn__worker *train(const char *isa, uint32_t items, const qn__feed *feed, float *parameters) {
    const qn_compute compute = {.size = sizeof compute, .threads = THREADS, .isa = isa};
    const qn__batch batch = {.feed = feed, .items = items};
    const qn__recipe recipe = {.init = QN__INIT_AUTO, .seed = 1};
    const qn__update update = {.rate = 0.01f, .gradient = 0x1p-20f / (float)items, .step = 1};
    qn__state state = {.parameters = parameters};
    qn__worker *w;
    qn__tally tally = {0};
    qn_error err;
    program.batch = items;
    const uint32_t grain = qn__default_grain((uint64_t)layer[0].from.height * layer[0].from.width);
    program.grain = items < grain ? items : grain;
    program.partial_limit = qn__partial_limit((items + grain - 1) / grain);
    qn__initial_parameters(layer, program.layers, &recipe, parameters);
    check(qn__cpu_open(0, &compute, &program, &w, &err), &err);
    check(qn__cpu_load(w, &state, &err), &err);
    check(qn__cpu_train_step(w, &batch, NULL, &update, &tally, &err), &err);
    check(qn__cpu_save(w, &state, &err), &err);
    return w;
}

static void verify(const char *isa, const qn__feed *feed) {
    const size_t bytes = program.parameters * sizeof(float);
    float *own = buffer(bytes), *scalar = buffer(bytes);
    qn__cpu_close(train(isa, 2, feed, own));
    qn__cpu_close(train("scalar", 2, feed, scalar));
    if (memcmp(own, scalar, bytes) != 0)
        stop("the parameters are not those of the scalar step");
    free(own);
    free(scalar);
}

/* ------------------------------------------------------------------------------------- timing */

typedef void phase_fn(const qn__cpu_pass *pass, int thread, uint32_t layer, uint32_t phase);

static double seconds(phase_fn *phase, const qn__cpu_pass *pass, uint32_t index) {
    double least = 1e9;
    for (int round = 0; round < ROUNDS; ++round) {
        qn__cpu_begin_phases(pass->worker);
        const double begun = now();
        phase(pass, 0, index, 0);
        const double taken = now() - begun;
        least = taken < least ? taken : least;
    }
    return least;
}

/* GFLOP/s of a product whose operands stay in the L1 cache. */
static double peak(const qn__cpu_kernels *k) {
    double best = 0;
    for (int round = 0; round < ROUNDS; ++round) {
        enum { ROWS = 12, DEPTH = 64, TIMES = 400 };
        static _Alignas(64) float a[ROWS * DEPTH], b[2 * DEPTH * QN__PANEL],
            c[2 * ROWS * QN__PANEL];
        static const size_t at[DEPTH / QN__PANEL] = {0, 192, 384, 576}, bt[] = {0, 256, 512, 768};
        const qn__cpu_chain chain = {.k = DEPTH, .a = at, .b = bt};
        const double begun = now();
        for (int i = 0; i < TIMES; ++i)
            k->matmul(ROWS, &chain, a, b, DEPTH * QN__PANEL, c, ROWS * QN__PANEL, NULL, 2);
        const double rate = 2e-9 * TIMES * ROWS * DEPTH * 2 * QN__PANEL / (now() - begun);
        best = rate > best ? rate : best;
    }
    return best;
}

/* What the phases of a layer took, and their work in GFLOP; 0 where there is none. */
typedef struct measured {
    double taken[3], work[3];
} measured;

static measured measure(const qn__cpu_pass *pass, uint32_t index) {
    phase_fn *const phase[3] = {qn__cpu_walk_forward, qn__cpu_walk_backward, qn__cpu_walk_gradient};
    const qn__flops flops = qn__layer_flops(&layer[index]);
    const double items = 1e-9 * pass->batch->items;
    measured m = {.work = {(double)flops.forward * items,
                           (double)(index ? flops.backward : 0) * items,
                           (double)flops.gradient * items}};
    for (int i = 0; i < 3; ++i)
        m.taken[i] = m.work[i] > 0 ? seconds(phase[i], pass, index) : 0;
    return m;
}

/* Adds the times of a batchnorm. */
static void measure_norm(const qn__cpu_pass *pass, uint32_t index, measured *all) {
    const qn__cpu_kind *kind = pass->worker->layer[index].kind;
    all->taken[0] += seconds(kind->forward, pass, index);
    all->taken[1] += seconds(kind->backward, pass, index);
}

static void print(uint32_t index, const measured *m, double fma) {
    const qn__layer *l = &layer[index];
    printf("%3u %4u -> %-4u %2ux%-2u stride %u at %2ux%-3u", index, l->from.channels,
           l->to.channels, l->window.kernel[0], l->window.kernel[1], l->window.stride[0],
           l->to.height, l->to.width);
    for (int i = 0; i < 3; ++i)
        if (m->work[i] > 0)
            printf("  %6.2f ms %5.1f %3.0f%%", 1e3 * m->taken[i], m->work[i] / m->taken[i],
                   100 * m->work[i] / m->taken[i] / fma);
        else
            printf("%21s", "");
    printf("\n");
}

/* A step lists the errors below a maxpool, which are mostly zeros (cpu_sparse.c). The lists do not
 * outlive the step. So here they count as too long, and the products are dense. */
static void forget_lists(qn__worker *w) {
    for (uint32_t l = 0; l < program.layers; ++l)
        atomic_store(&w->layer[l].sparse.used, w->layer[l].sparse.capacity + 1);
}

static void report(const char *name, const qn__cpu_pass *pass) {
    static measured of[QN__MAX_LAYERS];
    measured all = {0}, norms = {0};
    double fma = peak(pass->worker->kernels);
    for (uint32_t l = 0; l < program.layers; ++l) {
        if (layer[l].kind == QN__LAYER_BATCHNORM)
            measure_norm(pass, l, &norms);
        if (layer[l].kind != QN__LAYER_CONV || layer[l].conv_groups)
            continue;
        of[l] = measure(pass, l);
        const double again = peak(pass->worker->kernels);
        fma = again > fma ? again : fma;
    }
    printf("%s, batch %u, %s, peak %.1f GFLOP/s; forward, errors, gradient: time, GFLOP/s, part of "
           "the peak\n",
           name, pass->batch->items, pass->worker->kernels->name, fma);
    for (uint32_t l = 0; l < program.layers; ++l) {
        if (of[l].work[0] > 0)
            print(l, &of[l], fma);
        for (int i = 0; i < 3; ++i) {
            all.taken[i] += of[l].taken[i];
            all.work[i] += of[l].work[i];
        }
    }
    printf("%-38s", "all");
    for (int i = 0; i < 3; ++i)
        printf("  %6.2f ms %5.1f %3.0f%%", 1e3 * all.taken[i], all.work[i] / all.taken[i],
               100 * all.work[i] / all.taken[i] / fma);
    printf("\n%-38s  %6.2f ms %10s  %6.2f ms\n", "batchnorms", 1e3 * norms.taken[0], "",
           1e3 * norms.taken[1]);
}

int main(int argc, char **argv) {
    const char *name = argc > 1 ? argv[1] : "resnet20", *isa = argc > 3 ? argv[3] : "auto";
    const uint32_t items = argc > 2 ? (uint32_t)strtoul(argv[2], NULL, 10) : 128;
    qn__shape input;
    if (items < 2 || items > 4096)
        stop("BATCH is 2 to 4096");
    make_program(name, &input);
    const uint32_t features = qn__shape_volume(input);
    uint8_t *values = buffer((size_t)items * features);
    int32_t *labels = buffer(items * sizeof *labels);
    for (size_t i = 0; i < (size_t)items * features; ++i)
        values[i] = (uint8_t)(i * 2654435761u >> 13);
    for (uint32_t i = 0; i < items; ++i)
        labels[i] = (int32_t)(i % CLASSES);
    const qn__feed feed = {.type = QN__ELEMENT_U8,
                           .features = features,
                           .items = items,
                           .values = values,
                           .labels = labels};
    verify(isa, &feed);
    float *parameters = buffer(program.parameters * sizeof *parameters);
    qn__worker *w = train(isa, items, &feed, parameters);
    const qn__batch batch = {.feed = &feed, .items = items};
    const qn__update update = {.rate = 0.0f, .gradient = 0.0f, .step = 2};
    const qn__cpu_pass pass = {.worker = w, .batch = &batch, .update = &update, .training = 1};
    forget_lists(w);
    report(name, &pass);
    qn__cpu_close(w);
    free(parameters);
    free(values);
    free(labels);
    return 0;
}
