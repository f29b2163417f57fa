/* The exact products on one device, compared with cuBLAS on a CUDA device.
 *
 *     gpu_matmul [DEVICE [SIZE...]] [--arith f32,i7,i14,i21] [--products forward,errors,gradient]
 *                [--peak TFLOPS] [--peak-bytes TOPS] [--seconds 0.1]
 *
 * DEVICE is a name of `quern devices` (default cuda:0). A SIZE n means n items by n inputs by n
 * outputs (default 1024, 2048 and 4096). The default of --arith is all arithmetics, that of
 * --products is forward. Every variant of these products that training uses on the device is
 * launched with the arguments of a step (gpu_matmul_layer.h). With integers the packing of operands
 * is timed too: of those that depend on items (in each step, for each layer) and of the weights
 * (after each update).
 *
 * The figures are the median, slowest and fastest of 7 samples of so many seconds, at 2 n^3
 * operations per product for any number of digits. Shares are given of the device's float32 peak
 * (--peak, 67 for an H200), of its peak for products of bytes (--peak-bytes, 1979 for an H200), and
 * of cuBLAS's rate for bytes. An integer of two digits needs four products of bytes, one of three
 * digits nine.
 *
 * Before timing, results are verified by bits (gpu_matmul_wanted.h): 4,096 elements of each
 * product, or all of a small one, and four rows of errors, against docs/exactness.md on the CPU,
 * with the operands that the device packed. cuBLAS in float32 and TF32 has its own order of
 * additions, so it only has to be close; its products of bytes have to be exact. Samples of all
 * candidates alternate. */
#include "base/system/clock.h"
#include "device/cuda/cuda_gpu.h"
#include "device/opencl/opencl_table.h"
#include "gpu_matmul_cublas.h"

enum { SAMPLES = 7, SIZES = 16, CANDIDATES = 64, ARITHS = 4 };

static const char *const arith_names[ARITHS] = {"f32", "i7", "i14", "i21"};
static const char *const product_names[PRODUCTS] = {"forward", "errors", "gradient"};

typedef enum work { PRODUCT, ITEMS, WEIGHTS, BLAS } work;

typedef struct candidate {
    work work;
    product product;
    qn__kernel kernel; /* of PRODUCT */
    blas_way way;
    const trained *of;
    uint32_t times; /* launches per sample; 0: left out */
    double seconds[SAMPLES];
} candidate;

/* The command line, and the device's properties. */
typedef struct options {
    const char *device;
    uint32_t sizes[SIZES], count, index;
    int cuda, ariths[ARITHS], products[PRODUCTS];
    double peak, byte_peak, seconds;
    const qn__gpu_driver *driver;
    cublas blas;
    int has_blas;
} options;

typedef struct contest {
    const options *o;
    network net;
    trained trained[ARITHS];
    candidate all[CANDIDATES];
    int count;
    void *y; /* the result of a product, on the host */
} contest;

static void add(contest *c, candidate one) {
    if (c->count < CANDIDATES)
        c->all[c->count++] = one;
}

/* ---------------------------------------------------------------- candidates */

/* Whether the device's program has a variant in the form that training uses. */
static int has(const contest *c, const trained *t, qn__kernel kernel) {
    const qn__gpu_facts *facts = t->worker->facts;
    const uint32_t tiles = facts->matrix ? QN_WITH_MATRIX : QN_WITH_LARGE;
    const product p = product_of(kernel);
    if (p >= PRODUCTS || !c->o->products[p])
        return 0;
    if (qn__kernel_shape_of(kernel)->opencl_only)
        return facts->vectors && t->program.arith == QN__ARITH_F32;
    return (qn__kernel_shape_of(kernel)->products & qn__kernel_products(t->program.arith)) != 0 &&
           qn__kernel_belongs(kernel, c->o->cuda ? QN__CUDA_C : QN__OPENCL_C,
                              qn__kernel_products(t->program.arith) | tiles);
}

