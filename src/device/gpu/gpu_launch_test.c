/* The choice of a product's variant when the grid of the best one exceeds CUDA's limit: at most
 * 65535 groups in the second direction. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "device/gpu/gpu_worker.h"
#include <string.h>

/* The largest grid, and the most items that it covers with the largest tiles, of 128 rows. */
enum { MOST = 65535, MOST_ITEMS = MOST * 128 };

static uint32_t launches, down; /* the largest number of groups in direction 1 */
static uint32_t launched[QN__KERNELS];
static size_t cleared; /* bytes */

static qn_status note_launch(qn__gpu *gpu, qn__kernel kernel, const uint32_t groups[3],
                             const qn__gpu_argument *arguments, uint32_t count, qn_error *err) {
    (void)gpu;
    (void)arguments;
    (void)count;
    (void)err;
    ++launched[kernel];
    ++launches;
    down = groups[1] > down ? groups[1] : down;
    assert_true(groups[2] <= MOST);
    return QN_OK;
}

static qn_status note_clear(qn__gpu *gpu, const qn__gpu_memory *to, size_t offset, size_t bytes,
                            qn_error *err) {
    (void)gpu;
    (void)to;
    (void)offset;
    (void)err;
    cleared += bytes;
    return QN_OK;
}

static const qn__gpu_driver driver = {.launch = note_launch, .clear = note_clear};

/* Launches a step of a network of one layer. */
static void launch_step(uint32_t in, uint32_t out, uint32_t items, uint32_t units) {
    const qn__layer layer = qn__layer_flat(in, out, QN__ACT_NONE, 0);
    const qn__program program = {.layers = 1, .layer = &layer, .batch = items, .grain = 32};
    const qn__gpu_facts facts = {.compute_units = units, .atomics = 1};
    qn__gpu_layer place = {.layer = &layer};
    qn__worker worker = {.driver = &driver, .facts = &facts, .program = &program, .layer = &place};
    const qn__gpu_source source = {0};
    qn__gpu_pass pass = {.worker = &worker, .source = &source, .items = items, .training = 1};
    qn__gpu_place(&worker);
    launches = down = 0;
    qn__gpu_launch_forward(&pass, QN_LOSS_LABELS | QN_LOSS_TRAIN, 0, NULL);
    qn__gpu_launch_backward(&pass, 0, 1);
    assert_int_equal(pass.status, QN_OK);
    assert_true(launches >= 4);
}

static void test_a_large_batch_has_a_grid(void **state) {
    (void)state;
    static const uint32_t units[] = {1, 16, 132, 1024};
    for (uint32_t u = 0; u < sizeof units / sizeof *units; ++u)
        for (uint32_t items = MOST_ITEMS; items > 1000; items /= 2) {
            launch_step(28, 10, items, units[u]);
            assert_in_range(down, 1, MOST);
        }
}

static void test_many_inputs_have_a_grid(void **state) {
    (void)state;
    for (uint32_t in = 1u << 10; in <= 1u << 22; in *= 2) {
        launch_step(in - 64, 10, 256, 132);
        assert_in_range(down, 1, MOST);
    }
}

/* A step of a network of two layers with integer products on a device with matrix instructions.
 * Returns how many of its five products use them. */
static uint32_t by_matrix(uint32_t in, uint32_t middle, uint32_t grain) {
    const qn__layer layers[2] = {qn__layer_flat(in, middle, QN__ACT_NONE, 0),
                                 qn__layer_flat(middle, 10, QN__ACT_NONE, 0)};
    const qn__program program = {.layers = 2, .layer = layers, .batch = 256, .grain = grain};
    const qn__gpu_facts facts = {.compute_units = 132, .atomics = 1, .matrix = 1};
    qn__gpu_layer places[2] = {{.layer = &layers[0]}, {.layer = &layers[1]}};
    qn__worker worker = {
        .driver = &driver, .facts = &facts, .program = &program, .layer = places, .bits = 14};
    const qn__gpu_source source = {0};
    qn__gpu_pass pass = {.worker = &worker, .source = &source, .items = 256, .training = 1};
    uint32_t count = 0;
    qn__gpu_place(&worker);
    memset(launched, 0, sizeof launched);
    qn__gpu_launch_forward(&pass, QN_LOSS_LABELS | QN_LOSS_TRAIN, 0, NULL);
    qn__gpu_launch_backward(&pass, 0, 1);
    assert_int_equal(pass.status, QN_OK);
    for (int k = 0; k < QN__KERNELS; ++k) {
        assert_true(launched[k] == 0 ||
                    qn__kernel_belongs((qn__kernel)k, QN__CUDA_C, QN_WITH_I14 | QN_WITH_MATRIX));
        count += qn__kernel_shape_of((qn__kernel)k)->products & QN_WITH_MATRIX ? launched[k] : 0;
    }
    return count;
}

