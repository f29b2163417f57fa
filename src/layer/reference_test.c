/* The reference against independent results: numbers computed by hand, and numerical derivatives of
 * a forward pass in double. (tests/oracle/ is a complete second implementation.) */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "num/philox.h"
#include "layer/reference.h"
#include "num/sums.h"
#include <math.h>
#include <stdio.h>
#include <string.h>

enum { IN = 5, HIDDEN = 6, MIDDLE = 4, OUT = 3, ITEMS = 4, MOST = 128 };

static qn__reference *reference_of(const qn__program *program) {
    qn__reference *r;
    assert_int_equal(qn__reference_create(program, &r, NULL), QN_OK);
    return r;
}

/* ---- by hand: 2 inputs, 2 linear outputs, squared error, all numbers small powers of two */

static void test_a_step_by_hand(void **state) {
    (void)state;
    const qn__layer layer = qn__layer_flat(2, 2, QN__ACT_NONE, 0);
    const qn__program program = {.layers = 1,
                                 .layer = &layer,
                                 .parameters = 6,
                                 .loss = QN__LOSS_MSE,
                                 .batch = 2,
                                 .grain = 2,
                                 .gradient_scale = 4,
                                 .partial_limit = qn__partial_limit(1)};
    const float parameters[6] = {0.5f, -1.0f, 2.0f, 0.25f, 0.125f, -0.5f};
    const uint8_t values[2][2] = {{2, 4}, {1, 0}};
    const qn__reference_item items[2] = {{QN__ELEMENT_U8, values[0], 0, 1, NULL, NULL},
                                         {QN__ELEMENT_U8, values[1], 1, 0, NULL, NULL}};
    /* Item 0: y = (1/8 + 1 - 4, -1/2 + 4 + 1) = (-2.875, 4.5), d = (-2.875, 3.5).
     * Item 1: y = (1/8 + 1/2, -1/2 + 2) = (0.625, 1.5), d = (-0.375, 1.5).
     * delta = 32 d: (-92, 112), (-12, 48). */
    const int64_t want[6] = {-92 * 2 - 12, -92 * 4, 112 * 2 + 48, 112 * 4, -104, 160};
    const double loss = 2.875 * 2.875 + 3.5 * 3.5 + 0.375 * 0.375 + 1.5 * 1.5;
    int64_t sums[6] = {0};
    qn__tally tally = {0};
    qn__reference *r = reference_of(&program);
    qn__reference_grain_begin(r);
    for (int i = 0; i < 2; ++i)
        qn__reference_grain_item(r, parameters, &items[i], 0);
    assert_int_equal(qn__reference_grain_end(r, sums, &tally), QN__GRAIN_FINE);
    for (int i = 0; i < 6; ++i)
        assert_true(sums[i] == want[i]);
    assert_true(tally.loss == (int64_t)(loss * 0x1p32));
    assert_int_equal(tally.correct,
                     1); /* item 0: 4.5 at its label 1; item 1: 1.5 is not at its label */
    assert_int_equal(tally.items, 2);
    const float *y = qn__reference_apply(r, parameters, &items[0]);
    assert_true(y[0] == -2.875f && y[1] == 4.5f);
    assert_int_equal(qn__reference_class(r), 1);
    assert_true(qn__reference_loss(r, &(qn__reference_item){.label = 0}) ==
                3.875f * 3.875f + 4.5f * 4.5f);
    qn__reference_destroy(r);
}

static void test_the_first_of_equals_is_the_class(void **state) {
    (void)state;
    const qn__layer layer = qn__layer_flat(1, 4, QN__ACT_RELU, 0);
    const qn__program program = {.layers = 1,
                                 .layer = &layer,
                                 .parameters = 8,
                                 .loss = QN__LOSS_MSE,
                                 .batch = 1,
                                 .grain = 1};
    const float parameters[8] = {0, 0, 0, 0, -1.0f, 2.0f, 2.0f, 1.0f};
    const uint8_t value = 1;
    const qn__reference_item item = {QN__ELEMENT_U8, &value, 0, 0, NULL, NULL};
    qn__reference *r = reference_of(&program);
    const float *y = qn__reference_apply(r, parameters, &item);
    assert_true(y[0] == 0.0f && !signbit(y[0]));
    assert_int_equal(qn__reference_class(r), 1);
    qn__reference_destroy(r);
}

