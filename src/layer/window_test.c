/* Layers with windows: their reference by hand, and against numerical derivatives of loops in
 * doubles that share no code with it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "layer/layer.h"
#include "layer/reference.h"
#include "layer/slopes_test.h"
#include "num/blend.h"
#include "num/sums.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_LAYERS = 4, MOST_VALUES = 512, MOST_PARAMETERS = 1024, ITEMS = 3 };

typedef struct network {
    qn__layer layer[MOST_LAYERS];
    qn__program program;
    float parameters[MOST_PARAMETERS];
    float values[ITEMS][MOST_VALUES]; /* in the order of the data: [channel][y][x] */
} network;

/* Kernel, stride, padding, dilation of both directions. */
static qn__window window(uint32_t k, uint32_t s, uint32_t p, uint32_t d) {
    return (qn__window){{k, k + 1}, {s, 1}, {p, p ? p + 1 : 0}, {d, 1}};
}

static void add(network *n, qn__layer_text text) {
    qn__program *p = &n->program;
    const qn__shape from = n->layer[p->layers ? p->layers - 1 : 0].to;
    qn__layer *l = &n->layer[p->layers];
    const qn_status status = qn__layer_ops_of(text.kind)->make(
        &text, p->layers ? from : n->layer[0].from, p->parameters, l, NULL);
    assert_int_equal(status, QN_OK);
    p->parameters = qn__layer_end(l);
    p->layers += 1;
    assert_true(p->parameters <= MOST_PARAMETERS && l->in <= MOST_VALUES && l->out <= MOST_VALUES);
}

static network begin(uint32_t channels, uint32_t height, uint32_t width) {
    network n = {.layer = {{.from = {channels, height, width, QN__PICTURE}}},
                 .program = {.loss = QN__LOSS_MSE,
                             .batch = ITEMS,
                             .grain = ITEMS,
                             .gradient_scale = 40,
                             .partial_limit = qn__partial_limit(1)}};
    for (uint32_t i = 0; i < MOST_PARAMETERS; ++i)
        n.parameters[i] = 0.5f * drawn(0, i);
    for (uint32_t i = 0; i < ITEMS; ++i)
        for (uint32_t k = 0; k < MOST_VALUES; ++k)
            n.values[i][k] = drawn(1 + i, k);
    return n;
}

static void end(network *n, uint32_t out) {
    add(n, (qn__layer_text){.kind = QN__LAYER_DENSE, .out = out});
    n->program.layer = n->layer;
}

/* ---- the same in doubles: an image is image[channel][y][x] */

static double *at(double *image, qn__shape s, uint32_t c, int64_t y, int64_t x) {
    static double outside;
    outside = 0;
    if (y < 0 || x < 0 || y >= s.height || x >= s.width)
        return &outside;
    return image + ((size_t)c * s.height + (size_t)y) * s.width + (size_t)x;
}

/* The same of a transposed convolution: what each input pixel adds there. */
static double transposed_output(const qn__layer *l, const double *p, double *a, uint32_t o,
                                uint32_t y, uint32_t x) {
    const qn__window *w = &l->window;
    const uint32_t rows = w->kernel[0], columns = w->kernel[1], channels = l->from.channels;
    const uint32_t pad[2] = {w->dilation[0] * (rows - 1) - w->pad[0],
                             w->dilation[1] * (columns - 1) - w->pad[1]};
    double sum = p[l->biases + o];
    for (uint32_t i = 0; i < l->from.height * rows; ++i)
        for (uint32_t j = 0; j < l->from.width * columns; ++j) {
            const uint32_t iy = i / rows, ky = i % rows, ix = j / columns, kx = j % columns;
            const uint32_t tap = (rows - 1 - ky) * columns + columns - 1 - kx;
            if (iy * l->spread[0] + ky * w->dilation[0] != y + pad[0] ||
                ix * l->spread[1] + kx * w->dilation[1] != x + pad[1])
                continue;
            for (uint32_t c = 0; c < channels; ++c)
                sum += *at(a, l->from, c, iy, ix) *
                       p[l->weights + o * (uint64_t)l->depth + tap * channels + c];
        }
    return sum;
}

