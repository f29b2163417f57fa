/* Positions after the longest item of a batch: where they may be left out, and how many are left.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "device/shorten.h"
#include "layer/padding.h"
#include <string.h>

enum { LAYERS = 4, POSITIONS = 6, TOKENS = 50, WIDTH = 8 };

static const qn__shape positions = {WIDTH, 1, POSITIONS, QN__SEQUENCE}, one = {WIDTH, 1, 1, 0};

static qn__layer layer_of(qn__layer_kind kind, qn__shape to) {
    return (qn__layer){.kind = kind,
                       .from = positions,
                       .to = to,
                       .window = {{1, 1}, {1, 1}, {0, 0}, {1, 1}},
                       .by_length = kind == QN__LAYER_POOL || kind == QN__LAYER_ATTENTION};
}

/* An embedding, two layers, and a pool. */
static void begin(qn__layer layer[LAYERS], qn__layer_kind second, qn__layer_kind third) {
    layer[0] = layer_of(QN__LAYER_EMBEDDING, positions);
    layer[0].from = (qn__shape){POSITIONS, 1, 1, QN__PICTURE};
    layer[0].vector = TOKENS * WIDTH;
    layer[1] = layer_of(second, positions);
    layer[2] = layer_of(third, positions);
    layer[3] = layer_of(QN__LAYER_POOL, one);
}

static void test_who_mixes(void **state) {
    (void)state;
    static const struct {
        qn__layer_kind kind;
        int mixes;
    } row[] = {{QN__LAYER_ATTENTION, 0}, {QN__LAYER_RMSNORM, 0},   {QN__LAYER_LAYERSCALE, 0},
               {QN__LAYER_ROTARY, 0},    {QN__LAYER_CONV, 0},      {QN__LAYER_BATCHNORM, 1},
               {QN__LAYER_GROUPNORM, 1}, {QN__LAYER_LAYERNORM, 1}, {QN__LAYER_MAXPOOL, 1}};
    qn__layer layer[LAYERS];
    for (size_t i = 0; i < sizeof row / sizeof *row; ++i) {
        begin(layer, QN__LAYER_POSITION, row[i].kind);
        assert_int_equal(qn__padding_mixed(layer, LAYERS), row[i].mixes ? 2 : LAYERS);
    }
    begin(layer, QN__LAYER_POSITION, QN__LAYER_LAYERNORM);
    layer[2].norm_alone = 1;
    assert_int_equal(qn__padding_mixed(layer, LAYERS), LAYERS);
    layer[3] = layer_of(QN__LAYER_GLOBALPOOL, one);
    assert_int_equal(qn__padding_mixed(layer, LAYERS), 3);
}

/* A wide window reads +0 after the last token in the embedding alone. */
static void test_windows(void **state) {
    (void)state;
    const qn__window three = {{1, 3}, {1, 1}, {0, 1}, {1, 1}};
    qn__layer layer[LAYERS];
    begin(layer, QN__LAYER_CONV, QN__LAYER_CONV);
    layer[1].window = three;
    assert_int_equal(qn__padding_mixed(layer, LAYERS), LAYERS);
    layer[2].window = three;
    assert_int_equal(qn__padding_mixed(layer, LAYERS), 2);
    layer[2].skip = 1;
    assert_int_equal(qn__padding_mixed(layer, LAYERS), LAYERS);
    layer[0].activation = QN__ACT_SIGMOID;
    assert_int_equal(qn__padding_mixed(layer, LAYERS), 1);
}

static void test_longest(void **state) {
    (void)state;
    const uint16_t no = UINT16_MAX, narrow[3][POSITIONS] = {{1, no, 2, no, no, no},
                                                            {no, no, no, no, no, no},
                                                            {1, 2, 3, TOKENS - 1, TOKENS, no}};
    uint32_t wide[3][POSITIONS];
    for (int i = 0; i < 3; ++i)
        for (int t = 0; t < POSITIONS; ++t)
            wide[i][t] = narrow[i][t] == no ? UINT32_MAX : narrow[i][t];
    qn__layer layer[LAYERS];
    begin(layer, QN__LAYER_POSITION, QN__LAYER_ATTENTION);
    qn__program program = {.layer = layer, .layers = LAYERS};
    assert_true(qn__can_shorten(&program));
    for (int i = 0; i < 2; ++i) {
        qn__feed feed = {.type = i ? QN__ELEMENT_TOKEN32 : QN__ELEMENT_TOKEN16,
                         .values = i ? (const void *)wide : (const void *)narrow,
                         .features = POSITIONS,
                         .items = 3};
        qn__batch batch = {.feed = &feed, .items = 2};
        assert_int_equal(qn__longest(&program, &batch, NULL), 3);
        batch.first = 1;
        assert_int_equal(qn__longest(&program, &batch, NULL), 4);
        batch.items = 1;
        assert_int_equal(qn__longest(&program, &batch, NULL), 1);
        program.arith = QN__ARITH_I14;
        assert_int_equal(qn__longest(&program, &batch, NULL), POSITIONS);
        assert_int_equal(qn__longest(&program, &batch, &(qn__applied){0}), 1);
        program.arith = QN__ARITH_F32;
        program.sequences = 1;
        assert_int_equal(qn__longest(&program, &batch, NULL), POSITIONS);
        program.sequences = 0;
    }
}

/* An item that ends where the network's positions end, or after them, or in a target. */
static void test_targets(void **state) {
    (void)state;
    const uint16_t no = UINT16_MAX, tokens[3][POSITIONS + 1] = {{1, 2, no, no, no, no, no},
                                                                {1, no, no, no, no, 3, no},
                                                                {no, no, no, no, no, no, 3}};
    const uint8_t ignored = QN__IGNORED;
    uint8_t target[3 * POSITIONS];
    qn__layer layer[LAYERS];
    begin(layer, QN__LAYER_POSITION, QN__LAYER_CONV);
    layer[3] = layer_of(QN__LAYER_CONV, positions);
    const qn__feed feed = {
        .type = QN__ELEMENT_TOKEN16, .values = tokens, .features = POSITIONS + 1, .items = 3};
    qn__program program = {.layer = layer, .layers = LAYERS, .answers = POSITIONS, .next = 1};
    for (uint32_t i = 0; i < 3; ++i)
        assert_int_equal(qn__item_positions(&program, &feed, i, tokens[i], 0), i ? POSITIONS : 2);
    memset(target, ignored, sizeof target);
    target[3] = 1;
    qn__feed classes = feed;
    classes.answers = target;
    classes.features = POSITIONS;
    program.next = 0;
    assert_int_equal(qn__item_positions(&program, &classes, 0, tokens[0], 0), 4);
    assert_int_equal(qn__item_positions(&program, &classes, 1, tokens[0], 1), 2);
    float numbers[1];
    const qn__batch batch = {.feed = &classes, .items = 1};
    assert_int_equal(qn__longest(&program, &batch, &(qn__applied){.scores = numbers}), 4);
    assert_int_equal(qn__longest(&program, &batch, &(qn__applied){.outputs = numbers}), POSITIONS);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_who_mixes), cmocka_unit_test(test_windows),
        cmocka_unit_test(test_longest), cmocka_unit_test(test_targets)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
