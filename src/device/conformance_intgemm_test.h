/* Cases in integer arithmetic (docs/exactness.md 15) for the conformance suite, with numbers at the
 * limits of its blocks, sums and roundings. Static functions, since only one test program uses
 * them. */
#ifndef QN_DEVICE_CONFORMANCE_INTGEMM_TEST_H
#define QN_DEVICE_CONFORMANCE_INTGEMM_TEST_H

#include "device/conformance_case_test.h"
#include "num/intgemm_reference.h"

/* The kind of difficulty. */
typedef enum integers {
    ANYTHING,   /* any flavour of conformance_case_test.h */
    GROUPS,     /* the grains of a batch have different exponents */
    COARSE,     /* units so large that most of a partial is rounded away */
    FULL,       /* integers as large as possible, and of one sign: the largest sums */
    BORDER,     /* largest values where a block's exponent changes */
    HOLLOW,     /* zeros in items, outputs, inputs and whole batches */
    NEIGHBOURS, /* exponents of grains differ little, integers are about half of the largest */
    INTEGERS
} integers;

static const char *const integers_names[] = {"anything", "groups", "coarse",    "full",
                                             "border",   "hollow", "neighbours"};

/* The case owns the arrays, although the feed declares them constant. */
static float *values_of(const test_case *c) { return (float *)(uintptr_t)c->feed.values; }

static uint64_t rows_in(const test_case *c) { return c->feed.items + 3; }

/* Unscaled float data. */
static void take_plain_floats(test_case *c) {
    const size_t values = rows_in(c) * c->feed.features;
    c->feed.type = QN__ELEMENT_F32;
    c->feed.values = numbers(c, values, 1.0f);
    c->program.scale = QN__SCALE_NONE;
}

/* Bytes of items with large values, small values, or zeros. */
static void make_dark(test_case *c) {
    uint8_t *bytes = (uint8_t *)(uintptr_t)c->feed.values;
    for (uint64_t row = 0; row < rows_in(c); ++row) {
        const uint32_t dark = below(c, 3) ? 0 : below(c, 9);
        for (uint32_t k = 0; k < c->feed.features; ++k)
            bytes[row * c->feed.features + k] =
                (uint8_t)(bytes[row * c->feed.features + k] >> dark);
    }
}

/* Items of very different magnitude, a few of them equal. */
static void make_groups(test_case *c) {
    if (c->feed.type == QN__ELEMENT_U8 && c->program.scale != QN__SCALE_STANDARD) {
        make_dark(c);
        return;
    }
    take_plain_floats(c);
    for (uint64_t row = 0; row < rows_in(c); ++row) {
        const int size = 3 * (int)below(c, 5) - 6;
        for (uint32_t k = 0; k < c->feed.features; ++k)
            values_of(c)[row * c->feed.features + k] *= ldexpf(1.0f, size);
    }
}

/* Every value is as large as its block allows. Signs are those of the item and of the output, with
 * a few exceptions. */
static void make_full(test_case *c) {
    const float most = nextafterf(2.0f, 0.0f) - 0x1p-7f;
    take_plain_floats(c);
    for (uint64_t row = 0; row < rows_in(c); ++row) {
        const float sign = below(c, 2) ? most : -most;
        for (uint32_t k = 0; k < c->feed.features; ++k)
            values_of(c)[row * c->feed.features + k] = below(c, 300) ? sign : -sign;
    }
    for (uint32_t l = 0; l < c->program.layers; ++l)
        for (uint32_t o = 0; o < c->layer[l].out; ++o) {
            const float sign = ldexpf(below(c, 2) ? most : -most, -(int)below(c, 9));
            float *w = c->state.parameters + c->layer[l].weights + (size_t)o * c->layer[l].in;
            for (uint32_t k = 0; k < c->layer[l].in; ++k)
                w[k] = below(c, 300) ? sign : -sign;
        }
    c->program.gradient_scale = below(c, 16);
}

/* A value within two steps of the point where a block of `bits` gets the next exponent. */
static float near_border(test_case *c, int bits) {
    const float border = ldexpf(2.0f - ldexpf(1.0f, 1 - bits), (int)below(c, 3) - 1);
    uint32_t pattern;
    float value;
    memcpy(&pattern, &border, sizeof pattern);
    pattern += below(c, 5) - 2;
    memcpy(&value, &pattern, sizeof value);
    return below(c, 2) ? value : -value;
}

static void make_border(test_case *c) {
    const int bits = qn__arith_bits(c->program.arith);
    take_plain_floats(c);
    for (uint64_t row = 0; row < rows_in(c); ++row)
        values_of(c)[row * c->feed.features + below(c, c->feed.features)] = near_border(c, bits);
    for (uint32_t l = 0; l < c->program.layers; ++l)
        for (uint32_t o = 0; o < c->layer[l].out; ++o)
            c->state.parameters[c->layer[l].weights + (size_t)o * c->layer[l].in +
                                below(c, c->layer[l].in)] = near_border(c, bits);
}

