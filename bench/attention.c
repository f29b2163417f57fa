/*
 * attention: the layer by itself in float32, causal, with heads of 64 channels.
 *
 *     attention [POSITIONS [BATCH [THREADS [HEADS [ISA]]]]]      (256 8 2 6 auto)
 *
 * A step of training on made-up numbers gives all layers their values. Then the forward pass and
 * the errors of the layer run by themselves, in turn with a product in the L1 cache, which gives
 * the peak. Times are those of the processor, of the thread that has the most. Lines: milliseconds
 * of the median round, GFLOP/s of the pairs that see each other, and their part of the peak. The
 * backward pass counts five products: scores again, and four others. */
#define LAYER_BENCH "attention"
#define SCALE 20
#include "layer_bench.h"

enum { ROUNDS = 15, CLASSES = 10, WIDTH = 64, ATTENTION = 1, MOST_THREADS = 64 };

static void make_program(uint32_t positions, uint32_t heads) {
    static qn__network network;
    char text[128];
    qn_error err;
    snprintf(text, sizeof text, "conv %u 1x1; attention %u causal; globalpool; dense 10 softmax",
             3 * heads * WIDTH, heads);
    check(qn__network_parse(text, &network, &err), &err);
    check(qn__network_program(&network, (qn__shape){16, 1, positions, QN__SEQUENCE}, layer,
                              &program.parameters, &err),
          &err);
    program.layers = network.layers;
}

static qn__worker *train(const char *isa, int threads, uint32_t items, const qn__feed *feed) {
    const qn_compute compute = {.size = sizeof compute, .threads = threads, .isa = isa};
    const qn__batch batch = {.feed = feed, .items = items};
    const qn__update update = {.rate = 0.01f, .gradient = 0x1p-20f / (float)items, .step = 1};
    float *parameters = buffer(program.parameters * sizeof *parameters);
    qn__state state = {.parameters = parameters};
    qn__worker *w;
    qn__tally tally = {0};
    qn_error err;
    program.batch = items;
    program.grain = items < 8 ? items : 8;
    program.partial_limit = qn__partial_limit((items + program.grain - 1) / program.grain);
    static const qn__recipe recipe = {.init = QN__INIT_AUTO, .seed = 1};
    qn__initial_parameters(layer, program.layers, &recipe, parameters);
    check(qn__cpu_open(0, &compute, &program, &w, &err), &err);
    check(qn__cpu_load(w, &state, &err), &err);
    check(qn__cpu_train_step(w, &batch, NULL, &update, &tally, &err), &err);
    free(parameters);
    return w;
}

/* Seconds of this thread: others that take its processor do not count. */
static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

typedef struct job {
    const qn__cpu_pass *pass;
    qn__cpu_phase *phase;
    double taken[MOST_THREADS];
} job;

static void run(void *context, int thread) {
    job *j = context;
    const double begun = now();
    j->phase(j->pass, thread, ATTENTION, 0);
    j->taken[thread] = now() - begun;
}

/* Of the thread that computed the longest. */
static double seconds(const qn__cpu_pass *pass, qn__cpu_phase *phase) {
    job j = {pass, phase, {0}};
    double most = 0;
    qn__cpu_begin_phases(pass->worker);
    qn__pool_run(pass->worker->pool, run, &j);
    for (int t = 0; t < pass->worker->threads; ++t)
        most = j.taken[t] > most ? j.taken[t] : most;
    return most;
}

/* GFLOP/s of one thread's product whose operands stay in the L1 cache. */
static double peak(const qn__cpu_kernels *k) {
    enum { ROWS = 12, DEPTH = 64, TIMES = 4000 };
    static _Alignas(64) float a[ROWS * DEPTH], b[2 * DEPTH * QN__PANEL], c[2 * ROWS * QN__PANEL];
    static const size_t at[DEPTH / QN__PANEL] = {0, 192, 384, 576}, bt[] = {0, 256, 512, 768};
    const qn__cpu_chain chain = {.k = DEPTH, .a = at, .b = bt};
    const double begun = now();
    for (int i = 0; i < TIMES; ++i)
        k->matmul(ROWS, &chain, a, b, DEPTH * QN__PANEL, c, ROWS * QN__PANEL, NULL, 2);
    return 2e-9 * TIMES * ROWS * DEPTH * 2 * QN__PANEL / (now() - begun);
}

static int ascending(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void report(const qn__cpu_pass *pass) {
    const qn__cpu_kind *kind = pass->worker->layer[ATTENTION].kind;
    qn__cpu_phase *const phase[2] = {kind->forward, kind->backward};
    const qn__flops flops = qn__layer_flops(&layer[ATTENTION]);
    const double work[2] = {1e-9 * (double)flops.forward * pass->batch->items,
                            1e-9 * (double)flops.backward * pass->batch->items};
    double taken[2][ROUNDS], rate[ROUNDS];
    for (int round = 0; round < ROUNDS; ++round) {
        for (int i = 0; i < 2; ++i)
            taken[i][round] = seconds(pass, phase[i]);
        rate[round] = peak(pass->worker->kernels) * pass->worker->threads;
    }
    qsort(rate, ROUNDS, sizeof *rate, ascending);
    printf("%s, %u positions, %u heads, batch %u, %d threads, peak %.0f GFLOP/s\n",
           pass->worker->kernels->name, layer[ATTENTION].from.width, layer[ATTENTION].heads,
           pass->batch->items, pass->worker->threads, rate[ROUNDS / 2]);
    for (int i = 0; i < 2; ++i) {
        qsort(taken[i], ROUNDS, sizeof **taken, ascending);
        const double median = taken[i][ROUNDS / 2];
        printf("%-8s %9.3f ms %7.1f GFLOP/s %3.0f %%\n", i ? "backward" : "forward", 1e3 * median,
               work[i] / median, 100 * work[i] / median / rate[ROUNDS / 2]);
    }
}

static uint32_t number(int argc, char **argv, int i, uint32_t usual) {
    const unsigned long value = argc > i ? strtoul(argv[i], NULL, 10) : usual;
    if (value < 1 || value > 65536)
        stop("numbers are 1 to 65536");
    return (uint32_t)value;
}

int main(int argc, char **argv) {
    const uint32_t positions = number(argc, argv, 1, 256), items = number(argc, argv, 2, 8);
    const int threads = (int)number(argc, argv, 3, 2);
    if (threads > MOST_THREADS)
        stop("at most 64 threads");
    make_program(positions, number(argc, argv, 4, 6));
    const uint32_t features = 16 * positions;
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
    qn__worker *w = train(argc > 5 ? argv[5] : "auto", threads, items, &feed);
    const qn__batch batch = {.feed = &feed, .items = items};
    const qn__update update = {.rate = 0.0f, .gradient = 0.0f, .step = 2};
    const qn__cpu_pass pass = {.worker = w, .batch = &batch, .update = &update, .training = 1};
    report(&pass);
    qn__cpu_close(w);
    free(values);
    free(labels);
    return 0;
}
