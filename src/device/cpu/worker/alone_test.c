/* Predictions of which each core computes whole items, or the calling thread a small batch: the
 * bits are those of each item by itself, and of several items that fail the first one is named. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "device/cpu/worker/cpu_table.h"
#include "device/cpu/worker/cpu_worker.h"
#include "layer/layer.h"
#include <stdio.h>
#include <string.h>

enum {
    SIDE = 6,
    PIXELS = SIDE * SIDE,
    CHANNELS = 18,
    WEIGHTS = 9 * CHANNELS,
    CONV = WEIGHTS + CHANNELS,
    IN = PIXELS * CHANNELS,
    OUT = 3,
    NORM = CONV + 4 * CHANNELS, /* weights, biases, means, variances */
    ALL = NORM + (IN + 1) * OUT,
    ITEMS = 67
};

typedef struct network {
    qn__layer layer[3];
    qn__program program;
    float parameter[ALL];
    uint8_t value[ITEMS * PIXELS];
} network;

static qn__shape add_layer(network *n, const qn__layer_text *text, qn__shape from, uint64_t first) {
    qn__layer *layer = &n->layer[n->program.layers++];
    assert_int_equal(qn__layer_ops_of(text->kind)->make(text, from, first, layer, NULL), QN_OK);
    return layer->to;
}

/* A convolution of 3 x 3, a batchnorm with relu, and a dense layer. */
static void make(network *n) {
    const qn__layer_text conv = {
        .kind = QN__LAYER_CONV, .out = CHANNELS, .window = {{3, 3}, {1, 1}, {1, 1}, {1, 1}}};
    const qn__layer_text norm = {.kind = QN__LAYER_BATCHNORM, .activation = QN__ACT_RELU};
    const qn__layer_text dense = {.kind = QN__LAYER_DENSE, .out = OUT};
    uint32_t random = 1;
    memset(n, 0, sizeof *n);
    n->program = (qn__program){.layer = n->layer,
                               .parameters = ALL,
                               .loss = QN__LOSS_MSE,
                               .batch = 32,
                               .grain = 1,
                               .partial_limit = 1.0f};
    qn__shape shape = add_layer(n, &conv, (qn__shape){1, SIDE, SIDE, QN__PICTURE}, 0);
    shape = add_layer(n, &norm, shape, CONV);
    add_layer(n, &dense, shape, NORM);
    for (int i = 0; i < ALL; ++i)
        n->parameter[i] = (float)(int32_t)(random = random * 1664525u + 1013904223u) * 1e-11f;
    for (int c = 0; c < CHANNELS; ++c)
        n->parameter[NORM - 1 - c] = 1.0f;
    for (int i = 0; i < ITEMS * PIXELS; ++i)
        n->value[i] = (uint8_t)((random = random * 1664525u + 1013904223u) >> 25);
}

static qn_status apply(const network *n, qn__worker *w, uint32_t first, uint32_t items,
                       float *output, qn_error *err) {
    const qn__feed feed = {
        .type = QN__ELEMENT_U8, .features = PIXELS, .items = ITEMS, .values = n->value};
    const qn__batch batch = {.feed = &feed, .first = first, .items = items};
    qn__applied applied = {.outputs = output};
    qn__tally tally = {0};
    const qn__job job = {.kind = QN__JOB_APPLY, .batch = &batch, .applied = &applied};
    return qn__cpu_device.run(w, &job, 0, items, &(qn__outlet){.tally = &tally}, err);
}

static qn__worker *open_worker(network *n, int threads) {
    const qn_compute compute = {.size = sizeof compute, .threads = threads};
    const qn__state state = {.parameters = n->parameter};
    qn__worker *w;
    qn_error err;
    assert_int_equal(qn__cpu_device.open(0, &compute, &n->program, &w, &err), QN_OK);
    assert_int_equal(qn__cpu_device.load(w, &state, &err), QN_OK);
    return w;
}