static void make_hollow(test_case *c) {
    take_plain_floats(c);
    const uint32_t many = below(c, 5);
    for (uint64_t row = 0; row < rows_in(c); ++row)
        if (below(c, 4) < many)
            for (uint32_t k = 0; k < c->feed.features; ++k)
                values_of(c)[row * c->feed.features + k] = below(c, 2) ? 0.0f : -0.0f;
    for (uint32_t l = 0; l < c->program.layers; ++l)
        for (uint32_t o = 0; o < c->layer[l].out; ++o) {
            float *w = c->state.parameters + c->layer[l].weights + (size_t)o * c->layer[l].in;
            const int empty = below(c, 3) == 0;
            for (uint32_t k = 0; k < c->layer[l].in; ++k)
                w[k] = empty ? (below(c, 2) ? 0.0f : -0.0f) : w[k];
            if (below(c, 3) == 0 && !c->layer[l].no_biases)
                c->state.parameters[c->layer[l].biases + o] = -0.0f;
        }
}

/* A positive number below 1, the largest of its block. Its integer is the largest that AMX tiles of
 * bytes may double once, or one more, or the largest of all. */
static float hardly_doubled(test_case *c) {
    const int bits = qn__arith_bits(c->program.arith);
    const int32_t half = bits == 7 ? 62 : bits == 14 ? 8159 : 1044447;
    const int32_t most = (INT32_C(1) << (bits - 1)) - 1;
    const uint32_t kind = below(c, 3);
    return ldexpf((float)(kind == 2 ? most : half + (int32_t)kind), 1 - bits);
}

/* The magnitudes of items are 2^0 to 2^7. If those of errors are too, the outputs are biases at
 * first: with targets of 0 the largest error of a grain is the largest bias. */
static void make_neighbours(test_case *c) {
    static const uint32_t sizes[] = {0, 1, 2, 3, 7};
    const qn__layer *last = &c->layer[c->program.layers - 1];
    take_plain_floats(c);
    for (uint64_t row = 0; row < rows_in(c); ++row) {
        float *v = values_of(c) + row * c->feed.features;
        const float size = ldexpf(1.0f, (int)one_of(c, sizes, 5));
        for (uint32_t k = 0; k < c->feed.features; ++k)
            v[k] *= size * 0x1p-1f;
        v[below(c, c->feed.features)] = hardly_doubled(c) * size;
    }
    if (below(c, 2))
        return;
    c->layer[c->program.layers - 1].activation = QN__ACT_NONE;
    c->program.real |= c->program.loss == QN__LOSS_BINARY; /* its labels are not outputs */
    c->program.loss = QN__LOSS_MSE;
    for (uint64_t k = last->weights; k < last->biases; ++k)
        c->state.parameters[k] = 0.0f;
    for (uint32_t o = 0; o < qn__layer_biases(last); ++o)
        c->state.parameters[last->biases + o] = hardly_doubled(c);
}

static void make_integers(test_case *c, integers how) {
    static const uint32_t grains[] = {1, 2, 3, 7};
    if ((how == GROUPS || how == NEIGHBOURS) && c->program.batch > 1) {
        c->program.grain = one_of(c, grains, 4);
        c->program.grain = c->program.grain < c->program.batch ? c->program.grain : 1;
    }
    if (how == GROUPS)
        make_groups(c);
    if (how == COARSE)
        c->program.gradient_scale = below(c, 14);
    if (how == FULL)
        make_full(c);
    if (how == BORDER)
        make_border(c);
    if (how == HOLLOW)
        make_hollow(c);
    if (how == NEIGHBOURS)
        make_neighbours(c);
    c->program.partial_limit =
        qn__partial_limit(((uint64_t)c->program.batch + c->program.grain - 1) / c->program.grain);
}

/* Makes the case of a seed, like case_begin. Returns its kind of difficulty. */
static integers integers_begin(test_case *c, uint64_t seed) {
    char *buffer = c->buffer ? c->buffer : qn__alloc(CASE_CAPACITY, 1, NULL);
    *c = (test_case){.seed = seed, .random = seed ^ 0x15151515u, .buffer = buffer};
    const integers how = (integers)below(c, INTEGERS);
    c->kind = how == ANYTHING ? (flavour)below(c, FLAVOURS) : PLAIN;
    draw_sizes(c);
    draw_numbers(c);
    c->program.arith = (qn__arith)(QN__ARITH_I7 + below(c, 3));
    draw_data(c);
    draw_state(c);
    make_integers(c, how);
    draw_batches(c);
    describe_case(c);
    const size_t at = strlen(c->text);
    snprintf(c->text + at, sizeof c->text - at, "; arith i%d: %s", qn__arith_bits(c->program.arith),
             integers_names[how]);
    return how;
}

