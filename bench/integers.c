/*
 * integers: integer products compared with those of float32, on one thread.
 *
 *     integers [ITEMS INPUTS OUTPUTS [ISA]]      (128 784 512)
 *
 * For every instruction set of this machine, or for one: the float32 product and gradient, then
 * those of i7, i14 and i21 in billions of operations per second; a product and its addition are
 * two. Then the cost of packing, in nanoseconds per 1,000 values: rows of items, weights,
 * transposed weights, items of a gradient. Each table's product is compared with plain loops before
 * it is timed. The figure is the best of several rounds. */
#include "device/cpu/cpu_isa.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { P = QN__PANEL, ROUNDS = 9 };

static uint32_t items = 128, inputs = 784, outputs = 512;

/* Operands as floats in panels, packed operands, and results. */
static struct {
    float *a, *w, *d, *c, *inverse, *factor, *start;
    uint32_t *list;
    size_t *in_blocks, *out_blocks, *weight_blocks; /* where panels begin */
    char *left, *right, *transposed, *rows, *columns;
    double *sums;
} m;

static uint32_t panels_of(uint32_t n) { return (n + P - 1) / P; }

static void *buffer(size_t bytes) {
    void *at = NULL;
    if (posix_memalign(&at, 64, (bytes + 63) / 64 * 64) != 0) {
        fprintf(stderr, "integers: no memory\n");
        exit(1);
    }
    memset(at, 0, (bytes + 63) / 64 * 64);
    return at;
}

static float *numbers(size_t count) {
    float *x = buffer(count * sizeof *x);
    for (size_t i = 0; i < count; ++i)
        x[i] = (float)(i * 2654435761u % 20011) / 10006.0f - 1.0f;
    return x;
}

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static size_t *spaced(size_t count, size_t stride) {
    size_t *at = buffer(count * sizeof *at);
    for (size_t i = 0; i < count; ++i)
        at[i] = i * stride;
    return at;
}

static void make(void) {
    const size_t in = panels_of(inputs), out = panels_of(outputs), deep = in * P;
    const size_t values = (items + deep + out * P) * P;
    m.a = numbers(in * items * P);
    m.w = numbers(out * deep * P);
    m.d = numbers(out * items * P);
    m.c = buffer(out * items * P * sizeof *m.c);
    m.start = numbers(out * P);
    m.inverse = buffer(values * sizeof *m.inverse);
    m.factor = buffer(values * sizeof *m.factor);
    m.list = buffer(items * sizeof *m.list);
    for (uint32_t i = 0; i < items; ++i)
        m.list[i] = i;
    m.in_blocks = spaced(in, (size_t)items * P);
    m.out_blocks = spaced(out, deep * P);
    m.weight_blocks = spaced(in, P * P);
    /* Space for any table: 16 bytes per value. */
    m.left = buffer((size_t)panels_of(items) * P * deep * 16);
    m.right = buffer(out * P * deep * 16);
    m.transposed = buffer(out * P * deep * 16);
    m.rows = buffer(in * P * (items + P) * 16);
    m.columns = buffer(out * P * (items + P) * 16);
    m.sums = buffer(out * P * P * sizeof *m.sums);
}

/* ------------------------------------------------------------------------------ timed functions */

static const qn__cpu_kernels *kernels;
static const qn__intgemm *table;
static int bits;

static void scale(int width) {
    bits = width;
    for (size_t i = 0; i < (size_t)panels_of(inputs) * P + outputs + items; ++i) {
        m.inverse[i] = (float)(1 << (bits - 2));
        m.factor[i] = 1.0f / m.inverse[i];
    }
}

static void float_product(void) {
    const qn__cpu_chain chain = {.k = inputs, .a = m.in_blocks, .b = m.weight_blocks};
    kernels->matmul(items, &chain, m.a, m.w, (size_t)panels_of(inputs) * P * P, m.c,
                    (size_t)items * P, m.start, panels_of(outputs));
}

static void float_outer(void) {
    for (uint32_t i = 0; i < panels_of(inputs); ++i)
        for (uint32_t t = 0; t < items; t += 32)
            kernels->outer(
                &(qn__cpu_span){.items = items - t < 32 ? items - t : 32, .columns = 1, .rows = 1},
                m.a + ((size_t)i * items + t) * P, NULL, m.d + (size_t)t * P, (size_t)items * P,
                NULL, t ? QN__PARTIAL_ADD : QN__PARTIAL_FIRST, m.sums, panels_of(outputs));
}

static void left(void) {
    for (uint32_t i = 0; i < items; i += P)
        table->left(bits, items - i < P ? items - i : P, inputs, m.a + (size_t)i * P, m.in_blocks,
                    NULL, m.inverse, m.left + i / P * table->size(bits, inputs));
}

static void right(void) {
    for (uint32_t p = 0; p < panels_of(outputs); ++p)
        table->right(bits, inputs, m.w + (size_t)p * panels_of(inputs) * P * P, m.inverse,
                     m.right + p * table->size(bits, inputs));
}

