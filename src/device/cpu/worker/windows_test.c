/* Arrays of a batch share memory only where no window of a pass uses both. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "device/cpu/worker/cpu_kinds.h"

enum { MOST = 8 };

typedef struct net {
    qn__worker w;
    qn__program program;
    qn__layer layer[MOST];
    qn__cpu_layer own[MOST];
} net;

/* A chain of layers with 100 bytes of errors each, which go back by transposed weights. */
static void chain(net *n, uint32_t layers) {
    memset(n, 0, sizeof *n);
    n->w.program = &n->program;
    n->w.layer = n->own;
    n->program.layers = layers;
    n->program.layer = n->layer;
    for (uint32_t i = 0; i < layers; ++i) {
        n->own[i].kind = &qn__cpu_conv;
        n->layer[i].out = QN__FUSE_OUTPUTS + 1;
        n->own[i].layer = &n->layer[i];
        n->own[i].below = i ? &n->own[i - 1] : NULL;
        n->own[i].error_of = i;
        n->own[i].error_place.bytes = 100;
        n->own[i].vectors = 1;
        n->own[i].transposed_weights = 1;
    }
}

static int apart(const qn__place *a, const qn__place *b) {
    return a->at + a->bytes <= b->at || b->at + b->bytes <= a->at;
}

static void test_chain(void **state) {
    (void)state;
    net n;
    chain(&n, MOST);
    qn__cpu_place_arrays(&n.w);
    assert_int_equal(n.w.memory.shared_bytes, 200);
    for (uint32_t i = 1; i < MOST; ++i)
        assert_true(apart(&n.own[i - 1].error_place, &n.own[i].error_place));
}

/* The gradient of a layer whose own weights its errors go back by is in the next window. */
static void test_parameters(void **state) {
    (void)state;
    net n;
    chain(&n, MOST);
    for (uint32_t i = 0; i < MOST; ++i)
        n.own[i].transposed_weights = 0;
    qn__cpu_place_arrays(&n.w);
    assert_int_equal(n.w.memory.shared_bytes, 300);
    for (uint32_t i = 2; i < MOST; ++i)
        assert_true(apart(&n.own[i - 2].error_place, &n.own[i].error_place));
    for (uint32_t i = 1; i < MOST; ++i) /* it reads these outputs */
        assert_int_equal(n.own[i - 1].output_place.last, n.own[i].error_place.last);
}

/* Layers 1 and 2 are the main path, 3 adds. The errors of the add are those of layer 2, too; those
 * of its shortcut go to layer 0 with those of layer 1. */
static void block(net *n, int has_shortcut) {
    const uint32_t add = has_shortcut ? 4 : 3;
    chain(n, add + 2);
    n->own[add].kind = &qn__cpu_residual;
    n->own[2].error_of = add;
    n->own[2].error_place.bytes = 0;
    n->own[add].vectors = 0;
    n->own[add].below = &n->own[2];
    n->layer[2].activation = n->layer[3].activation = QN__ACT_RELU;
    n->own[add].other = &n->own[has_shortcut ? 3 : 0];
    if (has_shortcut) {
        n->layer[add].skip = 1;
        n->layer[3].skip = 2;
        n->own[3].below = &n->own[0];
        n->own[3].branch_place.bytes = 50;
    }
    qn__cpu_place_arrays(&n->w);
}

static void test_shortcut(void **state) {
    (void)state;
    net n;
    block(&n, 0);
    assert_true(apart(&n.own[3].error_place, &n.own[1].error_place));
    assert_true(apart(&n.own[3].error_place, &n.own[0].error_place));
    assert_true(apart(&n.own[1].error_place, &n.own[0].error_place));
    assert_int_equal(n.w.memory.shared_bytes, 300);
}

static void test_branch(void **state) {
    (void)state;
    net n;
    block(&n, 1);
    for (uint32_t i = 0; i < 5; ++i)
        assert_true(apart(&n.own[3].branch_place, &n.own[i].error_place));
    assert_true(apart(&n.own[3].error_place, &n.own[4].error_place));
    assert_true(apart(&n.own[1].error_place, &n.own[4].error_place));
}

/* Integer arithmetic computes all gradients at the end if all layers are dense. */
static void test_integers(void **state) {
    (void)state;
    net n;
    for (int walks = 0; walks < 2; ++walks) {
        chain(&n, MOST);
        n.w.bits = 14;
        n.w.walks = walks;
        for (uint32_t i = 0; i < MOST; ++i) {
            n.own[i].transposed_weights = 0;
            n.layer[i].depth = 1;
        }
        qn__cpu_place_arrays(&n.w);
        assert_int_equal(n.w.memory.shared_bytes, walks ? 200 : 100 * MOST);
        n.program.recompute = 1; /* then none waits */
        qn__cpu_place_arrays(&n.w);
        assert_int_equal(n.w.memory.shared_bytes, 200);
    }
}