/* ------------------------------------------------------------------------------------ long sums
 */

enum { LONG_SUM = (1 << 19) + 33 }; /* products of 7-bit integers that 32 bits cannot hold */

/* The largest value below 2 whose integer is as large as possible, and odd. */
static float full_value(qn__arith arith) { return 2.0f - ldexpf(1.0f, 2 - qn__arith_bits(arith)); }

/* A case of 3 equal items in each batch, with layers of these widths; all weights are of full
 * magnitude and all biases 0. */
static void long_begin(test_case *c, qn__arith arith, uint32_t layers, const uint32_t *width,
                       size_t capacity) {
    qn__program *p = &c->program;
    *c = (test_case){
        .seed = 1, .random = 1, .size = capacity, .buffer = qn__alloc(capacity, 1, NULL)};
    c->rate = 0x1p-40f;
    c->brief = 1;
    p->layers = layers;
    p->layer = c->layer;
    for (uint32_t l = 0, in = 1; l < layers; in = width[l++]) {
        c->layer[l] = qn__layer_flat(in, width[l], QN__ACT_NONE, p->parameters);
        p->parameters = c->layer[l].biases + width[l];
    }
    p->arith = arith;
    p->loss = QN__LOSS_MSE;
    p->scale = QN__SCALE_NONE;
    p->seed = 1;
    c->state.parameters = cut(c, p->parameters, sizeof(float));
    for (uint32_t l = 0; l < layers; ++l)
        for (uint64_t i = c->layer[l].weights; i < c->layer[l].biases; ++i)
            c->state.parameters[i] = full_value(arith);
}

static void long_data(test_case *c, uint32_t batch, uint32_t grain) {
    static float value;
    value = full_value(c->program.arith);
    const uint32_t items = 2 * batch + 1;
    uint64_t *row = cut(c, items, sizeof *row);
    c->program.batch = batch;
    c->program.grain = grain;
    c->program.partial_limit = qn__partial_limit((batch + grain - 1) / grain);
    c->feed = (qn__feed){
        .type = QN__ELEMENT_F32, .features = 1, .items = items, .values = &value, .rows = row};
    c->feed.labels = cut(c, items, sizeof(int32_t));
    draw_batches(c);
    for (int b = 0; b < CASE_BATCHES; ++b)
        c->batch[b].order = NULL;
    describe_case(c);
}

/* Many inputs and many outputs: sums of LONG_SUM products forward and backward. */
static inline void long_layers_begin(test_case *c, qn__arith arith) {
    const uint32_t width[] = {1, LONG_SUM, 1};
    long_begin(c, arith, 3, width, (size_t)LONG_SUM * 250);
    const double full = (double)full_value(arith);
    /* The outputs are 1.97 times a power of two, so that errors are integers of full magnitude too,
     * and small enough for the squared loss. */
    for (uint64_t i = c->layer[2].weights; i < c->layer[2].biases; ++i)
        c->state.parameters[i] = (float)full * 0x1p-10f;
    c->state.parameters[c->layer[2].biases] =
        (float)((1.97 * 0x1p21 - full * full * full * full * LONG_SUM) * 0x1p-10);
    long_data(c, 3, 2);
}

/* A partial of a weight far beyond its range, while those of the bias and the loss are within it:
 * the blocks' exponents add up to 60 + `more`. */
static inline void far_out_begin(test_case *c, qn__arith arith, int more) {
    const uint32_t width[] = {1};
    const int bits = qn__arith_bits(arith);
    long_begin(c, arith, 1, width, 1 << 16);
    c->program.gradient_scale = 44;
    c->state.parameters[0] = 0.0f;
    c->state.parameters[1] = 0x1.8p13f;
    long_data(c, 3, 2);
    *values_of(c) = ldexpf(1.5f, 2 * bits - 2 + more);
}

/* Many items: the errors are of full magnitude and negative, the inputs of full magnitude. */
static inline void long_grains_begin(test_case *c, qn__arith arith, uint32_t grain) {
    const uint32_t width[] = {1};
    long_begin(c, arith, 1, width, (size_t)LONG_SUM * 100);
    c->program.gradient_scale =
        2 * (uint32_t)qn__arith_bits(arith) - 5; /* so that no bit is rounded away */
    c->state.parameters[0] = 0.0f;
    c->state.parameters[1] = 1.0f - full_value(arith);
    long_data(c, LONG_SUM, grain);
}

#endif