static void transposed(void) {
    for (uint32_t p = 0; p < panels_of(inputs); ++p)
        table->right_transposed(bits, P, outputs, m.w + (size_t)p * P * P, m.out_blocks, m.inverse,
                                m.transposed + p * table->size(bits, outputs));
}

static void rows(void) {
    for (uint32_t i = 0; i < panels_of(inputs); ++i)
        table->left_items(bits, items, m.list, m.inverse, NULL, m.a + (size_t)i * items * P,
                          m.rows + i * table->size(bits, items));
}

static void columns(void) {
    for (uint32_t o = 0; o < panels_of(outputs); ++o)
        table->right_items(bits, items, m.list, m.inverse, NULL, m.d + (size_t)o * items * P,
                           m.columns + o * table->size(bits, items));
}

static void product(void) {
    table->product(bits, items, inputs, m.left, panels_of(outputs), m.right, m.factor, m.factor,
                   m.start, m.c, (size_t)items * P);
}

static void outer(void) {
    for (uint32_t i = 0; i < panels_of(inputs); ++i)
        table->outer(bits, items, 1, m.rows + i * table->size(bits, items), panels_of(outputs),
                     m.columns, QN__INTGEMM_FLOAT, 1.0, m.sums);
}

/* Seconds of the fastest of several rounds, each long enough for the clock. */
static double best(void (*work)(void)) {
    double least = 1e9;
    work();
    for (int round = 0; round < ROUNDS; ++round) {
        int times = 0;
        const double begun = now();
        double spent;
        do {
            work();
            ++times;
            spent = now() - begun;
        } while (spent < 0.02);
        least = spent / times < least ? spent / times : least;
    }
    return least;
}

/* Checks the last item and the last output, whose tiles are incomplete, and a few between. */
static int right_answer(void) {
    for (uint32_t i = 0; i < items; i += i + 7 < items ? 7 : 1)
        for (uint32_t o = 0; o < outputs; o += o + 11 < outputs ? 11 : 1) {
            int64_t n = 0;
            for (uint32_t k = 0; k < inputs; ++k)
                n += (int64_t)qn__quantize(m.a[((size_t)k / P * items + i) * P + k % P],
                                           m.inverse[0]) *
                     qn__quantize(m.w[((size_t)o / P * panels_of(inputs) * P + k) * P + o % P],
                                  m.inverse[0]);
            const float want = fmaf((float)n, m.factor[0] * m.factor[0], m.start[o]);
            const float got = m.c[((size_t)o / P * items + i) * P + o % P];
            if (memcmp(&want, &got, sizeof got) != 0)
                return 0;
        }
    return 1;
}

static int measure(int width) {
    const double work = 2e-9 * (double)items * inputs * outputs;
    const double a = 1e-12 * (double)items * inputs, w = 1e-12 * (double)inputs * outputs;
    const double d = 1e-12 * (double)items * outputs;
    scale(width);
    left();
    right();
    transposed();
    rows();
    columns();
    product();
    if (!right_answer()) {
        fprintf(stderr, "integers: %s, i%d: a wrong product\n", table->name, width);
        return 1;
    }
    printf("%-8s i%-4d %9.1f %9.1f %9.0f %9.0f %9.0f %9.0f\n", table->name, width,
           work / best(product), work / best(outer), best(left) / a, best(right) / w,
           best(transposed) / w, (best(rows) + best(columns)) / (a + d));
    return 0;
}

int main(int argc, char **argv) {
    static const char *const isas[] = {"scalar", "avx2", "avx512", "vnni",
                                       "amx",    "neon", "dotprod"};
    if (argc == 4 || argc == 5) {
        items = (uint32_t)strtoul(argv[1], NULL, 10);
        inputs = (uint32_t)strtoul(argv[2], NULL, 10);
        outputs = (uint32_t)strtoul(argv[3], NULL, 10);
    }
    const char *only = argc == 5 ? argv[4] : NULL;
    if ((argc != 1 && argc != 4 && argc != 5) || !items || !inputs || !outputs) {
        fprintf(stderr, "usage: integers [ITEMS INPUTS OUTPUTS [ISA]]\n");
        return 2;
    }
    if (only && !qn__cpu_isa_find(only)) {
        fprintf(stderr, "integers: this machine has no instruction set %s\n", only);
        return 2;
    }
    make();
    printf("%u items, %u inputs, %u outputs, one thread; Gop/s, then ns for 1,000 values\n", items,
           inputs, outputs);
    printf("isa      arith   product  gradient     items   weights    turned   by item\n");
    for (size_t i = 0; i < sizeof isas / sizeof *isas; ++i) {
        const double work = 2e-9 * (double)items * inputs * outputs;
        const qn__cpu_isa *isa = qn__cpu_isa_find(isas[i]);
        if (!isa || (only && strcmp(isas[i], only) != 0))
            continue;
        kernels = isa->kernels;
        table = isa->intgemm;
        printf("%-8s f32   %9.1f %9.1f\n", isas[i], work / best(float_product),
               work / best(float_outer));
        for (int width = 7; width <= 21; width += 7)
            if (measure(width))
                return 1;
    }
    return 0;
}