static void test_scalings(void **state) {
    (void)state;
    const qn__layer layer = qn__layer_flat(2, 1, QN__ACT_NONE, 0);
    const float mean[2] = {128.0f, 0.5f}, inverse[2] = {0.25f, 0.0f};
    qn__program program = {.layers = 1, .layer = &layer, .mean = mean, .inverse = inverse};
    const uint8_t bytes[2] = {51, 255};
    const float floats[2] = {0.75f, -3.0f};
    const qn__reference_item item = {QN__ELEMENT_U8, bytes, 0, 0, NULL, NULL},
                             other = {QN__ELEMENT_F32, floats, 0, 0, NULL, NULL};
    float x[2];
    qn__reference_input(&program, &item, x);
    assert_true(x[0] == 51.0f && x[1] == 255.0f);
    qn__reference_input(&program, &other, x);
    assert_true(x[0] == 0.75f && x[1] == -3.0f);
    program.scale = QN__SCALE_UNIT;
    qn__reference_input(&program, &item, x);
    assert_true(x[0] == 0.2f && x[1] == 1.0f);
    program.scale = QN__SCALE_STANDARD;
    qn__reference_input(&program, &item, x);
    assert_true(x[0] == -19.25f && x[1] == 0.0f);
    program.scale = QN__SCALE_FRACTION;
    qn__reference_input(&program, &item, x);
    assert_true(x[0] == 0x3.3p-4f && x[1] == 0x0.ffp0f);
}

/* One input, one output y = x + 1; real targets. */
static void test_losses_of_real_targets_by_hand(void **state) {
    (void)state;
    static const struct {
        qn__loss loss;
        float delta, target, want;
        int64_t gradient; /* of the bias, in sixteenths */
    } known[] = {
        {QN__LOSS_MSE, 0.0f, 1.5f, 2.25f, 48},    {QN__LOSS_MAE, 0.0f, 1.5f, 1.5f, 16},
        {QN__LOSS_MAE, 0.0f, 5.0f, 2.0f, -16},    {QN__LOSS_MAE, 0.0f, 3.0f, 0.0f, 0},
        {QN__LOSS_HUBER, 2.0f, 1.5f, 1.125f, 24}, {QN__LOSS_HUBER, 1.0f, 1.5f, 1.0f, 16},
        {QN__LOSS_HUBER, 0.5f, 5.0f, 0.875f, -8}, {QN__LOSS_HUBER, 1.0f, 2.0f, 0.5f, 16},
    };
    const qn__layer layer = qn__layer_flat(1, 1, QN__ACT_NONE, 0);
    const float parameters[2] = {1.0f, 1.0f}, x = 2.0f;
    for (size_t i = 0; i < sizeof known / sizeof *known; ++i) {
        const qn__program program = {.layers = 1,
                                     .layer = &layer,
                                     .parameters = 2,
                                     .loss = known[i].loss,
                                     .real = 1,
                                     .delta = known[i].delta,
                                     .batch = 1,
                                     .grain = 1,
                                     .gradient_scale = 4,
                                     .partial_limit = qn__partial_limit(1)};
        qn__reference_item item = {QN__ELEMENT_F32, &x, 0, 0, NULL, NULL};
        int64_t sums[2] = {0};
        qn__tally tally = {0};
        memcpy(&item.label, &known[i].target, sizeof item.label);
        qn__reference *r = reference_of(&program);
        qn__reference_grain_begin(r);
        qn__reference_grain_item(r, parameters, &item, 0);
        assert_true(qn__reference_score(r) == 3.0f);
        assert_true(qn__reference_loss(r, &item) == known[i].want);
        assert_int_equal(qn__reference_grain_end(r, sums, &tally), QN__GRAIN_FINE);
        assert_true(sums[1] == known[i].gradient && sums[0] == 2 * known[i].gradient);
        assert_int_equal(tally.correct, 0);
        qn__reference_destroy(r);
    }
}

