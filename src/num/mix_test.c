/* Mixing of two items: the distribution of the shares, and what a box and a mean are. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "num/mix.h"

enum { CHANNELS = 2, HEIGHT = 6, WIDTH = 5, VALUES = CHANNELS * HEIGHT * WIDTH, DRAWS = 4000 };

/* Mean 1/2 and variance 1 / (4 * (2 * alpha + 1)): those of the beta distribution. */
static void test_shares(void **state) {
    static const float alphas[] = {0.05f, 0.2f, 1.0f};
    (void)state;
    for (int k = 0; k < 3; ++k) {
        const qn__mix mix = {alphas[k], 0, {1, 1, 1, QN__PICTURE}};
        double sum = 0, squares = 0;
        for (uint64_t item = 0; item < DRAWS; ++item) {
            const qn__mixing m = qn__mix_of(&mix, 5, (uint32_t)k, item << 20);
            assert_true(m.own >= 0 && m.own <= 1 && m.own + m.other == 1);
            sum += m.own;
            squares += (m.own - 0.5) * (m.own - 0.5);
        }
        assert_true(fabs(sum / DRAWS - 0.5) < 0.03);
        assert_true(fabs(squares / DRAWS * 4 * (2 * (double)alphas[k] + 1) - 1) < 0.05);
    }
}

/* The values outside the box stay, and the share of the label is theirs. */
static void test_boxes(void **state) {
    const qn__mix mix = {1, 1, {CHANNELS, HEIGHT, WIDTH, QN__PICTURE}};
    int whole = 0, none = 0;
    (void)state;
    for (uint64_t item = 0; item < 500; ++item) {
        const qn__mixing m = qn__mix_of(&mix, 1, 2, item);
        float own[VALUES], other[VALUES];
        uint8_t bytes[VALUES], more[VALUES];
        int copied = 0;
        for (int k = 0; k < VALUES; ++k) {
            own[k] = 1, other[k] = 2;
            bytes[k] = 1, more[k] = 2;
        }
        qn__mix_values(&mix, &m, sizeof *own, own, other);
        qn__mix_values(&mix, &m, 1, bytes, more);
        for (uint32_t k = 0; k < VALUES; ++k) {
            const uint32_t y = k / WIDTH % HEIGHT, x = k % WIDTH;
            const int inside =
                y >= m.box[0][0] && y < m.box[0][1] && x >= m.box[1][0] && x < m.box[1][1];
            assert_true(own[k] == (inside ? 2 : 1) && bytes[k] == (inside ? 2 : 1));
            copied += inside;
        }
        assert_true(fabsf(m.other - (float)copied / VALUES) < 0x1p-16f);
        whole += copied == VALUES;
        none += copied == 0;
    }
    assert_true(whole < 250 && none > 0 && none < 250);
}

static void test_means(void **state) {
    const qn__mix mix = {1, 0, {2, 1, 1, QN__PICTURE}};
    const qn__mixing m = {.share = 0x4000, .own = 0.25f, .other = 0.75f};
    float own[2] = {1, -3e38f}, other[2] = {5, 3e38f};
    uint8_t bytes[2] = {255, 3}, more[2] = {255, 5};
    (void)state;
    qn__mix_values(&mix, &m, sizeof *own, own, other);
    qn__mix_values(&mix, &m, 1, bytes, more);
    assert_true(own[0] == 4 && isfinite(own[1]));
    assert_int_equal(bytes[0], 255);
    assert_int_equal(bytes[1], 5); /* 4.5 */
    assert_int_equal((int)qn__mix_position(0, 9), 8);
    assert_int_equal((int)qn__mix_position(8, 9), 7);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_shares), cmocka_unit_test(test_boxes),
                                       cmocka_unit_test(test_means)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
