/* Several answers to an item: losses and errors as PyTorch 2.15 gives them in float64
 * (cross_entropy with ignore_index, binary_cross_entropy_with_logits), and what is ignored. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "layer/answers.h"

/* The loss of an item and its errors are those that are expected, to a few units of float32. */
static void check(const qn__program *p, const float *z, const uint8_t *target, double loss,
                  const double *error, uint64_t right) {
    float y[12], delta[12];
    uint64_t found = 0, count = 0;
    for (uint32_t i = 0; i < p->answers; ++i)
        count += target[i] != QN__IGNORED;
    const float share = qn__answers_share(1.0f, count);
    qn__answers_outputs(p, z, y);
    const qn__targets targets = {.bytes = target};
    const float own = qn__answers_loss(p, z, y, &targets, &found) * share;
    qn__answers_errors(p, y, &targets, share, delta);
    assert_true(fabs((double)own - loss) < 2e-7);
    assert_int_equal(found, right);
    for (uint32_t j = 0; j < p->layer[p->layers - 1].out; ++j)
        assert_true(fabs((double)delta[j] - error[j]) < 1e-7);
}

/* 2 x 2 pixels of 3 classes, one of which is ignored. */
static void test_pixels(void **state) {
    static const float z[] = {0.5f, -1.0f, 2.0f, 0, 0, 1, -3.0f, 0.25f, 0.75f, 1, 1, -2.0f};
    static const uint8_t target[] = {2, 0, QN__IGNORED, 1};
    static const double error[] = {0.05843013071334556,
                                   0.013037524423562482,
                                   -0.07146765513690803,
                                   -0.2626861474609715,
                                   0.07064718587236181,
                                   0.1920389615886097,
                                   0,
                                   0,
                                   0,
                                   0.16261851705345612,
                                   -0.1707148162798772,
                                   0.008096299226421069};
    const qn__layer last = {.to = {3, 2, 2, QN__PICTURE}, .out = 12};
    const qn__program p = {
        .layers = 1, .layer = &last, .loss = QN__LOSS_CROSS_ENTROPY, .answers = 4};
    (void)state;
    check(&p, z, target, 0.8368306430853036, error, 1); /* of equal outputs the first is greatest */
}

static void test_labels(void **state) {
    static const float z[] = {0.5f, -1.0f, 2.0f, 0.0f};
    static const uint8_t target[] = {1, 0, 0, 1};
    static const double error[] = {-0.09438516719953635, 0.06723535534249878, 0.22019926949447058,
                                   -0.125};
    const qn__layer last = {.to = {4, 1, 1, QN__PICTURE}, .out = 4};
    const qn__program p = {.layers = 1, .layer = &last, .loss = QN__LOSS_BINARY, .answers = 4};
    (void)state;
    check(&p, z, target, 0.9018534658253119, error, 2);
}

/* The same pixels as positions, whose targets are the values of the item after the first: the
 * second has the token 0, the third none. */
static void test_next_tokens(void **state) {
    static const float z[] = {0.5f, -1.0f, 2.0f, 0, 0, 1}, values[] = {1, 2, 0};
    float y[6], delta[6];
    uint64_t right = 0;
    const qn__layer last = {.to = {3, 1, 2, QN__SEQUENCE}, .out = 6};
    const qn__program p = {
        .layers = 1, .layer = &last, .loss = QN__LOSS_CROSS_ENTROPY, .answers = 2, .next = 1};
    static const uint8_t bytes[] = {2, 0};
    float same[6];
    const qn__targets targets = {.values = values, .tokens = 3}, other = {.bytes = bytes};
    const qn__targets few = {.values = values, .tokens = 2};
    (void)state;
    qn__answers_outputs(&p, z, y);
    assert_true(qn__answers_loss(&p, z, y, &targets, &right) ==
                qn__answers_loss(&p, z, y, &other, &right));
    assert_int_equal(right, 2);
    qn__answers_errors(&p, y, &targets, 1.0f, delta);
    qn__answers_errors(&p, y, &other, 1.0f, same);
    assert_memory_equal(delta, same, sizeof delta);
    assert_int_equal(qn__target_at(&few, 0), QN__NO_ANSWER);
    assert_int_equal(qn__target_at(&few, 1), 0);
}

/* An item without a target that counts has no loss and no errors. */
static void test_nothing_counts(void **state) {
    static const float z[] = {4.0f, -1.0f, 2.0f};
    static const uint8_t target[] = {QN__IGNORED, QN__IGNORED, QN__IGNORED};
    static const double none[] = {0, 0, 0};
    const qn__layer last = {.to = {3, 1, 1, QN__PICTURE}, .out = 3};
    qn__program p = {.layers = 1, .layer = &last, .loss = QN__LOSS_BINARY, .answers = 3};
    (void)state;
    check(&p, z, target, 0, none, 0);
    p.loss = QN__LOSS_CROSS_ENTROPY;
    p.answers = 1;
    check(&p, z, target, 0, none, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pixels),
        cmocka_unit_test(test_labels),
        cmocka_unit_test(test_next_tokens),
        cmocka_unit_test(test_nothing_counts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
