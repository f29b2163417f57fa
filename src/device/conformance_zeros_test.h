/* Cases whose inputs are mostly zeros, for the conformance suite: skipping zeros must not change a
 * bit. Static functions, since only one test program uses them. */
#ifndef QN_DEVICE_CONFORMANCE_ZEROS_TEST_H
#define QN_DEVICE_CONFORMANCE_ZEROS_TEST_H

#include "device/conformance_case_test.h"

/* The positions of the zeros. */
typedef enum zeros {
    SCATTERED,   /* random values, in columns that may be all zeros */
    ONE_HOT,     /* one value in each item */
    EMPTY_ITEMS, /* most items are all zeros */
    EMPTY_BATCH, /* one whole batch is all zeros */
    UNDERFLOW,   /* chains of products that round to zeros of either sign */
    ZEROS
} zeros;

static const char *const zeros_names[] = {"scattered", "one-hot", "empty items", "empty batch",
                                          "underflow"};

/* Batches around a block of 96, around tiles of 6 and 12 rows, and one that exceeds the lists of a
 * grain. */
static void draw_sizes_of_zeros(test_case *c) {
    static const uint32_t batches[] = {1,  5,  6,  7,  11,  12,  13,  23,  25,  37,  95,
                                       96, 97, 98, 99, 102, 108, 109, 191, 193, 200, 300};
    static const uint32_t grains[] = {1, 7, 32, 100, 300};
    qn__program *p = &c->program;
    do {
        draw_layers(c);
        p->batch = one_of(c, batches, sizeof batches / sizeof *batches);
    } while (p->parameters * p->batch > 150000 || p->parameters > 40000 ||
             (p->layers == 1 && below(c, 4)));
    p->grain = one_of(c, grains, sizeof grains / sizeof *grains);
    if (p->grain > p->batch)
        p->grain = p->batch;
}

/* Two layers whose outputs show the sign of the first layer's zeros. */
static void draw_sizes_of_underflow(test_case *c) {
    qn__program *p = &c->program;
    do {
        draw_sizes_of_zeros(c);
    } while (p->layers < 2);
    p->layers = 2;
    c->layer[0].activation = below(c, 2) ? QN__ACT_NONE : QN__ACT_TANH;
    c->layer[0].drop_threshold = 0;
    c->layer[1].activation = QN__ACT_NONE;
    c->layer[1].drop_threshold = 0;
    p->parameters = qn__layer_end(&c->layer[1]);
    p->loss = QN__LOSS_MSE;
}

static uint64_t rows_of(const test_case *c) { return c->feed.items + 3; }

static int is_zero(const test_case *c, size_t at) {
    return c->feed.type == QN__ELEMENT_U8 ? ((const uint8_t *)c->feed.values)[at] == 0
                                          : ((const float *)c->feed.values)[at] == 0.0f;
}

/* The case owns the arrays, although the feed declares them constant. */
static void put_value(test_case *c, size_t at, float value) {
    void *values = (void *)(uintptr_t)c->feed.values;
    if (c->feed.type == QN__ELEMENT_U8)
        ((uint8_t *)values)[at] = (uint8_t)value;
    else
        ((float *)values)[at] = value;
}

static void clear_row(test_case *c, uint64_t row) {
    for (uint32_t k = 0; k < c->feed.features; ++k)
        put_value(c, row * c->feed.features + k, 0.0f);
}

/* Makes most values zeros: `density` of 100 remain, in some columns only. Among zeros that are
 * floats, some are -0, which must not be skipped. */
static void scatter(test_case *c, uint32_t density) {
    static const uint32_t living[] = {100, 100, 50, 15}, minuses[] = {0, 1, 40};
    const uint32_t alive = one_of(c, living, 4), minus = one_of(c, minuses, 3);
    const uint32_t features = c->feed.features;
    uint8_t *lives = cut(c, features, 1);
    for (uint32_t k = 0; k < features; ++k)
        lives[k] = below(c, 100) < alive;
    for (size_t i = 0; i < rows_of(c) * features; ++i) {
        const int stays = lives[i % features] && below(c, 100) < density;
        if (!stays)
            put_value(c, i,
                      c->feed.type == QN__ELEMENT_F32 && below(c, 100) < minus ? -0.0f : 0.0f);
        else if (is_zero(c, i))
            put_value(c, i, 1.0f);
    }
}

static void make_one_hot(test_case *c) {
    for (uint64_t row = 0; row < rows_of(c); ++row) {
        clear_row(c, row);
        put_value(c, row * c->feed.features + below(c, c->feed.features), 1.0f);
    }
}