/* Errors stand where outputs were that no later window reads. After 200 bytes of outputs, in a
 * pool of a quarter, come convolutions: the outputs below the pool are not needed once its errors
 * went back, and those of a convolution are until the gradient above it. */
static void test_outputs(void **state) {
    (void)state;
    net n;
    chain(&n, MOST);
    for (uint32_t i = 0; i < MOST; ++i) {
        n.own[i].output_place.bytes = 100;
        n.own[i].taps = 9;
    }
    n.own[2].kind = &qn__cpu_maxpool;
    n.own[2].taps = n.own[2].vectors = 0;
    qn__cpu_place_arrays(&n.w);
    for (uint32_t i = 0; i < MOST; ++i)
        for (uint32_t j = 0; j < i; ++j)
            assert_true(apart(&n.own[i].output_place, &n.own[j].output_place));
    for (uint32_t i = 1; i < MOST; ++i) {
        assert_true(apart(&n.own[i].error_place, &n.own[i - 1].output_place));
        assert_true(apart(&n.own[i].error_place, &n.own[i].output_place));
        assert_true(apart(&n.own[i - 1].error_place, &n.own[i - 1].output_place));
    }
    assert_int_equal(n.own[1].output_place.last, n.own[1].error_place.first);
    assert_int_equal(n.own[2].output_place.last, n.own[2].error_place.last);
    assert_int_equal(n.own[4].output_place.last, n.own[5].error_place.last);
    assert_int_equal(n.w.memory.shared_bytes, (MOST + 1) * 100);
    block(&n, 1); /* the derivatives of both paths come with the errors of the add */
    const uint32_t passed = n.program.layers + 1; /* after the forward pass and the last layer */
    assert_int_equal(n.own[2].output_place.last, passed);
    assert_int_equal(n.own[3].output_place.last, passed);
}

/* Errors of several answers replace the outputs, which stand there until the layer's gradient. */
static void test_errors_in_outputs(void **state) {
    (void)state;
    net n;
    chain(&n, MOST);
    for (uint32_t i = 0; i < MOST; ++i)
        n.own[i].output_place.bytes = 100;
    qn__cpu_layer *last = &n.own[MOST - 1];
    const qn__place *errors = &last->error_place;
    qn__cpu_place_arrays(&n.w);
    const uint32_t first = errors->first, end = errors->last;
    last->errors_in_output = 1;
    last->error_place.bytes = 0;
    qn__cpu_place_arrays(&n.w);
    assert_in_range(last->output_place.first, 0, first);
    assert_int_equal(last->output_place.last, end);
    assert_true(apart(&last->output_place, &n.own[MOST - 2].error_place));
}

/* An output before dropout is needed for the derivatives alone, and not where these are kept or are
 * all 1; the one before a sum is not without them. In a prediction the next layer reads it. */
static void test_outputs_that_nothing_reads(void **state) {
    (void)state;
    static const qn__activation activation[] = {QN__ACT_NONE, QN__ACT_RELU, QN__ACT_GELU};
    for (int a = 0; a < 3; ++a) {
        net n;
        chain(&n, MOST);
        for (uint32_t i = 0; i < MOST; ++i) {
            n.layer[i].activation = activation[a];
            n.own[i].output_place.bytes = n.own[i].dropped_place.bytes = 100;
            n.own[i].slope_place.bytes = activation[a] == QN__ACT_GELU ? 100 : 0;
        }
        qn__cpu_place_arrays(&n.w);
        for (uint32_t i = 0; i + 1 < MOST; ++i) {
            const qn__place *output = &n.own[i].output_place, *errors = &n.own[i].error_place;
            const int reads = activation[a] == QN__ACT_RELU;
            assert_int_equal(output->last, reads ? errors->first : i + 1);
            assert_int_equal(n.own[i].dropped_place.last, n.own[i + 1].error_place.last);
            if (n.own[i].slope_place.bytes)
                assert_int_equal(n.own[i].slope_place.last, errors->first);
        }
    }
    net n;
    block(&n, 1);
    n.layer[2].activation = QN__ACT_NONE;
    qn__cpu_place_arrays(&n.w);
    assert_int_equal(n.own[2].output_place.last, 4); /* the sum */
}

/* Outputs of layers that do not train are needed up to the next layer only, and so are the inputs.
 * Those of the last of them are also needed for the gradient above. */
