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
    qn__layer layer[QN__MAX_LAYERS];
    qn__gpu_layer own[QN__MAX_LAYERS];
} net;

/* A chain of dense layers of one width. */
static void chain_of(net *n, uint32_t layers) {
    memset(n, 0, sizeof *n);
    n->w.program = &n->program;
    n->w.layer = n->own;
    n->w.capacity = ITEMS;
    n->program = (qn__program){.layers = layers, .layer = n->layer, .batch = ITEMS, .grain = 4};
    for (uint32_t l = 0; l < layers; ++l)
        n->layer[l] = qn__layer_flat(WIDTH, WIDTH, QN__ACT_RELU, 0);
    assert_int_equal(qn__gpu_shared_create(layers, &n->w.shared, NULL), QN_OK);
}

static void chain(net *n) { chain_of(n, LAYERS); }

static void leave(net *n) { qn__gpu_shared_free(&n->w.shared); }

static void place(net *n) {
    qn__gpu_place(&n->w);
    qn__gpu_place_arrays(&n->w);
}

static size_t bytes_of(const net *n) {
    size_t bytes = 0;
    for (uint32_t i = 0; i < n->w.shared.count; ++i)
        bytes += n->w.shared.buffer[i].bytes;
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
        assert_true(a->at < n->w.shared.count && a->bytes <= n->w.shared.buffer[a->at].bytes);
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
    static net n;
    chain(&n);
    place(&n);
    check(&n);
    assert_int_equal(bytes_of(&n), (LAYERS + 1) * BYTES);
    leave(&n);
}

/* Dropout keeps what it has left beside the output, and some activations their slopes. */
static void test_other_arrays(void **state) {
    (void)state;
    static net n;
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
    leave(&n);
}

/* Attention's errors depend on its outputs, also where the layer that reads them has let them go.
 */
static void test_outputs_for_their_own_errors(void **state) {
    (void)state;
    static net n;
    for (uint32_t recompute = 0; recompute < 2; ++recompute) {
        chain(&n);
        n.program.recompute = (int)recompute;
        n.layer[4].kind = QN__LAYER_ATTENTION;
        n.layer[4].activation = QN__ACT_NONE;
        n.layer[5].kind = QN__LAYER_AVGPOOL;
        place(&n);
        check(&n);
        assert_int_equal(n.own[4].place.output.last, n.own[4].place.errors.last);
        leave(&n);
    }
}

/* Outputs of layers that do not train take turns, and these have no errors. */
static void test_frozen(void **state) {
    (void)state;
    static net n;
    chain(&n);
    n.program.frozen = LAYERS - 1;
    place(&n);
    check(&n);
    assert_int_equal(bytes_of(&n), 3 * BYTES);
    for (uint32_t l = 0; l + 1 < LAYERS; ++l)
        assert_int_equal(n.own[l].place.errors.bytes, 0);
    assert_int_equal(n.own[LAYERS - 2].place.output.last, n.own[LAYERS - 1].place.errors.last);
    leave(&n);
}

/* The outputs of a segment are gone after the forward pass, and come again before its layers go
 * back. */
static void test_computed_again(void **state) {
    (void)state;
    static net n;
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
    leave(&n);
}

/* What is visited grows with the layers, not with their square: twice the layers, hardly more than
 * twice the nodes. */
static uint64_t steps_of(net *n, uint32_t layers, int again) {
    chain_of(n, layers);
    n->program.recompute = again;
    place(n);
    const uint64_t steps = n->w.shared.turns.steps;
    leave(n);
    return steps;
}

static void test_many_layers(void **state) {
    (void)state;
    static net n;
    for (int again = 0; again < 2; ++again) {
        const uint64_t few = steps_of(&n, 500, again), many = steps_of(&n, 1000, again);
        assert_true(few > 500 && many < 5 * few / 2);
        assert_true(many < (again ? 13 : 1) * 1000 * 100);
    }
}

/* The tree finds what a search of all buffers finds: the last one in which no array meets. */
static void test_the_last_free_buffer(void **state) {
    (void)state;
    enum { MANY = 150, WINDOWS = 200 };
    qn__gpu_turns turns;
    qn__place array[MANY];
    uint32_t count = 0, random = 1;
    assert_int_equal(qn__gpu_turns_create(MANY, WINDOWS, &turns, NULL), QN_OK);
    for (uint32_t i = 0; i < MANY; ++i) {
        qn__place *own = &array[i];
        uint32_t at[4] = {0}, want = UINT32_MAX;
        for (uint32_t k = 0; k < 4; ++k)
            at[k] = (random = random * 1664525 + 1013904223) >> 8;
        *own = (qn__place){.bytes = 1, .first = at[0] % 150, .last = at[0] % 150 + at[1] % 40};
        if (at[2] % 3 == 0 && own->last + 2 < WINDOWS - 5) {
            own->gone = own->last;
            own->again = own->last + 2;
            own->last = own->again + at[3] % (WINDOWS - own->again);
        }
        for (uint32_t buffer = 0; buffer < count; ++buffer) {
            int taken = 0;
            for (uint32_t j = 0; j < i; ++j)
                taken |= array[j].at == buffer && qn__places_meet(own, &array[j]);
            want = taken ? want : buffer;
        }
        assert_int_equal(qn__gpu_turns_find(&turns, own), want);
        if (want == UINT32_MAX)
            qn__gpu_turns_add(&turns, want = count++);
        own->at = want;
        qn__gpu_turns_take(&turns, want, own);
    }
    assert_true(count > 20 && count < 100);
    qn__gpu_turns_free(&turns);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_chain),
        cmocka_unit_test(test_other_arrays),
        cmocka_unit_test(test_outputs_for_their_own_errors),
        cmocka_unit_test(test_frozen),
        cmocka_unit_test(test_computed_again),
        cmocka_unit_test(test_many_layers),
        cmocka_unit_test(test_the_last_free_buffer),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