/* One output, from the input `a`. */
static double output(const qn__layer *l, const double *p, double *a, uint32_t o, uint32_t y,
                     uint32_t x) {
    const qn__window *w = &l->window;
    if (l->kind == QN__LAYER_CONVTRANSPOSE)
        return transposed_output(l, p, a, o, y, x);
    const int one = l->kind != QN__LAYER_CONV && l->kind != QN__LAYER_DENSE;
    double sum = one ? 0 : p[l->biases + o], most = -INFINITY;
    for (uint32_t c = one ? o : 0; c < (one ? o + 1 : l->from.channels); ++c)
        for (uint32_t ky = 0; ky < w->kernel[0]; ++ky)
            for (uint32_t kx = 0; kx < w->kernel[1]; ++kx) {
                const double v =
                    *at(a, l->from, c, (int64_t)y * w->stride[0] - w->pad[0] + ky * w->dilation[0],
                        (int64_t)x * w->stride[1] - w->pad[1] + kx * w->dilation[1]);
                const uint64_t k = (ky * w->kernel[1] + kx) * l->from.channels + c;
                sum += one ? v : v * p[l->weights + o * (uint64_t)l->depth + k];
                most = v > most ? v : most;
            }
    if (l->kind == QN__LAYER_MAXPOOL)
        return most;
    return one ? sum / (w->kernel[0] * w->kernel[1]) : sum;
}

static double loss_of(const network *n, const double *p, uint32_t item) {
    static double a[MOST_VALUES], y[MOST_VALUES];
    double loss = 0;
    for (uint32_t k = 0; k < n->layer[0].in; ++k)
        a[k] = (double)n->values[item][k];
    for (uint32_t l = 0; l < n->program.layers; ++l) {
        const qn__layer *layer = &n->layer[l];
        for (uint32_t o = 0; o < layer->to.channels; ++o)
            for (uint32_t i = 0; i < layer->to.height; ++i)
                for (uint32_t j = 0; j < layer->to.width; ++j) {
                    const double z = output(layer, p, a, o, i, j);
                    *at(y, layer->to, o, i, j) = layer->activation == QN__ACT_TANH ? tanh(z) : z;
                }
        memcpy(a, y, sizeof a);
    }
    for (uint32_t j = 0; j < n->layer[n->program.layers - 1].out; ++j)
        loss += (a[j] - (j == item % 2)) * (a[j] - (j == item % 2));
    return loss;
}

static double grain_of(const network *n, const double *p) {
    double loss = 0;
    for (uint32_t i = 0; i < ITEMS; ++i)
        loss += loss_of(n, p, i);
    return loss;
}

static void check(const network *n, const char *name) {
    static int64_t sums[MOST_PARAMETERS];
    static double p[MOST_PARAMETERS];
    qn__tally tally = {0};
    qn__reference *r;
    memset(sums, 0, sizeof sums);
    assert_int_equal(qn__reference_create(&n->program, &r, NULL), QN_OK);
    qn__reference_grain_begin(r);
    for (uint32_t i = 0; i < ITEMS; ++i) {
        const qn__reference_item item = {
            .type = QN__ELEMENT_F32, .values = n->values[i], .number = i, .label = i % 2};
        qn__reference_grain_item(r, n->parameters, &item, 0);
    }
    assert_int_equal(qn__reference_grain_end(r, sums, &tally), QN__GRAIN_FINE);
    qn__reference_destroy(r);
    for (uint64_t i = 0; i < n->program.parameters; ++i)
        p[i] = (double)n->parameters[i];
    const double loss = grain_of(n, p);
    if (fabs((double)tally.loss * 0x1p-32 - loss) > 1e-5 * (1 + loss))
        fail_msg("%s: the loss is %g, in doubles %g", name, (double)tally.loss * 0x1p-32, loss);
    for (uint64_t i = 0; i < n->program.parameters; ++i) {
        const double here = p[i], step = 1e-6, got = (double)sums[i] * 0x1p-40;
        p[i] = here + step;
        const double up = grain_of(n, p);
        p[i] = here - step;
        const double slope = (up - grain_of(n, p)) / (2 * step);
        p[i] = here;
        if (fabs(got - slope) > 1e-4 * (0.1 + fabs(slope)))
            fail_msg("%s: the gradient of parameter %llu is %g, numerically %g", name,
                     (unsigned long long)i, got, slope);
    }
}