static void test_frozen(void **state) {
    (void)state;
    net n;
    const uint32_t frozen = MOST - 2;
    for (int follows = 0; follows < 2; ++follows) {
        chain(&n, MOST);
        for (uint32_t i = 0; i < MOST; ++i)
            n.own[i].output_place.bytes = 100;
        n.w.fetch.place.bytes = 500;
        n.program.frozen = frozen;
        n.own[0].dropped_place.bytes = n.own[0].slope_place.bytes = 30;
        n.own[0].followed = n.own[1].followed = follows; /* 0 writes outputs of 2 at once */
        qn__cpu_place_arrays(&n.w);
        assert_int_equal(n.w.fetch.place.last, 0);
        assert_int_equal(n.own[0].slope_place.last, 0);
        assert_int_equal(n.own[0].dropped_place.last, 1);
        assert_int_equal(n.own[2].output_place.first, follows ? 0 : 2);
        for (uint32_t i = 0; i + 1 < frozen; ++i) {
            assert_int_equal(n.own[i].output_place.last, i + 1);
            assert_true(apart(&n.own[i].output_place, &n.own[i + 1].output_place));
        }
        assert_true(apart(&n.own[0].output_place, &n.w.fetch.place));
        assert_true(apart(&n.own[0].output_place, &n.own[0].slope_place));
        assert_int_equal(n.own[frozen - 1].output_place.last, n.own[frozen].error_place.last);
        assert_int_equal(n.w.memory.shared_bytes, 660 + 100 * follows);
    }
}

static int are_used_at_once(const qn__place *a, const qn__place *b) {
    int both = 0;
    for (uint32_t window = 0; window < 8 * MOST; ++window) {
        const qn__place *of[2] = {a, b};
        int used = 2;
        for (int i = 0; i < 2; ++i) {
            const uint32_t gone = of[i]->again ? of[i]->gone : of[i]->last;
            const int late = of[i]->again && window >= of[i]->again && window <= of[i]->last;
            used -= (window >= of[i]->first && window <= gone) || late;
        }
        both |= used == 0;
    }
    return both;
}

/* A chain is cut into segments, and what they leave is there twice: after the forward pass of the
 * next layer it is gone, and before the backward pass of the segment's last layer it comes again,
 * after the inputs. The last segment is kept. */
static void test_segments(void **state) {
    (void)state;
    net n;
    uint32_t again = 0;
    chain(&n, MOST);
    for (uint32_t i = 0; i < MOST; ++i)
        n.own[i].output_place.bytes = 100;
    n.w.fetch.place.bytes = 500;
    qn__cpu_place_arrays(&n.w);
    assert_int_equal(n.w.memory.shared_bytes, 500 + (MOST + 1) * 100);
    qn__cpu_place_segments(&n.w);
    assert_true(n.w.memory.shared_bytes <= 500 + 400);
    assert_int_equal(n.own[MOST - 1].recomputes, 0);
    for (uint32_t end = 0; end < MOST; ++end)
        for (uint32_t i = end - n.own[end].recomputes; i < end; ++i, ++again) {
            const qn__place *place = &n.own[i].output_place;
            assert_int_equal(n.own[end].output_place.again, 0);
            assert_int_equal(place->gone, i + 1);
            assert_true(place->again >= MOST && place->last >= n.own[i].error_place.first);
            assert_true(place->again > n.own[end + 1].error_place.last);
            assert_true(place->again < n.own[end].error_place.last);
        }
    assert_true(again > 0 && n.w.fetch.place.again < n.own[0].output_place.again);
    for (uint32_t i = 0; i < MOST; ++i)
        for (uint32_t j = 0; j < MOST; ++j) {
            const qn__place *a = &n.own[i].output_place, *b = &n.own[j].output_place;
            const qn__place *error = &n.own[j].error_place;
            assert_true(i == j || !are_used_at_once(a, b) || apart(a, b));
            assert_true(!are_used_at_once(a, error) || apart(a, error));
            assert_true(!are_used_at_once(a, &n.w.fetch.place) || apart(a, &n.w.fetch.place));
        }
}

static void test_overflow(void **state) {
    (void)state;
    net n;
    chain(&n, 3);
    n.own[1].error_place.bytes = SIZE_MAX - 50;
    qn__cpu_place_arrays(&n.w);
    assert_true(n.w.memory.shared_bytes == SIZE_MAX);
    chain(&n, 4);
    for (uint32_t i = 0; i < 4; ++i) {
        n.own[i].transposed_weights = 0;
        n.own[i].error_place.bytes = SIZE_MAX / 2 + 1;
    }
    qn__cpu_place_arrays(&n.w);
    assert_true(n.w.memory.shared_bytes == SIZE_MAX);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_chain),
        cmocka_unit_test(test_parameters),
        cmocka_unit_test(test_shortcut),
        cmocka_unit_test(test_branch),
        cmocka_unit_test(test_integers),
        cmocka_unit_test(test_outputs),
        cmocka_unit_test(test_frozen),
        cmocka_unit_test(test_errors_in_outputs),
        cmocka_unit_test(test_outputs_that_nothing_reads),
        cmocka_unit_test(test_overflow),
        cmocka_unit_test(test_segments),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
