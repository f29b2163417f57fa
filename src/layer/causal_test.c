/* A network of tokens with causal attention in each arithmetic, or with states: what a position
 * gives depends on itself and on those before it, bit by bit (docs/exactness.md 25.24). Backward,
 * an error goes to positions before. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "layer/layer.h"
#include "layer/reference.h"
#include <math.h>
#include <string.h>

enum { TOKENS = 7, WIDTH = 6, LONG = 9, LAYERS = 5, OUT = 5, MOST = 2048 };

static const qn__window one = {{1, 1}, {1, 1}, {0, 0}, {1, 1}};

typedef struct network {
    qn__layer layer[LAYERS];
    qn__program program;
    float parameters[MOST];
} network;

static void add(network *n, const qn__layer_text *text, qn__shape from) {
    qn__program *p = &n->program;
    assert_int_equal(
        qn__layer_ops_of(text->kind)->make(text, from, p->parameters, &n->layer[p->layers], NULL),
        QN_OK);
    p->parameters = qn__layer_end(&n->layer[p->layers++]);
}

/* A network of the layers between the embedding and the last convolution. Tokens with higher
 * numbers have much larger rows, so that a shared scale would show. */
static void make_of(network *n, const qn__layer_text *inner, uint32_t layers, qn__arith arith,
                    qn__attention_arith attention) {
    const qn__layer_text first = {.kind = QN__LAYER_EMBEDDING, .vocabulary = TOKENS, .out = WIDTH};
    const qn__layer_text last = {.kind = QN__LAYER_CONV, .out = OUT, .window = one};
    memset(n, 0, sizeof *n);
    add(n, &first, (qn__shape){LONG, 1, 1, QN__PICTURE});
    for (uint32_t i = 0; i < layers; ++i)
        add(n, &inner[i], n->layer[i].to);
    add(n, &last, n->layer[layers].to);
    n->program.layer = n->layer;
    n->program.arith = arith;
    n->program.attention_arith = attention;
    n->program.loss = QN__LOSS_MSE;
    n->program.batch = n->program.grain = 1;
    assert_true(n->program.parameters <= MOST);
    for (uint32_t i = 0; i < n->program.parameters; ++i) {
        const int token = i < TOKENS * WIDTH ? (int)(i / WIDTH) : 0;
        n->parameters[i] = ldexpf((float)(i * 7919 % 255) - 127.0f, 2 * token - 9);
    }
}

/* `reach`: of the window of the first convolution, to both sides. */
static void make(network *n, qn__arith arith, qn__attention_arith attention, uint32_t reach) {
    const qn__window wide = {{1, 2 * reach + 1}, {1, 1}, {0, reach}, {1, 1}};
    const qn__layer_text inner[] = {{.kind = QN__LAYER_POSITION},
                                    {.kind = QN__LAYER_CONV, .out = 3 * WIDTH, .window = wide},
                                    {.kind = QN__LAYER_ATTENTION, .heads = 2, .causal = 1}};
    make_of(n, inner, 3, arith, attention);
}

static void outputs_of(const network *n, qn__reference *r, const uint8_t *tokens, float *y) {
    const qn__reference_item item = {QN__ELEMENT_U8, tokens, 0, 0, NULL, NULL};
    memcpy(y, qn__reference_apply(r, n->parameters, &item), LONG * OUT * sizeof *y);
}

static void check_outputs(qn__arith arith, qn__attention_arith attention, uint32_t reach) {
    static network n;
    const uint8_t tokens[LONG] = {1, 0, 2, 1, 0, 2, 2, 1, 0};
    float y[LONG * OUT], other[LONG * OUT];
    qn__reference *r;
    make(&n, arith, attention, reach);
    assert_int_equal(qn__reference_create(&n.program, &r, NULL), QN_OK);
    outputs_of(&n, r, tokens, y);
    for (uint32_t t = 1; t < LONG; ++t) {
        const uint32_t same = t - reach; /* positions whose windows do not reach t */
        uint8_t changed[LONG];
        memcpy(changed, tokens, LONG);
        changed[t] = TOKENS - 1;
        outputs_of(&n, r, changed, other);
        assert_memory_equal(y, other, same * OUT * sizeof *y);
        assert_memory_not_equal(y + same * OUT, other + same * OUT, OUT * sizeof *y);
    }
    qn__reference_destroy(r);
}

