/* Angles of positions: beside the C library's functions in doubles, and beside the rules as they
 * are written. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "num/turn.h"
#include <math.h>

enum { PAIRS = 32 };

#define NEAR(x, y, error) assert_true(fabs((double)(x) - (y)) <= (error))

/* Also far out, and where the reduction leaves next to nothing. */
static void test_cosines_and_sines(void **state) {
    static const float near[] = {0.0f,           0x1.921fb6p+0f, 0x1.921fb6p+1f, 0x1.2d97c8p+2f,
                                 0x1.5fdbccp+3f, 4194303.0f,     4194304.0f};
    (void)state;
    for (uint32_t i = 0; i < 40000; ++i) {
        const float angle = i < 7 ? near[i] : (float)i * 0x1.9p+6f / (float)(1 + i % 977);
        float cosine, sine;
        qn__turn(angle, &cosine, &sine);
        NEAR(cosine, cos(angle), 0x1.01p-25);
        NEAR(sine, sin(angle), 0x1.01p-25);
        if (angle != 0.0f && fabsf(sine) < 0.01f)
            NEAR(sine / sin(angle), 1.0, 0x1p-23);
    }
}

/* Two roundings to floats: of the power, and of its inverse. */
static void test_frequencies(void **state) {
    static const float bases[] = {1.0f, 2.0f, 500.0f, 10000.0f, 500000.0f, 1e9f, 0x1p100f};
    (void)state;
    for (size_t b = 0; b < sizeof bases / sizeof *bases; ++b)
        for (uint32_t i = 0; i < PAIRS; ++i) {
            const qn__turns turns = {bases[b], 1.0f, 0.0f, 0.0f, 0};
            const double want = pow(bases[b], -(double)i / PAIRS);
            NEAR(qn__turn_frequency(&turns, PAIRS, i) / want, 1.0, 0x1.1p-23);
        }
}

static void test_scales(void **state) {
    const qn__turns plain = {500000.0f, 1.0f, 0.0f, 0.0f, 0};
    const qn__turns linear = {500000.0f, 4.0f, 0.0f, 0.0f, 0};
    const qn__turns llama = {500000.0f, 8.0f, 1.0f, 4.0f, 8192};
    uint32_t kinds[3] = {0};
    (void)state;
    for (uint32_t i = 0; i < PAIRS; ++i) {
        const float own = qn__turn_frequency(&plain, PAIRS, i);
        const double turns = 8192 * (double)own / 6.283185307179586;
        const double share = (turns - 1) / 3;
        const double want = share <= 0   ? own / 8
                            : share >= 1 ? own
                                         : (1 - share) * own / 8 + share * own;
        kinds[share <= 0 ? 0 : share >= 1 ? 1 : 2]++;
        assert_true(qn__turn_frequency(&linear, PAIRS, i) == own / 4);
        NEAR(qn__turn_frequency(&llama, PAIRS, i) / want, 1.0, 0x1.1p-24);
    }
    assert_true(kinds[0] && kinds[1] && kinds[2]);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_cosines_and_sines),
                                       cmocka_unit_test(test_frequencies),
                                       cmocka_unit_test(test_scales)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