static void test_gradients_are_derivatives(void **state) {
    (void)state;
    static const qn__layer_kind pools[] = {QN__LAYER_MAXPOOL, QN__LAYER_AVGPOOL,
                                           QN__LAYER_GLOBALPOOL, QN__LAYER_CONV,
                                           QN__LAYER_CONVTRANSPOSE};
    for (uint32_t stride = 1; stride < 4; ++stride)
        for (uint32_t pad = 0; pad < 3; ++pad)
            for (uint32_t dilation = 1; dilation < 3; ++dilation)
                for (uint32_t k = 0; k < 5; ++k) {
                    char name[96];
                    network n = begin(2, 7, 6);
                    snprintf(name, sizeof name, "stride %u, pad %u, dilation %u, %s after it",
                             stride, pad, dilation, qn__layer_ops_of(pools[k])->word);
                    add(&n, (qn__layer_text){.kind = QN__LAYER_CONV,
                                             .out = 3,
                                             .window = window(2 + pad / 2, stride, pad, dilation),
                                             .activation = QN__ACT_TANH});
                    add(&n, (qn__layer_text){.kind = pools[k],
                                             .out = 2,
                                             .window = {{2, 2}, {1, 2}, {0, 0}, {1, 1}}});
                    end(&n, 2);
                    check(&n, name);
                }
}

/* ---- by hand */

static const qn__layer_text one_pool = {.window = {{2, 2}, {1, 1}, {0, 0}, {1, 1}}};

static qn__layer pool(qn__layer_kind kind, uint32_t height, uint32_t width) {
    qn__layer_text text = one_pool;
    qn__layer l;
    text.kind = kind;
    assert_int_equal(qn__layer_ops_of(kind)->make(&text, (qn__shape){1, height, width, QN__PICTURE},
                                                  0, &l, NULL),
                     QN_OK);
    return l;
}

static void test_the_first_of_equals_gets_the_error(void **state) {
    (void)state;
    const qn__layer l = pool(QN__LAYER_MAXPOOL, 2, 3);
    const float a[] = {1, 2, 2, 2, 0, -1}, delta[] = {1, 8};
    float z[2], e[6];
    qn__maxpool.forward(&l, 0, NULL, a, z);
    assert_true(z[0] == 2 && z[1] == 2);
    qn__maxpool.backward(&l, 0, NULL, a, delta, NULL, e);
    assert_memory_equal(e, ((const float[]){0, 9, 0, 0, 0, 0}), sizeof e);
}

static void test_no_negative_zero_leaves_a_window(void **state) {
    (void)state;
    const qn__layer l = pool(QN__LAYER_MAXPOOL, 2, 2);
    const float a[] = {-0.0f, -1, -1, -1};
    float z[1];
    qn__maxpool.forward(&l, 0, NULL, a, z);
    assert_true(z[0] == 0 && !signbit(z[0]));
    const qn__layer_text text = {
        .kind = QN__LAYER_CONV, .out = 1, .window = {{1, 1}, {1, 1}, {0, 0}, {1, 1}}};
    qn__layer c;
    assert_int_equal(qn__conv.make(&text, (qn__shape){1, 1, 1, QN__PICTURE}, 0, &c, NULL), QN_OK);
    qn__conv.forward(&c, 0, (const float[]){-1, -0.0f}, (const float[]){0}, z);
    assert_true(z[0] == 0 && !signbit(z[0]));
}

/* The sum first, in the order of the window, then one product. */
static void test_a_mean_is_rounded_as_written(void **state) {
    (void)state;
    const qn__layer l = pool(QN__LAYER_AVGPOOL, 2, 2);
    float z[1], e[4];
    qn__avgpool.forward(&l, 0, NULL, (const float[]){0x1p24f, 1, 1, -0x1p24f}, z);
    assert_true(z[0] == 0);
    qn__avgpool.forward(&l, 0, NULL, (const float[]){1, 1, 0x1p24f, -0x1p24f}, z);
    assert_true(z[0] == 0.5f);
    qn__avgpool.backward(&l, 0, NULL, NULL, (const float[]){6}, NULL, e);
    assert_memory_equal(e, ((const float[]){1.5f, 1.5f, 1.5f, 1.5f}), sizeof e);
}