/* Two classes and one output: the class by the half, the loss from far away on either side. */
static void test_binary(void **state) {
    (void)state;
    const qn__layer layer = qn__layer_flat(1, 1, QN__ACT_SIGMOID, 0);
    const qn__program program = {.layers = 1,
                                 .layer = &layer,
                                 .parameters = 2,
                                 .loss = QN__LOSS_BINARY,
                                 .batch = 1,
                                 .grain = 1};
    static const float known[] = {-200.0f, -20.0f, -1.5f, -0x1p-20f, 0.0f, 0.75f, 17.0f, 3000.0f};
    const float parameters[2] = {1.0f, 0.0f};
    qn__reference *r = reference_of(&program);
    for (size_t i = 0; i < sizeof known / sizeof *known; ++i) {
        const qn__reference_item item = {QN__ELEMENT_F32, &known[i], 0, 0, NULL, NULL};
        const float y = *qn__reference_apply(r, parameters, &item);
        const double z = (double)known[i];
        assert_int_equal(qn__reference_class(r), z > 0);
        assert_true(qn__reference_score(r) == (z > 0 ? y : 1.0f - y));
        const qn__reference_item zero = {.label = 0}, one = {.label = 1};
        assert_true(qn__reference_right(r, &zero) == !(z > 0) &&
                    qn__reference_right(r, &one) == (z > 0));
        for (uint32_t label = 0; label < 2; ++label) {
            const double v = label ? -z : z, want = v > 30 ? v : log1p(exp(v));
            assert_true(fabs((double)qn__reference_loss(r, &(qn__reference_item){.label = label}) -
                             want) < 2e-7 * (1 + want));
        }
    }
    qn__reference_destroy(r);
}

/* ---- gradients against numerical derivatives */

typedef struct network {
    qn__layer layer[3];
    qn__program program;
    float parameters[MOST];
    float values[ITEMS][IN];
    uint32_t labels[ITEMS];
} network;

static network make(qn__activation hidden, qn__activation last, qn__loss loss, float dropout) {
    network n = {
        .layer = {qn__layer_flat(IN, HIDDEN, hidden, 0), qn__layer_flat(HIDDEN, MIDDLE, hidden, 36),
                  qn__layer_flat(MIDDLE, OUT, last, 64)},
        .program = {.layers = 3, .parameters = 79, .loss = loss, .batch = ITEMS, .grain = ITEMS}};
    n.program.gradient_scale = 40;
    n.program.seed = 77;
    n.program.partial_limit = qn__partial_limit(1);
    if (dropout > 0) {
        n.layer[0].drop_threshold = (uint32_t)((double)dropout * 0x1p32 + 0.5);
        n.layer[0].drop_keep = 1.0f / (1.0f - dropout);
    }
    for (uint32_t i = 0; i < 79; ++i) {
        uint32_t word[4];
        qn__words(5, 9, 0, 0, i, 0, word);
        n.parameters[i] = (float)(word[0] * 0x1p-31 - 1.0) * 0.9f;
    }
    for (uint32_t i = 0; i < ITEMS; ++i) {
        n.labels[i] = i % OUT;
        for (uint32_t k = 0; k < IN; ++k)
            n.values[i][k] = (float)((i * 7 + k * 5) % 11) * 0.2f - 1.0f;
    }
    return n;
}

static double activated(qn__activation activation, double z) {
    switch (activation) {
    case QN__ACT_RELU:
        return z > 0 ? z : 0;
    case QN__ACT_TANH:
        return tanh(z);
    case QN__ACT_SIGMOID:
        return 1 / (1 + exp(-z));
    case QN__ACT_LEAKY_RELU:
        return z > 0 ? z : 0.01 * z;
    case QN__ACT_GELU:
        return z * erfc(-z / sqrt(2)) / 2;
    case QN__ACT_SILU:
        return z / (1 + exp(-z));
    case QN__ACT_GELU_TANH:
        return z / 2 * (1 + tanh(sqrt(2 / acos(-1)) * (z + 0.044715 * z * z * z)));
    case QN__ACT_RELU6:
        return fmin(fmax(z, 0), 6);
    case QN__ACT_HARDSWISH:
        return z * fmin(fmax(z + 3, 0), 6) / 6;
    case QN__ACT_HARDSIGMOID:
        return fmin(fmax(z + 3, 0), 6) / 6;
    case QN__ACT_NONE:
    case QN__ACT_SOFTMAX:
        break;
    }
    return z;
}

static double one_loss(const qn__program *p, double d) {
    const double delta = (double)p->delta;
    if (p->loss == QN__LOSS_MAE)
        return fabs(d);
    if (p->loss == QN__LOSS_HUBER)
        return fabs(d) <= delta ? d * d / 2 : delta * (fabs(d) - delta / 2);
    return d * d;
}

