/* Shapes with positions, and items that are numbers of tokens: two kinds of layers that the library
 * does not have. One looks tokens up, the other reads the position before. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/error.h"
#include "layer/axes.h"
#include "layer/layer.h"
#include "num/element.h"

enum { POSITIONS = 5, CHANNELS = 3, VOCABULARY = 70000 };

static qn__layer layer_of(qn__shape from, qn__shape to) {
    return (qn__layer){.from = from,
                       .to = to,
                       .in = qn__shape_volume(from),
                       .out = qn__shape_volume(to),
                       .drop_keep = 1.0f};
}

/* embed N: each position is the number of a token, and becomes N channels. */
static qn_status parse_embed(qn__tokens *tokens, qn__layer_text *layer) {
    return qn__tokens_count(tokens, "width", QN__MAX_WIDTH, "a whole number", &layer->out);
}

static qn_status make_embed(const qn__layer_text *text, qn__shape from, uint64_t first,
                            qn__layer *layer, qn_error *err) {
    (void)first, (void)err;
    *layer = layer_of(from, (qn__shape){text->out, 1, from.width, QN__SEQUENCE});
    return QN_OK;
}

static void embed(const qn__layer *l, int bits, const float *parameters, const float *a, float *z) {
    (void)bits;
    for (uint32_t p = 0; p < l->to.width; ++p)
        memcpy(z + p * l->to.channels, parameters + (size_t)a[p] * l->to.channels,
               l->to.channels * sizeof *z);
}

/* before: of each position the channels of the one before; zeros first. */
static qn_status make_before(const qn__layer_text *text, qn__shape from, uint64_t first,
                             qn__layer *layer, qn_error *err) {
    (void)text, (void)first, (void)err;
    *layer = layer_of(from, from);
    return QN_OK;
}

static void before(const qn__layer *l, int bits, const float *parameters, const float *a,
                   float *z) {
    (void)bits, (void)parameters;
    memset(z, 0, l->to.channels * sizeof *z);
    memcpy(z + l->to.channels, a, (l->out - l->to.channels) * sizeof *z);
}

static const qn__layer_ops embed_ops = {.word = "embed",
                                        .syntax = "embed N",
                                        .parse = parse_embed,
                                        .make = make_embed,
                                        .forward = embed},
                           before_ops = {.word = "before",
                                         .syntax = "before",
                                         .takes = 1u << QN__SEQUENCE,
                                         .make = make_before,
                                         .forward = before};