/* How many threads have a worker that computes whole items. */
static int alone(const qn__worker *w) {
    int count = 0;
    for (int t = 0; w->alone && t < w->threads; ++t)
        count += w->alone[t] != NULL;
    return count;
}

static void test_bits_are_those_of_an_item(void **state) {
    (void)state;
    static const uint32_t counts[] = {2, 3, 7, 16, 33, 50, ITEMS}; /* the first three are small */
    static network n;
    static float expected[ITEMS * OUT], output[ITEMS * OUT];
    qn_error err;
    make(&n);
    qn__worker *one = open_worker(&n, 1);
    for (uint32_t i = 0; i < ITEMS; ++i)
        assert_int_equal(apply(&n, one, i, 1, expected + i * OUT, &err), QN_OK);
    qn__cpu_device.close(one);
    for (int threads = 1; threads <= 3; ++threads) {
        qn__worker *w = open_worker(&n, threads);
        for (size_t c = 0; c < sizeof counts / sizeof *counts; ++c) {
            memset(output, 0, sizeof output);
            assert_int_equal(apply(&n, w, 0, counts[c], output, &err), QN_OK);
            assert_memory_equal(output, expected, counts[c] * OUT * sizeof *output);
            assert_int_equal(alone(w), counts[c] > 7 ? threads : 1);
        }
        qn__cpu_device.close(w);
    }
}

/* Parameters that are loaded anew are those of the next prediction, a large or a small one. */
static void test_new_parameters_are_used(void **state) {
    (void)state;
    static const uint32_t counts[] = {ITEMS, 2};
    static network n;
    static float expected[ITEMS * OUT], output[ITEMS * OUT];
    qn_error err;
    make(&n);
    qn__worker *w = open_worker(&n, 2);
    for (size_t c = 0; c < sizeof counts / sizeof *counts; ++c) {
        const size_t bytes = counts[c] * OUT * sizeof *output;
        assert_int_equal(apply(&n, w, 0, counts[c], output, &err), QN_OK);
        for (int i = 0; i < CHANNELS; ++i)
            n.parameter[CONV + i] *= 2;
        const qn__state again = {.parameters = n.parameter};
        assert_int_equal(qn__cpu_device.load(w, &again, &err), QN_OK);
        qn__worker *fresh = open_worker(&n, 1);
        for (uint32_t i = 0; i < counts[c]; ++i)
            assert_int_equal(apply(&n, fresh, i, 1, expected + i * OUT, &err), QN_OK);
        qn__cpu_device.close(fresh);
        assert_memory_not_equal(output, expected, bytes);
        assert_int_equal(apply(&n, w, 0, counts[c], output, &err), QN_OK);
        assert_memory_equal(output, expected, bytes);
    }
    qn__cpu_device.close(w);
}

/* A bias makes outputs of about FLT_MAX, which a bright pixel makes infinite. */
static void test_the_first_item_that_fails_is_named(void **state) {
    (void)state;
    static network n;
    static float output[ITEMS * OUT];
    qn_error err;
    make(&n);
    for (int i = 0; i < ALL; ++i)
        n.parameter[i] = i < 9 || i == CONV || i >= NORM - CHANNELS ? 1.0f : 0.0f;
    n.parameter[NORM] = 3e36f;
    memset(n.value, 0, sizeof n.value);
    for (uint32_t i = 5; i < ITEMS; i += 9)
        n.value[i * PIXELS] = 255;
    for (int threads = 1; threads <= 3; ++threads) {
        qn__worker *w = open_worker(&n, threads);
        for (uint32_t items = 7; items <= ITEMS; items += ITEMS - 7) {
            assert_int_equal(apply(&n, w, 0, items, output, &err), QN_NUMERIC);
            assert_string_equal(err.what, "the network gives no finite output for item 5");
        }
        assert_int_equal(alone(w), threads);
        qn__cpu_device.close(w);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_bits_are_those_of_an_item),
                                       cmocka_unit_test(test_new_parameters_are_used),
                                       cmocka_unit_test(test_the_first_item_that_fails_is_named)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