static void test_outputs_do_not_depend_on_later_tokens(void **state) {
    (void)state;
    for (int i = 0; i < 8; ++i)
        check_outputs((qn__arith)(i / 2), (qn__attention_arith)(i % 2), 0);
}

/* 25.27 */
static void test_outputs_depend_on_what_their_windows_read(void **state) {
    (void)state;
    for (int a = QN__ARITH_F32; a <= QN__ARITH_I21; ++a)
        check_outputs((qn__arith)a, QN__ATTENTION_INTEGERS, 1);
}

/* 25.34: of states, too, and with `reverse` those of a position do not depend on tokens before it.
 */
static void test_states_do_not_depend_on_what_comes_after(void **state) {
    static network n;
    (void)state;
    for (int i = 0; i < 4; ++i) {
        const qn__state_cell cell = i % 2 ? QN__CELL_GRU : QN__CELL_LSTM;
        const int reverse = i / 2;
        const uint8_t tokens[LONG] = {1, 0, 2, 1, 0, 2, 2, 1, 0};
        const qn__layer_text inner[] = {
            {.kind = QN__LAYER_CONV, .out = (i % 2 ? 3 : 4) * WIDTH, .window = one},
            {.kind = QN__LAYER_RECURRENT, .cell = cell, .reverse = reverse}};
        float y[LONG * OUT], other[LONG * OUT];
        qn__reference *r;
        make_of(&n, inner, 2, QN__ARITH_F32, QN__ATTENTION_FLOAT32);
        assert_int_equal(qn__reference_create(&n.program, &r, NULL), QN_OK);
        outputs_of(&n, r, tokens, y);
        for (uint32_t t = 0; t < LONG; ++t) {
            const uint32_t same = reverse ? t + 1 : 0, end = reverse ? LONG : t;
            uint8_t changed[LONG];
            memcpy(changed, tokens, LONG);
            changed[t] = TOKENS - 1;
            outputs_of(&n, r, changed, other);
            assert_memory_equal(y + same * OUT, other + same * OUT, (end - same) * OUT * sizeof *y);
            assert_memory_not_equal(y + t * OUT, other + t * OUT, OUT * sizeof *y);
        }
        qn__reference_destroy(r);
    }
}

/* The errors of conv, where only position t has some, are +0 before and after it. */
static void test_errors_stay_at_their_position(void **state) {
    (void)state;
    static network n;
    static float delta[LONG * 3 * WIDTH], e[LONG * WIDTH], both[LONG * WIDTH];
    static int64_t sums[LONG * WIDTH];
    const qn__layer *l = &n.layer[2];
    make(&n, QN__ARITH_I14, QN__ATTENTION_FLOAT32, 0);
    for (uint32_t c = 0; c < 3 * WIDTH; ++c)
        delta[4 * 3 * WIDTH + c] = (float)c + 0.25f;
    qn__conv.backward(l, 14, n.parameters, NULL, delta, sums, e);
    for (uint32_t k = 0; k < LONG * WIDTH; ++k)
        assert_true((e[k] != 0.0f) == (k / WIDTH == 4));
    for (uint32_t c = 0; c < 3 * WIDTH; ++c)
        delta[7 * 3 * WIDTH + c] = 0x1p20f;
    qn__conv.backward(l, 14, n.parameters, NULL, delta, sums, both);
    assert_memory_equal(e, both, 7 * WIDTH * sizeof *e);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_outputs_do_not_depend_on_later_tokens),
        cmocka_unit_test(test_outputs_depend_on_what_their_windows_read),
        cmocka_unit_test(test_states_do_not_depend_on_what_comes_after),
        cmocka_unit_test(test_errors_stay_at_their_position),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