static void test_texts(void **state) {
    (void)state;
    static const struct {
        qn__shape shape;
        const char *text, *name;
    } cases[] = {{{3, 32, 16, QN__PICTURE}, "3x32x16", "pixels"},
                 {{784, 1, 1, QN__PICTURE}, "784x1x1", "features"},
                 {{64, 1, 128, QN__SEQUENCE}, "128x64", "positions"},
                 {{64, 1, 1, QN__SEQUENCE}, "1x64", "positions"},
                 {{UINT32_MAX, UINT32_MAX, UINT32_MAX, QN__PICTURE},
                  "4294967295x4294967295x4294967295",
                  "pixels"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[QN__SHAPE_TEXT];
        assert_string_equal(qn__shape_text(cases[i].shape, text), cases[i].text);
        assert_string_equal(qn__axes_of(cases[i].shape)->name, cases[i].name);
    }
}

/* Layers of the library keep positions, but for those that end them. */
static void test_layers(void **state) {
    (void)state;
    const qn__shape from = {CHANNELS, 1, POSITIONS, QN__SEQUENCE};
    const qn__layer_text text = {
        .out = 4, .window = {{1, 3}, {1, 1}, {0, 1}, {1, 1}}, .norm_groups = 1};
    const qn__layer_kind keep[] = {QN__LAYER_CONV, QN__LAYER_BATCHNORM, QN__LAYER_LAYERNORM,
                                   QN__LAYER_ADD, QN__LAYER_MAXPOOL};
    const qn__layer_kind end[] = {QN__LAYER_GLOBALPOOL, QN__LAYER_DENSE};
    qn__layer layer;
    for (size_t i = 0; i < sizeof keep / sizeof *keep; i++) {
        qn__layer_text own = text;
        own.kind = keep[i];
        assert_int_equal(qn__layer_make(qn__layer_ops_of(keep[i]), &own, from, 0, &layer, NULL),
                         QN_OK);
        assert_int_equal(layer.to.axes, QN__SEQUENCE);
        assert_int_equal(layer.to.width, POSITIONS);
    }
    for (size_t i = 0; i < sizeof end / sizeof *end; i++) {
        qn__layer_text own = text;
        own.kind = end[i];
        assert_int_equal(qn__layer_make(qn__layer_ops_of(end[i]), &own, from, 0, &layer, NULL),
                         QN_OK);
        assert_string_equal(qn__axes_of(layer.to)->name, "features");
    }
}

static void test_refused(void **state) {
    (void)state;
    qn_error err = {0};
    qn__layer layer;
    const qn__layer_text text = {.kind = QN__LAYER_DENSE};
    assert_int_equal(
        qn__layer_make(&before_ops, &text, (qn__shape){3, 8, 8, QN__PICTURE}, 0, &layer, &err),
        QN_USAGE);
    assert_string_equal(err.what, "\"before\" cannot take an input of pixels (3x8x8)");
    assert_string_equal(err.remedy, "it takes positions");
    assert_int_equal(
        qn__layer_make(&before_ops, &text, (qn__shape){3, 1, 8, QN__SEQUENCE}, 0, &layer, &err),
        QN_OK);
}

/* Tokens of both sizes, from a text of the layers to their outputs. */
static void test_tokens(void **state) {
    (void)state;
    static float table[VOCABULARY][CHANNELS];
    const uint16_t narrow[POSITIONS] = {65535, 0, 7, 7, 1};
    const uint32_t wide[POSITIONS] = {69999, 0, 7, 65543, 1};
    const void *values[] = {narrow, wide};
    for (uint32_t t = 0; t < VOCABULARY; t++)
        for (uint32_t c = 0; c < CHANNELS; c++)
            table[t][c] = (float)(t * CHANNELS + c);
    for (unsigned i = 0; i < 2; i++) {
        const qn__element *element = qn__element_of(QN__ELEMENT_TOKEN16 + i);
        const qn__shape input = {1, 1, POSITIONS, QN__SEQUENCE};
        float a[POSITIONS], one[POSITIONS * CHANNELS], two[POSITIONS * CHANNELS];
        qn__tokens tokens = {.text = "3"};
        qn__layer_text text = {.kind = QN__LAYER_DENSE};
        qn__layer first, second;
        qn__tokens_next(&tokens);
        assert_int_equal(embed_ops.parse(&tokens, &text), QN_OK);
        assert_int_equal(qn__layer_make(&embed_ops, &text, input, 0, &first, NULL), QN_OK);
        assert_int_equal(qn__layer_make(&before_ops, &text, first.to, 0, &second, NULL), QN_OK);
        assert_int_equal(element->wrong(values[i], POSITIONS, VOCABULARY, NULL), POSITIONS);
        element->floats(values[i], POSITIONS, a);
        embed_ops.forward(&first, 0, &table[0][0], a, one);
        before_ops.forward(&second, 0, NULL, one, two);
        for (uint32_t p = 0; p < POSITIONS; p++)
            for (uint32_t c = 0; c < CHANNELS; c++) {
                const uint32_t token = p == 0 ? 0 : i ? wide[p - 1] : narrow[p - 1];
                assert_true(two[p * CHANNELS + c] == (p ? (float)(token * CHANNELS + c) : 0.0f));
            }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_texts),
        cmocka_unit_test(test_layers),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_tokens),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