static void test_windows_that_do_not_fit(void **state) {
    (void)state;
    qn__layer l;
    qn_error err = {0};
    assert_int_equal(qn__maxpool.make(&one_pool, (qn__shape){3, 1, 5, QN__PICTURE}, 0, &l, &err),
                     QN_USAGE);
    assert_string_equal(err.what, "a window of 2x2 pixels does not fit into 1x5 pixels");
    qn__layer_text wide = one_pool;
    wide.out = QN__MAX_WIDTH;
    assert_int_equal(qn__conv.make(&wide, (qn__shape){3, 9, 9, QN__PICTURE}, 0, &l, &err),
                     QN_USAGE);
    assert_string_equal(err.what, "16777216 channels of 8x8 pixels are too many outputs");
    wide.window.dilation[0] = 9;
    assert_int_equal(qn__conv.make(&wide, (qn__shape){3, 9, 9, QN__PICTURE}, 0, &l, &err),
                     QN_USAGE);
    assert_string_equal(err.what,
                        "a window of 10x2 pixels, its dilation included, does not fit into "
                        "9x9 pixels");
}

/* By counting. */
static void test_windows_that_are_fitted(void **state) {
    (void)state;
    for (uint32_t size = 1; size < 24; ++size)
        for (uint32_t limit = 1; limit < 24; ++limit) {
            qn__layer_text text = {.kind = QN__LAYER_AVGPOOL, .fitted = 1};
            uint32_t most = 0, all = 0;
            qn__layer l;
            text.window.kernel[0] = 2;
            text.window.kernel[1] = size;
            assert_int_equal(
                qn__avgpool.make(&text, (qn__shape){3, 1, limit, QN__PICTURE}, 0, &l, NULL), QN_OK);
            for (uint32_t y = 0; y < size; ++y) {
                uint32_t count = 0;
                for (uint32_t i = 0; i < limit; ++i) {
                    const int reads = y * limit < (i + 1) * size && i * size < (y + 1) * limit;
                    const qn__cover forth = qn__cover_of(y, size, limit);
                    const qn__cover back = qn__cover_of(i, limit, size);
                    assert_int_equal(reads, forth.begin <= i && i < forth.end);
                    assert_int_equal(reads, back.begin <= y && y < back.end);
                    count += (uint32_t)reads;
                }
                most = count > most ? count : most;
                all += count;
            }
            assert_int_equal(l.window.kernel[1], most);
            assert_int_equal(qn__layer_flops(&l).forward, 3 * 2 * all);
        }
}

/* torch 2.15: AdaptiveAvgPool2d((2, 3)), AdaptiveMaxPool2d((2, 3)) and Upsample(scale_factor=2),
 * and the gradients of 1*z[0] + 2*z[1] + ... */
static void test_fitted_windows_by_hand(void **state) {
    (void)state;
    const float a[15] = {1, 5, 2, 8, 4, 0, 3, 9, 6, 7, 2, 2, 1, 5, 5};
    const float delta[6] = {1, 2, 3, 4, 5, 6};
    const qn__shape from = {1, 3, 5, QN__PICTURE};
    qn__layer_text text = {.fitted = 1, .window.kernel = {2, 3}};
    float z[60], e[15], up[60];
    qn__layer l;
    text.kind = QN__LAYER_MAXPOOL;
    assert_int_equal(qn__maxpool.make(&text, from, 0, &l, NULL), QN_OK);
    qn__maxpool.forward(&l, 0, NULL, a, z);
    assert_memory_equal(z, ((const float[]){5, 9, 8, 3, 9, 7}), 6 * sizeof *z);
    qn__maxpool.backward(&l, 0, NULL, a, delta, NULL, e);
    assert_memory_equal(e, ((const float[]){0, 1, 0, 3, 0, 0, 4, 7, 0, 6, 0, 0, 0, 0, 0}),
                        sizeof e);
    text.kind = QN__LAYER_AVGPOOL;
    assert_int_equal(qn__avgpool.make(&text, from, 0, &l, NULL), QN_OK);
    qn__avgpool.forward(&l, 0, NULL, a, z);
    assert_memory_equal(z, ((const float[]){2.25f, 5.5f, 6.25f, 1.75f, 26 * (1 / 6.0f), 5.75f}),
                        6 * sizeof *z);
    text = (qn__layer_text){.kind = QN__LAYER_UPSAMPLE, .window.kernel = {2, 2}};
    assert_int_equal(qn__upsample.make(&text, from, 0, &l, NULL), QN_OK);
    qn__upsample.forward(&l, 0, NULL, a, up);
    for (uint32_t i = 0; i < 60; ++i)
        assert_true(up[i] == a[i / 20 * 5 + i % 10 / 2]);
    for (uint32_t i = 0; i < 60; ++i)
        up[i] = (float)i;
    qn__upsample.backward(&l, 0, NULL, a, up, NULL, e);
    assert_true(e[0] == 0 + 1 + 10 + 11 && e[14] == 48 + 49 + 58 + 59);
}