static double loss_in_double(const network *n, const double *parameters, uint32_t item,
                             uint32_t epoch) {
    double a[8], z[8], sum = 0, loss = 0;
    for (uint32_t k = 0; k < IN; ++k)
        a[k] = (double)n->values[item][k];
    for (uint32_t i = 0; i < 3; ++i) {
        const qn__layer *l = &n->layer[i];
        for (uint32_t o = 0; o < l->out; ++o) {
            uint32_t word[4];
            double acc = parameters[l->biases + o];
            for (uint32_t k = 0; k < l->in; ++k)
                acc += a[k] * parameters[l->weights + o * l->in + k];
            qn__words(n->program.seed, QN__PURPOSE_DROPOUT, i, epoch, item, o / 4, word);
            z[o] = activated(l->activation, acc);
            if (l->drop_threshold)
                z[o] = word[o % 4] < l->drop_threshold ? 0 : z[o] * (double)l->drop_keep;
        }
        memcpy(a, z, sizeof a);
    }
    if (n->layer[2].activation == QN__ACT_SOFTMAX) {
        for (uint32_t j = 0; j < n->layer[2].out; ++j)
            sum += exp(z[j]);
        for (uint32_t j = 0; j < n->layer[2].out; ++j)
            a[j] = exp(z[j]) / sum;
    }
    if (n->program.loss == QN__LOSS_CROSS_ENTROPY)
        return -log(a[n->labels[item]]);
    if (n->program.loss == QN__LOSS_BINARY)
        return -log(n->labels[item] ? a[0] : 1 - a[0]);
    for (uint32_t j = 0; j < n->layer[2].out; ++j) {
        float target = j == n->labels[item];
        if (n->program.real)
            memcpy(&target, &n->labels[item], sizeof target);
        loss += one_loss(&n->program, a[j] - (double)target);
    }
    return loss;
}

static double grain_in_double(const network *n, const double *parameters, uint32_t epoch) {
    double loss = 0;
    for (uint32_t i = 0; i < ITEMS; ++i)
        loss += loss_in_double(n, parameters, i, epoch);
    return loss;
}

static void check_gradient(network *n, const char *name) {
    const uint32_t epoch = 3;
    double parameters[MOST];
    int64_t sums[MOST] = {0};
    qn__tally tally = {0};
    n->program.layer = n->layer;
    qn__reference *r = reference_of(&n->program);
    qn__reference_grain_begin(r);
    for (uint32_t i = 0; i < ITEMS; ++i) {
        const qn__reference_item item = {QN__ELEMENT_F32, n->values[i], i,
                                         n->labels[i],    NULL,         NULL};
        qn__reference_grain_item(r, n->parameters, &item, epoch);
    }
    assert_int_equal(qn__reference_grain_end(r, sums, &tally), QN__GRAIN_FINE);
    for (uint32_t i = 0; i < n->program.parameters; ++i)
        parameters[i] = (double)n->parameters[i];
    const double loss = grain_in_double(n, parameters, epoch);
    assert_true(fabs((double)tally.loss * 0x1p-32 - loss) < 1e-5 * (1 + loss));
    for (uint32_t i = 0; i < n->program.parameters; ++i) {
        const double at = parameters[i], step = 1e-5;
        parameters[i] = at + step;
        const double up = grain_in_double(n, parameters, epoch);
        parameters[i] = at - step;
        const double slope = (up - grain_in_double(n, parameters, epoch)) / (2 * step);
        parameters[i] = at;
        const double got = (double)sums[i] * 0x1p-40;
        if (fabs(got - slope) > 1e-4 * (0.1 + fabs(slope)))
            fail_msg("%s: the gradient of parameter %u is %g, numerically %g", name, i, got, slope);
    }
    qn__reference_destroy(r);
}

static void test_gradients_are_derivatives(void **state) {
    (void)state;
    char name[64];
    for (int hidden = QN__ACT_NONE; hidden <= QN__ACT_GELU_TANH; ++hidden)
        for (int last = QN__ACT_NONE; last <= QN__ACT_SOFTMAX; ++last)
            for (int loss = hidden == QN__ACT_SOFTMAX ? 2 : 0; /* it stands last only */
                 loss < (last == QN__ACT_SOFTMAX ? 2 : 1); ++loss)
                for (int dropout = 0; dropout < 2; ++dropout) {
                    network n =
                        make((qn__activation)hidden, (qn__activation)last,
                             loss ? QN__LOSS_CROSS_ENTROPY : QN__LOSS_MSE, dropout ? 0.4f : 0.0f);
                    snprintf(name, sizeof name, "activations %d and %d, loss %d, dropout %d",
                             hidden, last, loss, dropout);
                    check_gradient(&n, name);
                }
}