/* Sums that exceed 32 bits, and grains whose words are not a multiple of four, do not use them. */
static void test_matrix_instructions_take_what_suits_them(void **state) {
    (void)state;
    assert_int_equal(by_matrix(784, 500, 32), 5);
    assert_int_equal(by_matrix(784, 500, 12), 3);
    assert_int_equal(by_matrix(784, 500, 13), 5);
    assert_int_equal(by_matrix(784, 500, 17), 5);
    assert_int_equal(by_matrix(QN_MATRIX_DEPTH, 500, 256), 5);
    assert_int_equal(by_matrix(QN_MATRIX_DEPTH + 1, 500, 32), 4);
    assert_int_equal(by_matrix(784, QN_MATRIX_DEPTH + 1, 32), 4);
}

/* Counts of kernels that a chain of five layers enqueues, of which the first ones do not train. */
typedef struct counts {
    uint32_t packed, forward, errors, gradients, biases, updates;
    size_t cleared;
} counts;

enum { CHAIN = 5, WIDE = 64 };

static uint32_t between(qn__kernel first, qn__kernel last) {
    uint32_t count = 0;
    for (qn__kernel k = first; k <= last; k = (qn__kernel)(k + 1))
        count += launched[k];
    return count;
}

/* `loads`: new parameters instead of a step. */
static counts of_chain(uint32_t frozen, int loads) {
    qn__layer layers[CHAIN];
    qn__gpu_layer places[CHAIN] = {{0}};
    for (uint32_t l = 0; l < CHAIN; ++l)
        layers[l] = qn__layer_flat(WIDE, WIDE, QN__ACT_NONE, l * (WIDE + 1) * WIDE);
    const qn__program program = {
        .layers = CHAIN, .layer = layers, .batch = 64, .grain = 32, .frozen = frozen};
    const qn__gpu_facts facts = {.compute_units = 1};
    qn__worker worker = {.driver = &driver,
                         .facts = &facts,
                         .program = &program,
                         .layer = places,
                         .bits = 14,
                         .integers.absmax_outputs.bytes = CHAIN * WIDE * sizeof(uint32_t)};
    const qn__gpu_source source = {0};
    qn__gpu_pass pass = {.worker = &worker, .source = &source, .items = 64, .training = 1};
    qn__gpu_place(&worker);
    memset(launched, 0, sizeof launched);
    cleared = 0;
    if (loads) {
        qn__gpu_launch_weights(&pass, 0);
    } else {
        qn__gpu_launch_forward(&pass, QN_LOSS_LABELS | QN_LOSS_TRAIN, 0, NULL);
        qn__gpu_launch_backward(&pass, 0, 1);
    }
    assert_int_equal(pass.status, QN_OK);
    assert_int_equal(launched[QN__K_ABSMAX], launched[QN__K_QUANTIZE_WEIGHTS]);
    return (counts){
        .packed = launched[QN__K_QUANTIZE_WEIGHTS],
        .forward = between(QN__K_INTGEMM_FORWARD_I14_LARGE, QN__K_INTGEMM_FORWARD_I14_SMALL),
        .errors = between(QN__K_INTGEMM_ERRORS_I14_LARGE, QN__K_INTGEMM_ERRORS_I14_SMALL),
        .gradients = between(QN__K_INTGEMM_GRADIENT_I14_LARGE, QN__K_INTGEMM_GRADIENT_I14_SMALL),
        .biases = launched[QN__K_BIAS],
        .updates = launched[QN__K_UPDATE],
        .cleared = cleared};
}

/* Weights of layers that do not train are packed when they are loaded, not in each step; and these
 * layers have neither errors nor gradients. */
static void test_frozen_layers_only_go_forward(void **state) {
    (void)state;
    const size_t each = WIDE * sizeof(uint32_t);
    for (uint32_t frozen = 0; frozen < CHAIN; ++frozen) {
        const uint32_t trains = CHAIN - frozen;
        const counts step = of_chain(frozen, 0), load = of_chain(frozen, 1);
        assert_int_equal(load.packed, CHAIN);
        assert_int_equal(load.cleared, CHAIN * each);
        assert_int_equal(step.packed, trains);
        assert_int_equal(step.cleared, trains * each);
        assert_int_equal(step.forward, CHAIN);
        assert_int_equal(step.errors, trains - 1);
        assert_int_equal(step.gradients, trains);
        assert_int_equal(step.biases, trains);
        assert_int_equal(step.updates, frozen ? trains : 1);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_large_batch_has_a_grid),
        cmocka_unit_test(test_many_inputs_have_a_grid),
        cmocka_unit_test(test_matrix_instructions_take_what_suits_them),
        cmocka_unit_test(test_frozen_layers_only_go_forward),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
