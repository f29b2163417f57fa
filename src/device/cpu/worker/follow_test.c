/* Predictions whose layers follow one another: what else reads an output still finds it, and a loss
 * that is too large names the layer. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "device/cpu/worker/cpu_table.h"
#include "layer/layer.h"
#include <string.h>

enum { CONV, NORM, ADD, LAST, LAYERS };

/* A convolution of one pixel, a batchnorm, perhaps an add of both, a dense layer. */
typedef struct network {
    qn__layer layer[LAYERS];
    qn__program program;
    float parameter[16];
} network;

static void append(network *n, qn__layer layer) { n->layer[n->program.layers++] = layer; }

static void make_norm(network *n, qn__activation activation, uint64_t first) {
    const qn__layer_text text = {.kind = QN__LAYER_BATCHNORM, .activation = activation};
    qn__layer norm = {0};
    assert_int_equal(qn__layer_ops_of(text.kind)->make(&text, (qn__shape){1, 1, 1, QN__PICTURE},
                                                       first, &norm, NULL),
                     QN_OK);
    append(n, norm);
}

static void make(network *n, qn__activation activation, int residual) {
    const qn__window one = {{1, 1}, {1, 1}, {0, 0}, {1, 1}};
    const qn__layer conv = {.kind = QN__LAYER_CONV,
                            .from = {1, 1, 1, QN__PICTURE},
                            .to = {1, 1, 1, QN__PICTURE},
                            .window = one,
                            .in = 1,
                            .out = 1,
                            .depth = 1,
                            .drop_keep = 1.0f,
                            .biases = 1};
    qn__layer add = conv;
    add.kind = QN__LAYER_ADD;
    add.depth = 0;
    add.other = 1;
    add.weights = add.biases = 6;
    memset(n, 0, sizeof *n);
    n->program = (qn__program){.layer = n->layer,
                               .parameters = 8,
                               .loss = QN__LOSS_MSE,
                               .real = 1,
                               .batch = 4,
                               .grain = 4,
                               .partial_limit = 1.0f};
    append(n, conv);
    make_norm(n, activation, 2);
    if (residual)
        append(n, add);
    append(n, qn__layer_flat(1, 1, QN__ACT_NONE, 6));
    n->parameter[2] = 2.0f; /* weight, bias, mean and variance of batchnorm: a factor of 2 */
    n->parameter[5] = 1.0f - 1e-5f;
}

/* Applies the network to one item of 3 with the target 0. */
static qn_status apply(network *n, float *output, qn_error *err) {
    static const uint8_t value = 3;
    static const int32_t target = 0;
    const qn_compute compute = {.size = sizeof compute, .threads = 1};
    const qn__state state = {.parameters = n->parameter};
    const qn__feed feed = {
        .type = QN__ELEMENT_U8, .features = 1, .items = 1, .values = &value, .labels = &target};
    const qn__batch batch = {.feed = &feed, .items = 1};
    qn__applied applied = {.outputs = output};
    qn__tally tally = {0};
    const qn__job job = {.kind = QN__JOB_APPLY, .batch = &batch, .applied = &applied};
    qn__worker *w;
    assert_int_equal(qn__cpu_device.open(0, &compute, &n->program, &w, err), QN_OK);
    assert_int_equal(qn__cpu_device.load(w, &state, err), QN_OK);
    const qn_status status = qn__cpu_device.run(w, &job, 0, 1, &(qn__outlet){.tally = &tally}, err);
    qn__cpu_device.close(w);
    return status;
}

static void test_an_output_with_two_readers_stays(void **state) {
    (void)state;
    network n;
    qn_error err;
    float output = 0;
    make(&n, QN__ACT_NONE, 1);
    n.parameter[0] = n.parameter[6] = 1.0f;
    assert_int_equal(apply(&n, &output, &err), QN_OK);
    assert_true(output == 9.0f); /* 2 * 3 + 3 */
}

/* The convolution gives -inf, of which relu makes 0. Without the convolution's own output the
 * message could name no layer. */
static void test_a_failing_loss_names_the_layer(void **state) {
    (void)state;
    network n;
    qn_error err;
    float output = 0;
    make(&n, QN__ACT_RELU, 0);
    n.parameter[0] = -3e38f;
    n.parameter[7] = 1e25f;
    assert_int_equal(apply(&n, &output, &err), QN_NUMERIC);
    assert_true(output == 1e25f);
    assert_string_equal(
        err.what, "the loss became too large to be summed: outputs of layer 0 are not finite");
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_an_output_with_two_readers_stays),
                                       cmocka_unit_test(test_a_failing_loss_names_the_layer)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