/* The network of `make` with one output, and targets or two classes. */
static network make_single(qn__activation last, qn__loss loss) {
    network n = make(QN__ACT_TANH, last, loss, 0.4f);
    n.layer[2] = qn__layer_flat(MIDDLE, 1, last, n.layer[2].weights);
    n.program.parameters = n.layer[2].biases + 1;
    for (uint32_t i = 0; i < ITEMS; ++i) {
        const float target = (float)i * 0.75f - 1.0f;
        n.labels[i] = i % 2;
        if (loss == QN__LOSS_BINARY)
            continue;
        memcpy(&n.labels[i], &target, sizeof target);
        n.program.real = 1;
    }
    return n;
}

static void test_gradients_of_other_losses(void **state) {
    (void)state;
    static const qn__loss sums[] = {QN__LOSS_MSE, QN__LOSS_MAE, QN__LOSS_HUBER};
    char name[64];
    for (int i = 0; i < 3; ++i)
        for (int last = QN__ACT_NONE; last <= QN__ACT_SOFTMAX; ++last) {
            network classes = make(QN__ACT_TANH, (qn__activation)last, sums[i], 0.4f);
            network real = make_single((qn__activation)last, sums[i]);
            classes.program.delta = real.program.delta = 0.6f;
            snprintf(name, sizeof name, "loss %d, last activation %d", (int)sums[i], last);
            check_gradient(&classes, name);
            check_gradient(&real, name);
        }
    network binary = make_single(QN__ACT_SIGMOID, QN__LOSS_BINARY);
    check_gradient(&binary, "binary");
}

/* ---- failures that end a job (8.7) */

static void test_out_of_range(void **state) {
    (void)state;
    const qn__layer layer = qn__layer_flat(1, 1, QN__ACT_NONE, 0);
    qn__program program = {.layers = 1,
                           .layer = &layer,
                           .parameters = 2,
                           .loss = QN__LOSS_MSE,
                           .batch = 1,
                           .grain = 1,
                           .partial_limit = 8.0f};
    qn__reference *r = reference_of(&program);
    static const struct {
        float weight;
        qn__grain_end end;
    } known[] = {
        {3.0f, QN__GRAIN_FINE},      /* d = 2: partials of 4 */
        {5.0f, QN__GRAIN_GRADIENT},  /* d = 4: partials of 8 */
        {-3.0f, QN__GRAIN_GRADIENT}, /* d = -4: partials of -8 */
        {0x1.7p14f, QN__GRAIN_LOSS}, /* d * d is just above 2^29 */
        {NAN, QN__GRAIN_LOSS},       {INFINITY, QN__GRAIN_LOSS},
    };
    for (size_t i = 0; i < sizeof known / sizeof *known; ++i) {
        const float parameters[2] = {known[i].weight, 0.0f}, one = 1.0f;
        const qn__reference_item item = {QN__ELEMENT_F32, &one, 0, 0, NULL, NULL};
        int64_t sums[2] = {1, 2};
        qn__tally tally = {3, 4, 5};
        qn__reference_grain_begin(r);
        qn__reference_grain_item(r, parameters, &item, 0);
        assert_int_equal(qn__reference_grain_end(r, sums, &tally), known[i].end);
        if (known[i].end == QN__GRAIN_FINE) {
            assert_true(sums[0] == 5 && sums[1] == 6 && tally.items == 6);
            continue;
        }
        assert_true(sums[0] == 1 && sums[1] == 2);
        assert_true(tally.loss == 3 && tally.correct == 4 && tally.items == 5);
    }
    qn__reference_destroy(r);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_step_by_hand),
        cmocka_unit_test(test_the_first_of_equals_is_the_class),
        cmocka_unit_test(test_scalings),
        cmocka_unit_test(test_losses_of_real_targets_by_hand),
        cmocka_unit_test(test_binary),
        cmocka_unit_test(test_gradients_are_derivatives),
        cmocka_unit_test(test_gradients_of_other_losses),
        cmocka_unit_test(test_out_of_range),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
