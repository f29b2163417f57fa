/* Outputs and errors of a GPU's layers have a buffer in turn only where no window uses both. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "device/gpu/gpu_kinds.h"

enum { LAYERS = 9, ARRAYS = 4, WIDTH = 64, ITEMS = 8 };

/* Bytes of an array. */
enum { BYTES = WIDTH * ITEMS * 4 };

typedef struct net {
    qn__worker w;
    qn__program program;
    qn__layer layer[LAYERS];
    qn__gpu_layer own[LAYERS];
    qn__gpu_buffer buffer[ARRAYS * LAYERS];
} net;

/* A chain of dense layers of one width. */
static void chain(net *n) {
    memset(n, 0, sizeof *n);
    n->w.program = &n->program;
    n->w.layer = n->own;
    n->w.shared.buffer = n->buffer;
    n->w.capacity = ITEMS;
    n->program = (qn__program){.layers = LAYERS, .layer = n->layer, .batch = ITEMS, .grain = 4};
    for (uint32_t l = 0; l < LAYERS; ++l)
        n->layer[l] = qn__layer_flat(WIDTH, WIDTH, QN__ACT_RELU, 0);
}

static void place(net *n) {
    qn__gpu_place(&n->w);
    qn__gpu_place_arrays(&n->w);
}

static size_t bytes_of(const net *n) {
    size_t bytes = 0;
    for (uint32_t i = 0; i < n->w.shared.count; ++i)
        bytes += n->buffer[i].bytes;
    return bytes;
}

static const qn__place *array_of(const net *n, uint32_t i) {
    const qn__gpu_places *own = &n->own[i / ARRAYS].place;
    const qn__place *const all[ARRAYS] = {&own->output, &own->dropped, &own->slope, &own->errors};
    return all[i % ARRAYS];
}

static int is_used(const qn__place *place, uint32_t window) {
    const uint32_t gone = place->again ? place->gone : place->last;
    return (window >= place->first && window <= gone) ||
           (place->again && window >= place->again && window <= place->last);
}

/* No two arrays of a buffer are used in one window, and each fits its buffer. */
static void check(const net *n) {
    for (uint32_t i = 0; i < ARRAYS * LAYERS; ++i) {
        const qn__place *a = array_of(n, i);
        if (!a->bytes)
            continue;
        assert_true(a->at < n->w.shared.count && a->bytes <= n->buffer[a->at].bytes);
        for (uint32_t j = 0; j < i; ++j)
            for (uint32_t window = 0; window < 4 * LAYERS && array_of(n, j)->bytes; ++window)
                assert_true(a->at != array_of(n, j)->at || !is_used(a, window) ||
                            !is_used(array_of(n, j), window));
    }
}

/* All outputs wait for the backward pass. The errors of the last layer have a buffer that is not an
 * output's; those of each layer before stand where the output after it was. */
static void test_chain(void **state) {
    (void)state;
    net n;
    chain(&n);
    place(&n);
    check(&n);
    assert_int_equal(bytes_of(&n), (LAYERS + 1) * BYTES);
}

/* Dropout keeps what it has left beside the output, and some activations their slopes. */
static void test_other_arrays(void **state) {
    (void)state;
    net n;
    chain(&n);
    n.layer[3].drop_threshold = 1;
    n.layer[5].activation = QN__ACT_GELU;
    place(&n);
    check(&n);
    assert_int_equal(n.own[3].place.dropped.bytes, BYTES);
    assert_int_equal(n.own[5].place.slope.bytes, BYTES);
    assert_int_equal(n.own[3].place.output.last, n.own[3].place.errors.first);
    assert_int_equal(n.own[3].place.dropped.last, n.own[4].place.errors.last);
    assert_int_equal(n.own[5].place.slope.last, n.own[5].place.errors.first);
}

/* Outputs of layers that do not train take turns, and these have no errors. */
static void test_frozen(void **state) {
    (void)state;
    net n;
    chain(&n);
    n.program.frozen = LAYERS - 1;
    place(&n);
    check(&n);
    assert_int_equal(bytes_of(&n), 3 * BYTES);
    for (uint32_t l = 0; l + 1 < LAYERS; ++l)
        assert_int_equal(n.own[l].place.errors.bytes, 0);
    assert_int_equal(n.own[LAYERS - 2].place.output.last, n.own[LAYERS - 1].place.errors.last);
}

/* The outputs of a segment are gone after the forward pass, and come again before its layers go
 * back. */
static void test_computed_again(void **state) {
    (void)state;
    net n;
    uint32_t again = 0;
    chain(&n);
    n.program.recompute = 1;
    n.layer[4].drop_threshold = 1;
    place(&n);
    check(&n);
    assert_true(bytes_of(&n) <= 8 * BYTES);
    assert_int_equal(n.own[LAYERS - 1].recomputes, 0);
    for (uint32_t end = 0; end < LAYERS; ++end)
        for (uint32_t l = end - n.own[end].recomputes; l < end; ++l, ++again) {
            const qn__place *output = &n.own[l].place.output;
            assert_int_equal(output->gone, l + 1);
            assert_true(output->again > n.own[end + 1].place.errors.last);
            assert_true(output->again < n.own[end].place.errors.last);
            assert_true(output->last >= n.own[l].place.errors.first);
        }
    assert_true(again > 2);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_chain),
        cmocka_unit_test(test_other_arrays),
        cmocka_unit_test(test_frozen),
        cmocka_unit_test(test_computed_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