/* Candidates of one arithmetic: products, and the packing of their operands. */
static void enter_one(contest *c, const trained *t) {
    for (int k = 0; k < QN__KERNELS; ++k)
        if (has(c, t, (qn__kernel)k))
            add(c, (candidate){.work = PRODUCT,
                               .product = product_of((qn__kernel)k),
                               .kernel = (qn__kernel)k,
                               .of = t});
    if (t->program.arith == QN__ARITH_F32)
        return;
    for (int p = 0; p < PRODUCTS; ++p)
        if (c->o->products[p])
            add(c, (candidate){.work = ITEMS, .product = (product)p, .of = t});
    add(c, (candidate){.work = WEIGHTS, .of = t});
}

static void enter(contest *c) {
    const trained *floats = NULL, *integers = NULL;
    for (int i = 0; i < ARITHS; ++i) {
        trained *t = &c->trained[i];
        if (!c->o->ariths[i])
            continue;
        train(t, c->o->driver, c->o->index, &c->net, (qn__arith)i);
        enter_one(c, t);
        floats = floats ? floats : t;
        integers = integers || i == QN__ARITH_F32 ? integers : t;
    }
    if (!c->o->has_blas)
        return;
    add(c, (candidate){.work = BLAS, .way = WAY_FLOAT, .of = floats});
    add(c, (candidate){.work = BLAS, .way = WAY_TF32, .of = floats});
    if (integers)
        add(c, (candidate){.work = BLAS, .way = WAY_BYTES, .of = integers});
}

static void name_of(const candidate *one, char name[64]) {
    static const char *const ways[] = {"cuBLAS float32", "cuBLAS TF32", "cuBLAS bytes"};
    static const char *const items[] = {"the items", "the errors", "the grains"};
    const char *arith = arith_names[one->of->program.arith];
    if (one->work == BLAS)
        snprintf(name, 64, "%s", ways[one->way]);
    else if (one->work == PRODUCT)
        snprintf(name, 64, "%s%s", qn__kernel_shape_of(one->kernel)->name,
                 one->kernel == one->of->of[one->product].product.kernel ? " *" : "");
    else
        snprintf(name, 64, "%s packs %s", arith,
                 one->work == ITEMS ? items[one->product] : "the weights");
}

/* ---------------------------------------------------------------- samples */

static void wait_for(const contest *c, const candidate *one) {
    qn_error err = {0};
    float last;
    const qn__worker *w = one->of->worker;
    if (one->work == BLAS && c->o->blas.wait() != 0)
        fail("cuCtxSynchronize failed", NULL);
    must(qn__gpu_read(c->o->driver, w->gpu, &w->layer[1].output, 0, &last, sizeof last, &err),
         "the device", &err);
}

/* Mean seconds of one launch. */
static double sample(const contest *c, const candidate *one) {
    wait_for(c, one);
    const double begun = qn__now();
    for (uint32_t i = 0; i < one->times; ++i)
        if (one->work == BLAS)
            (void)multiply_by_blas(&c->o->blas, one->of, one->way); /* checked before */
        else if (one->work == PRODUCT)
            multiply(one->of, one->product, one->kernel);
        else if (one->work == ITEMS)
            pack_items(one->of, one->product);
        else
            pack_weights(one->of);
    wait_for(c, one);
    return (qn__now() - begun) / one->times;
}

/* Clears the result, launches a candidate once and reads the result. */
static void try_once(contest *c, candidate *one) {
    qn_error err = {0};
    const trained *t = one->of;
    const qn__gpu_memory *to = t->to[one->product];
    const size_t bytes = t->bytes[one->product], offset = t->offset[one->product];
    memset(c->y, 0xff, bytes);
    must(c->o->driver->write(t->worker->gpu, to, offset, c->y, bytes, &err), "a copy", &err);
    one->times = 1;
    sample(c, one);
    must(qn__gpu_read(c->o->driver, t->worker->gpu, to, offset, c->y, bytes, &err), "a copy", &err);
}