/* The taps of each output are its readers' inputs, and their weights are those of the distances
 * that docs/exactness.md 24.43 describes, in doubles. */
static void test_blends_by_counting(void **state) {
    (void)state;
    for (uint32_t factor = 1; factor < 9; ++factor)
        for (uint32_t limit = 1; limit < 9; ++limit) {
            qn__layer_text text = {.kind = QN__LAYER_UPSAMPLE, .fitted = QN__BLENDS};
            uint32_t all = 0;
            qn__layer l;
            text.window.kernel[0] = 1;
            text.window.kernel[1] = factor;
            assert_int_equal(
                qn__upsample.make(&text, (qn__shape){3, 1, limit, QN__PICTURE}, 0, &l, NULL),
                QN_OK);
            for (uint32_t y = 0; y < factor * limit; ++y) {
                const qn__cover taps = qn__blend_taps(y, factor, limit);
                const double at = (y + 0.5) / factor - 0.5;
                const double place = at < 0 ? 0 : at > limit - 1 ? limit - 1 : at;
                for (uint32_t i = 0; i < limit; ++i) {
                    const qn__cover back = qn__blend_readers(i, factor, limit);
                    const double share = 1 - fabs(place - i);
                    const int reads = taps.begin <= i && i < taps.end;
                    assert_int_equal(reads, share > 1e-9);
                    assert_int_equal(reads, back.begin <= y && y < back.end);
                    if (reads)
                        assert_int_equal(qn__blend_weight(y, i, factor, limit),
                                         lround(share * 2 * factor));
                    all += (uint32_t)reads;
                }
            }
            assert_int_equal(l.window.kernel[1], factor > 1 && limit > 1 ? 2 : 1);
            assert_int_equal(qn__layer_flops(&l).forward, 3 * 2 * all);
        }
}

static void assert_near(const float *got, const float *wanted, size_t count) {
    for (size_t i = 0; i < count; ++i)
        assert_true(fabsf(got[i] - wanted[i]) <= 2e-6f * (1 + fabsf(wanted[i])));
}

/* torch 2.15: Upsample(scale_factor=(2, 3), mode="bilinear", align_corners=False), and the gradient
 * of 0*z[0] + 1*z[1] + ... */
static void test_blends_by_hand(void **state) {
    (void)state;
    static const float a[6] = {1, 5, 2, 8, 4, 0};
    static const float wanted[36] = {
        1,     1,     2.3333335f, 3.6666667f, 5,     4,          2.9999998f, 2,    2,
        2.75f, 2.75f, 3.4166667f, 4.083333f,  4.75f, 3.6666665f, 2.583333f,  1.5f, 1.5f,
        6.25f, 6.25f, 5.583333f,  4.9166665f, 4.25f, 3,          1.7499998f, 0.5f, 0.5f,
        8,     8,     6.6666665f, 5.333333f,  4,     2.6666665f, 1.333333f,  0,    0};
    static const float slopes[6] = {40.416664f, 57.75f,     75.083336f,
                                    134.91666f, 152.24998f, 169.58334f};
    const qn__layer_text text = {
        .kind = QN__LAYER_UPSAMPLE, .fitted = QN__BLENDS, .window.kernel = {2, 3}};
    float z[36], delta[36], e[6];
    qn__layer l;
    assert_int_equal(qn__upsample.make(&text, (qn__shape){1, 2, 3, QN__PICTURE}, 0, &l, NULL),
                     QN_OK);
    for (uint32_t i = 0; i < 36; ++i)
        delta[i] = (float)i;
    qn__upsample.forward(&l, 0, NULL, a, z);
    assert_near(z, wanted, 36);
    qn__upsample.backward(&l, 0, NULL, a, delta, NULL, e);
    assert_near(e, slopes, 6);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_gradients_are_derivatives),
        cmocka_unit_test(test_the_first_of_equals_gets_the_error),
        cmocka_unit_test(test_no_negative_zero_leaves_a_window),
        cmocka_unit_test(test_a_mean_is_rounded_as_written),
        cmocka_unit_test(test_windows_that_do_not_fit),
        cmocka_unit_test(test_windows_that_are_fitted),
        cmocka_unit_test(test_fitted_windows_by_hand),
        cmocka_unit_test(test_blends_by_counting),
        cmocka_unit_test(test_blends_by_hand),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