/* Clears every row that a batch reads. */
static void clear_batch(test_case *c, const qn__batch *batch) {
    for (uint32_t i = 0; i < batch->items; ++i) {
        const uint64_t position = batch->first + i;
        const uint64_t item = batch->order ? qn__permutation_at(batch->order, position) : position;
        clear_row(c, c->feed.rows ? c->feed.rows[item] : item);
    }
}

/* A few tiny positive inputs; weights so small that every product rounds to zero, of one sign for
 * each input; biases of -0. The signs of its last terms decide whether a sum of the first layer
 * ends in -0 or in +0. A term of +0 times a positive weight counts. The second layer's weights
 * are positive and its biases -0: an output is -0 if all zeros below it are, otherwise +0.
 * Sometimes the first panel of 16 gets positive weights, so that its zeros are always +0, and
 * negative weights after it, so that they count like -0. A check for -0 must then examine other
 * panels too. */
static void make_underflow(test_case *c) {
    const qn__layer *l = c->layer;
    const uint32_t in = l[0].in;
    const size_t values = rows_of(c) * in;
    const uint32_t many = one_of(c, (const uint32_t[]){2, 5, 5, 30}, 4);
    const uint32_t aside = l[0].out > 16 && below(c, 2) ? 16 : 0;
    float *x = cut(c, values, sizeof *x), *w = c->state.parameters, *sign = cut(c, in, sizeof *x);
    for (size_t i = 0; i < values; ++i)
        x[i] = below(c, 100) < many ? ldexpf(1.0f, -80 - (int)below(c, 60)) : 0.0f;
    c->feed.type = QN__ELEMENT_F32;
    c->feed.values = x;
    c->program.scale = QN__SCALE_NONE;
    for (uint32_t k = 0; k < in; ++k)
        sign[k] = below(c, 6) ? -0x1p-149f : 0x1p-149f;
    for (uint64_t i = 0; i < (uint64_t)in * l[0].out; ++i)
        w[l[0].weights + i] =
            (i / in < aside ? 0x1p-149f : sign[i % in]) * (float)(1 + below(c, 9));
    for (uint64_t i = 0; i < (uint64_t)l[1].in * l[1].out; ++i)
        w[l[1].weights + i] = (i % l[1].in < aside ? -0.5f : 0.5f) - (float)below(c, 8) * 0x1p-5f;
    for (uint32_t o = 0; o < qn__layer_biases(&l[0]); ++o)
        w[l[0].biases + o] = -0.0f;
    for (uint32_t o = 0; o < qn__layer_biases(&l[1]); ++o)
        w[l[1].biases + o] = -0.0f;
}

static void make_zeros(test_case *c, zeros how, uint32_t density) {
    float *mean = (float *)(uintptr_t)c->program.mean;
    /* If values are shifted, only those equal to the mean become zero: (0 - 0) * inverse, of which
     * numbers() leaves either sign. */
    for (uint32_t k = 0; k < c->feed.features; ++k)
        mean[k] = 0.0f;
    if (how == UNDERFLOW)
        make_underflow(c);
    else if (how == ONE_HOT)
        make_one_hot(c);
    else
        scatter(c, density);
    for (uint64_t row = 0; how == EMPTY_ITEMS && row < rows_of(c); ++row)
        if (below(c, 4))
            clear_row(c, row);
    if (how == EMPTY_BATCH)
        clear_batch(c, &c->batch[below(c, CASE_BATCHES)]);
}

/* Makes the case of a seed, like case_begin. Weights are finite: others end a job in any case.
 * Returns the positions of its zeros. */
static zeros zeros_begin(test_case *c, uint64_t seed) {
    static const uint32_t kinds[] = {PLAIN, PLAIN, PLAIN, SUBNORMAL, FINE_UNIT, EDGE};
    static const uint32_t densities[] = {0, 5, 5, 20, 60};
    char *buffer = c->buffer ? c->buffer : qn__alloc(CASE_CAPACITY, 1, NULL);
    *c = (test_case){.seed = seed, .random = ~seed, .buffer = buffer};
    const zeros how = (zeros)below(c, ZEROS);
    const uint32_t density = one_of(c, densities, 5);
    c->kind = how == UNDERFLOW ? PLAIN : (flavour)one_of(c, kinds, 6);
    if (how == UNDERFLOW)
        draw_sizes_of_underflow(c);
    else
        draw_sizes_of_zeros(c);
    draw_numbers(c);
    draw_data(c);
    draw_state(c);
    draw_batches(c);
    make_zeros(c, how, density);
    describe_case(c);
    const size_t at = strlen(c->text);
    snprintf(c->text + at, sizeof c->text - at, "; zeros: %s, density %u %%", zeros_names[how],
             density);
    return how;
}

#endif