/* Whether a candidate is correct and may be timed. Packing is verified by the products. */
static int verify(contest *c, candidate *one) {
    const int asked = one->work == BLAS ? multiply_by_blas(&c->o->blas, one->of, one->way) : 0;
    char name[64];
    name_of(one, name);
    if (asked != 0) {
        printf("    %-36s not here: cublasGemmEx gives %d\n", name, asked);
        return 1;
    }
    if (one->of->program.arith != QN__ARITH_F32) {
        pack_items(one->of, one->product); /* products share the memory of their operands */
        pack_weights(one->of);
    }
    try_once(c, one);
    if (one->work == PRODUCT)
        one->times = (uint32_t)right_product(one->of, &c->net, one->product, name, c->y);
    if (one->work == BLAS)
        one->times = (uint32_t)right_blas(one->of, &c->net, one->way, name, c->y);
    return (int)one->times;
}

/* ---------------------------------------------------------------- the report */

static int by_time(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(const candidate *one) { return one->seconds[SAMPLES / 2]; }

/* The fastest variant of a product, in the arithmetic of `t`, or NULL. */
static const candidate *fastest(const contest *c, const trained *t, product p) {
    const candidate *best = NULL;
    for (int i = 0; i < c->count; ++i) {
        const candidate *one = &c->all[i];
        if (one->times && one->work == PRODUCT && one->of == t && one->product == p &&
            (!best || median(one) < median(best)))
            best = one;
    }
    return best;
}

/* cuBLAS's product of bytes, or NULL. */
static const candidate *bytes_by_blas(const contest *c) {
    for (int i = 0; i < c->count; ++i)
        if (c->all[i].times && c->all[i].work == BLAS && c->all[i].way == WAY_BYTES)
            return &c->all[i];
    return NULL;
}

static void print_shares(const contest *c, const candidate *one) {
    const double rate = 2e-12 * pow(c->net.n, 3) / median(one); /* Top/s */
    const candidate *bytes = bytes_by_blas(c);
    const int ours = one->work == PRODUCT, digits = (int)one->of->program.arith;
    const int floats = ours ? digits == 0 : one->way == WAY_FLOAT;
    const double products = ours ? digits * digits : one->way == WAY_BYTES;
    if (floats && c->o->peak > 0)
        printf(", %.1f %% of the peak", 100 * rate / c->o->peak);
    if (products > 0 && c->o->byte_peak > 0)
        printf(", %.1f %% of the peak in products of bytes",
               100 * rate * products / c->o->byte_peak);
    if (ours && products > 0 && bytes)
        printf(", %.1f %% of what cuBLAS does in bytes",
               100 * products * median(bytes) / median(one));
}

/* Operations per second as text, in a suitable unit. */
static const char *rate(double operations, char text[24]) {
    static const char *const units[] = {"op/s", "kop/s", "Mop/s", "Gop/s", "Top/s", "Pop/s"};
    int unit = 0;
    for (; operations >= 1000 && unit < 5; ++unit)
        operations /= 1000;
    snprintf(text, 24, "%.4g %s", operations, units[unit]);
    return text;
}

static void print_one(const contest *c, const candidate *one) {
    const double *s = one->seconds, operations = 2 * pow(c->net.n, 3);
    char name[64], middle[24], slow[24], fast[24];
    name_of(one, name);
    if (one->work == ITEMS || one->work == WEIGHTS) {
        const candidate *best = fastest(c, one->of, one->product);
        printf("    %-36s %11.1f us  (%.1f to %.1f)", name, 1e6 * median(one), 1e6 * s[SAMPLES - 1],
               1e6 * s[0]);
        if (best)
            printf("  %.1f %% of the fastest product", 100 * median(one) / median(best));
        printf("\n");
        return;
    }
    printf("    %-36s %14s  (%s to %s)  %s", name, rate(operations / median(one), middle),
           rate(operations / s[SAMPLES - 1], slow), rate(operations / s[0], fast),
           one->work == BLAS && one->way != WAY_BYTES ? "near" : "bits verified");
    print_shares(c, one);
    printf("\n");
}

static void print_head(const contest *c) {
    /* The last candidate uses integers, if any does. */
    const qn__gpu_facts *facts = c->all[c->count - 1].of->worker->facts;
    printf("%s, %u units, %u x %u x %u%s%s; * training's choice\n", facts->name,
           facts->compute_units, c->net.n, c->net.n, c->net.n,
           facts->integers ? ", integers by " : "", facts->integers ? facts->integers : "");
}

/* All candidates at one size; 1 if one of them was wrong. */
static int hold(contest *c, uint32_t n) {
    int wrong = 0;
    make_network(&c->net, n);
    c->y = buffer(n * (size_t)qn__gpu_ld(n), sizeof(int64_t));
    enter(c);
    print_head(c);
    for (int i = 0; i < c->count; ++i) {
        candidate *one = &c->all[i];
        wrong |= !verify(c, one);
        while (one->times > 0 && one->times < 1u << 14 &&
               sample(c, one) * one->times < c->o->seconds)
            one->times *= 2;
    }
    for (int s = 0; s < SAMPLES; ++s)
        for (int i = 0; i < c->count; ++i)
            c->all[i].seconds[s] = c->all[i].times ? sample(c, &c->all[i]) : 0;
    for (int i = 0; i < c->count; ++i)
        qsort(c->all[i].seconds, SAMPLES, sizeof(double), by_time);
    for (int i = 0; i < c->count; ++i)
        if (c->all[i].times)
            print_one(c, &c->all[i]);
    for (int i = 0; i < ARITHS; ++i)
        drop_trained(&c->trained[i]);
    drop_network(&c->net);
    free(c->y);
    return wrong;
}

/* ---------------------------------------------------------------- the command line */

/* Parses a comma-separated list of words from `names`; sets their indices in `chosen`. */
static void read_words(char *words, const char *const *names, int count, int *chosen) {
    memset(chosen, 0, (size_t)count * sizeof *chosen);
    for (char *rest, *word = strtok_r(words, ",", &rest); word; word = strtok_r(NULL, ",", &rest)) {
        int i = 0;
        while (i < count && strcmp(word, names[i]) != 0)
            ++i;
        if (i == count)
            fail("there is no arithmetic or product of that name", NULL);
        chosen[i] = 1;
    }
}

static void read_options(options *o, int argc, char **argv) {
    *o = (options){.device = "cuda:0", .ariths = {1, 1, 1, 1}, .products = {1}, .seconds = 0.1};
    for (int i = 1; i < argc; ++i)
        if (strcmp(argv[i], "--arith") == 0 && i + 1 < argc)
            read_words(argv[++i], arith_names, ARITHS, o->ariths);
        else if (strcmp(argv[i], "--products") == 0 && i + 1 < argc)
            read_words(argv[++i], product_names, PRODUCTS, o->products);
        else if (strcmp(argv[i], "--peak") == 0 && i + 1 < argc)
            o->peak = atof(argv[++i]);
        else if (strcmp(argv[i], "--peak-bytes") == 0 && i + 1 < argc)
            o->byte_peak = atof(argv[++i]);
        else if (strcmp(argv[i], "--seconds") == 0 && i + 1 < argc)
            o->seconds = atof(argv[++i]);
        else if (strchr(argv[i], ':'))
            o->device = argv[i];
        else if (o->count < SIZES && atoi(argv[i]) > 0 && atoi(argv[i]) <= 16384)
            o->sizes[o->count++] = (uint32_t)atoi(argv[i]);
        else
            fail("use: gpu_matmul [DEVICE [SIZE...]] [--arith f32,i7,i14,i21] "
                 "[--products forward,errors,gradient] [--peak TFLOPS] [--peak-bytes TOPS] "
                 "[--seconds S]",
                 NULL);
    if (o->count == 0) {
        const uint32_t usual[] = {1024, 2048, 4096};
        memcpy(o->sizes, usual, sizeof usual);
        o->count = 3;
    }
    o->cuda = strncmp(o->device, "cuda:", 5) == 0;
    o->index = (uint32_t)atoi(strchr(o->device, ':') + 1);
    o->driver = o->cuda ? &qn__cuda_gpu_driver : &qn__opencl_driver;
}

int main(int argc, char **argv) {
    options o;
    int wrong = 0;
    read_options(&o, argc, argv);
    o.has_blas = o.cuda && open_blas(&o.blas, o.index);
    if (o.has_blas)
        printf("cuBLAS %d\n", o.blas.version);
    for (uint32_t i = 0; i < o.count; ++i) {
        contest c = {.o = &o};
        wrong |= hold(&c, o.sizes[i]);
        fflush(stdout);
    }
    return wrong;
}
