/* The random numbers of user kernels against num/philox.c: words of each kind, of large items and
 * iterations. tests/test_kernel.py compares kernels with a second implementation. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "kernels/runtime/prelude_c.h"
#include "kernels/step.h"

#include "kernels/runtime/math.cl"

#define QN_DRAWS_NORMAL 1
#include "kernels/runtime/random.cl"
#include "num/philox.h"

static const uint64_t seeds[] = {0, 1, 0xFEDCBA9876543210},
                      items[] = {0, 0xFFFFFFFF, 0xFFFFFFFFFFFF};
static const uint32_t places[] = {0, 1, 2, 3, 4, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF};

/* word(10, kind, iteration, item, element) of docs/exactness.md, 3.2. */
static uint32_t word(uint64_t seed, uint32_t kind, uint32_t iteration, uint64_t item,
                     uint64_t element) {
    uint32_t words[4];
    qn__words(seed, QN__PURPOSE_KERNEL, kind, iteration, item, (uint32_t)(element / 4), words);
    return words[element % 4];
}

static void check(uint64_t seed, uint32_t iteration, uint64_t item, uint32_t k) {
    const qn_draws d = qn_draws_of(seed, iteration, item);
    const double a = word(seed, 1, iteration, item, 2 * (uint64_t)k) >> 5;
    const double b = word(seed, 1, iteration, item, 2 * (uint64_t)k + 1) >> 6;
    assert_true(qn_random32(d, k) == word(seed, 0, iteration, item, k));
    assert_true(qn_uniform(d, k) == (a * 0x1p26 + b) * 0x1p-53);
    assert_true(qn_uniformf(d, k) == (float)(word(seed, 2, iteration, item, k) >> 8) * 0x1p-24f);
}

static void test_words(void **state) {
    (void)state;
    for (size_t s = 0; s < 3; s++)
        for (size_t i = 0; i < 3; i++)
            for (size_t p = 0; p < sizeof places / sizeof *places; p++) {
                check(seeds[s], 0, items[i], places[p]);
                check(seeds[s], 0xFFFFFFFF, items[i], places[p]);
            }
}

/* What the bits allow, and the moments of many. */
static void test_normal(void **state) {
    enum { COUNT = 200000 };
    double sum = 0, squares = 0, fourth = 0;
    double sumf = 0, squaresf = 0, fourthf = 0;
    (void)state;
    for (uint32_t k = 0; k < COUNT; k++) {
        const qn_draws d = qn_draws_of(3, 1, k / 8);
        const double x = qn_normal(d, k % 8), y = (double)qn_normalf(d, k % 8);
        assert_true(fabs(x) < 8.6 && fabs(y) < 5.8);
        sum += x;
        squares += x * x;
        fourth += x * x * x * x;
        sumf += y;
        squaresf += y * y;
        fourthf += y * y * y * y;
    }
    assert_true(fabs(sum / COUNT) < 0.01 && fabs(sumf / COUNT) < 0.01);
    assert_true(fabs(squares / COUNT - 1) < 0.02 && fabs(squaresf / COUNT - 1) < 0.02);
    assert_true(fabs(fourth / COUNT - 3) < 0.15 && fabs(fourthf / COUNT - 3) < 0.15);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_words),
        cmocka_unit_test(test_normal),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
