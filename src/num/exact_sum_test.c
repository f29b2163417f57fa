/* Exact sums against Python's fractions, and their independence of order. */
#include "num/exact_sum.h"
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "num/exact_block.h"
#include "num/exact_block_parts.h"
#include "num/exact_sum_vectors.h"
#include "num/moments.h"
#include "num/order.h"
#include "num/products.h"

static float from_bits(uint32_t bits) {
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static uint32_t to_bits(float value) {
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static void add_both(qn__exact_sum *sum, qn__exact_sum *squares, float value) {
    qn__exact_add(sum, (double)value);
    qn__exact_add(squares, (double)value * (double)value);
}

static void test_vectors(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof exact_vectors / sizeof *exact_vectors; i++) {
        qn__exact_sum sum = {0}, squares = {0};
        for (int k = 0; k < exact_vectors[i].count; k++)
            add_both(&sum, &squares, from_bits(exact_vectors[i].values[k]));
        uint64_t n = (uint64_t)exact_vectors[i].count;
        uint32_t mean = to_bits(qn__exact_mean(&sum, n));
        uint32_t deviation = to_bits(qn__exact_deviation(&sum, &squares, n));
        if (mean != exact_vectors[i].mean || deviation != exact_vectors[i].deviation)
            fail_msg("case %zu: mean %08x, not %08x; deviation %08x, not %08x", i, mean,
                     exact_vectors[i].mean, deviation, exact_vectors[i].deviation);
    }
}

static void test_weighted(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof weighted_vectors / sizeof *weighted_vectors; i++) {
        qn__exact_sum sum = {0}, squares = {0}, weights = {0};
        const int n = weighted_vectors[i].count;
        float w[8];
        for (int k = 0; k < n; k++) {
            const float x = from_bits(weighted_vectors[i].values[k]);
            w[k] = from_bits(weighted_vectors[i].weights[k]);
            qn__exact_add(&weights, (double)w[k]);
            qn__exact_add(&sum, (double)w[k] * (double)x);
            qn__exact_add_square(&squares, x, w[k]);
        }
        const uint32_t mean = to_bits(qn__exact_weighted_mean(&sum, &weights));
        const uint32_t deviation = to_bits(qn__exact_weighted_deviation(&sum, &squares, &weights));
        if (mean != weighted_vectors[i].mean || deviation != weighted_vectors[i].deviation)
            fail_msg("case %zu: mean %08x, not %08x; deviation %08x, not %08x", i, mean,
                     weighted_vectors[i].mean, deviation, weighted_vectors[i].deviation);
        qn__exact_shares(&weights, (uint64_t)n, w);
        for (int k = 0; k < n; k++)
            if (to_bits(w[k]) != weighted_vectors[i].shares[k])
                fail_msg("case %zu: share %d is %08x, not %08x", i, k, to_bits(w[k]),
                         weighted_vectors[i].shares[k]);
    }
}

static void test_compare(void **state) {
    (void)state;
    qn__exact_sum a = {0}, b = {0};
    assert_int_equal(qn__exact_compare(&a, &b), 0);
    qn__exact_add(&a, 0x1p-1074);
    assert_int_equal(qn__exact_compare(&a, &b), 1);
    assert_int_equal(qn__exact_compare(&b, &a), -1);
    qn__exact_add(&b, 1.0);
    qn__exact_add(&b, -1.0 + 0x1p-52);
    qn__exact_add(&a, 0x1p-52);
    assert_int_equal(qn__exact_compare(&a, &b), 1);
    qn__exact_add(&b, 0x1p-1074);
    assert_int_equal(qn__exact_compare(&a, &b), 0);
    qn__exact_add(&a, -2.0);
    assert_int_equal(qn__exact_compare(&a, &b), -1);
}

/* The same numbers in another order, and in parts that are merged: the limbs are equal after a
 * carry. */
/* Few limbs hold a small sum, above 0 and below, and limbs of several sums are added one by one. */
static void test_limbs(void **state) {
    (void)state;
    const double value[] = {3, -3, 0x1p-40, -0x1p40, 0};
    const uint32_t limbs[] = {1, 1, 3, 4, 4};
    qn__exact_sum all = {0}, want = {0};
    uint32_t first = 0, end = 0;
    for (size_t i = 0; i < sizeof value / sizeof *value; i++) {
        qn__exact_sum one = {0};
        qn__exact_add(&one, value[i]);
        qn__exact_add(&want, value[i]);
        qn__exact_limbs(&one, &first, &end);
        assert_int_equal(end - first, limbs[i]);
        for (uint32_t k = first; k < end; k++)
            all.limb[k] += one.limb[k];
    }
    all.pending = 5;
    assert_int_equal(qn__exact_compare(&all, &want), 0);
    assert_int_equal(to_bits(qn__exact_mean(&all, 1)), to_bits(-0x1p40f));
}

static void test_order(void **state) {
    (void)state;
    enum { COUNT = 20000, PARTS = 7 };
    unsigned seed = 20261121;
    print_message("seed %u\n", seed);
    srand(seed);
    static double values[COUNT];
    for (int i = 0; i < COUNT; i++)
        values[i] = ldexp((double)rand() - RAND_MAX / 2, rand() % 2000 - 1030);
    qn__exact_sum forward = {0}, backward = {0}, parts[PARTS];
    memset(parts, 0, sizeof parts);
    for (int i = 0; i < COUNT; i++) {
        qn__exact_add(&forward, values[i]);
        qn__exact_add(&backward, values[COUNT - 1 - i]);
        qn__exact_add(&parts[rand() % PARTS], values[i]);
    }
    for (int i = 1; i < PARTS; i++)
        qn__exact_merge(&parts[0], &parts[i]);
    qn__exact_sum nothing = {0};
    qn__exact_merge(&forward, &nothing); /* carries */
    qn__exact_merge(&backward, &nothing);
    assert_memory_equal(forward.limb, backward.limb, sizeof forward.limb);
    assert_memory_equal(forward.limb, parts[0].limb, sizeof forward.limb);
}

/* Adding and subtracting the same number leaves nothing, whatever was added in between. */
static void test_cancellation(void **state) {
    (void)state;
    qn__exact_sum sum = {0};
    const double values[] = {0x1.fffffffffffffp1023, 0x1p-1074, 1.0, 0x1.23456789abcdep-500};
    for (size_t i = 0; i < sizeof values / sizeof *values; i++)
        qn__exact_add(&sum, values[i]);
    qn__exact_add(&sum, -values[0]);
    qn__exact_add(&sum, -values[3]);
    qn__exact_add(&sum, -values[2]);
    qn__exact_add(&sum, -values[1]);
    qn__exact_sum nothing = {0};
    qn__exact_merge(&sum, &nothing);
    assert_memory_equal(sum.limb, nothing.limb, sizeof sum.limb);
    assert_int_equal(to_bits(qn__exact_mean(&sum, 3)), 0);
}

/* Integers and the same numbers as doubles are the same sum. */
static void test_integers(void **state) {
    (void)state;
    qn__exact_sum whole = {0}, pieces = {0};
    qn__exact_add_u64(&whole, 0xFFFFFFFFFFFFFFFF);
    qn__exact_add(&pieces, 0x1p64);
    qn__exact_add(&pieces, -1.0);
    qn__exact_sum nothing = {0};
    qn__exact_merge(&whole, &nothing);
    qn__exact_merge(&pieces, &nothing);
    assert_memory_equal(whole.limb, pieces.limb, sizeof whole.limb);
    assert_true(qn__exact_mean(&whole, ((uint64_t)1 << 48) - 1) == 65536.0f);
}

/* Many additions to one limb: carries are propagated before a limb can overflow. */
static void test_carries(void **state) {
    (void)state;
    qn__exact_sum sum = {0};
    sum.pending = ((uint32_t)1 << 30) - 2;
    for (int i = 0; i < 4; i++)
        qn__exact_add(&sum, 0x1.fffffffffffffp0);
    assert_in_range(sum.pending, 0, 4);
    assert_true(qn__exact_mean(&sum, 4) == 2.0f);
}

/* Finite numbers of any bits, of a few exponents, subnormal ones, or few different ones. */
static void draw(float *values, size_t count, int kind) {
    static uint32_t state = 7;
    for (size_t i = 0; i < count; i++) {
        state ^= state << 13;
        state ^= state >> 17;
        state ^= state << 5;
        uint32_t bits = state;
        if (kind == 1)
            bits = (bits & 0x807FFFFF) | (120 + bits % 9) << 23;
        else if (kind == 2)
            bits &= 0x807FFFFF;
        else if (kind == 3)
            bits = (bits & 0xFF) << 8;
        if ((bits >> 23 & 0xFF) == 0xFF)
            bits &= 0x7F7FFFFF;
        values[i] = from_bits(bits) + 0.0f;
    }
}

static void test_sums_of_powers(void **state) {
    (void)state;
    static float v[9000];
    for (int kind = 0; kind < 4; kind++) {
        qn__moments all = {0}, first = {0}, rest = {0};
        qn__exact_sum sums[3] = {{{0}, 0}};
        draw(v, 9000, kind);
        for (size_t i = 0; i < 9000; i++) {
            qn__exact_add(&sums[0], (double)v[i]);
            qn__exact_add(&sums[1], (double)v[i] * (double)v[i]);
            qn__exact_add_square(&sums[2], v[i], v[i]);
        }
        qn__moments_add(&all, v, 9000);
        qn__moments_add(&rest, v + 4321, 9000 - 4321);
        qn__moments_add(&first, v, 4321);
        qn__moments_merge(&rest, &first);
        assert_int_equal(rest.count, 9000);
        assert_int_equal(qn__exact_compare(&all.first, &sums[0]), 0);
        assert_int_equal(qn__exact_compare(&all.second, &sums[1]), 0);
        assert_int_equal(qn__exact_compare(&all.third, &sums[2]), 0);
        assert_int_equal(qn__exact_compare(&rest.third, &sums[2]), 0);
    }
}

static void test_sums_of_products(void **state) {
    (void)state;
    static float v[QN__PRODUCTS_BLOCK + 9];
    static qn__factor a, b;
    for (int kind = 0; kind < 4; kind++) {
        qn__exact_sum sum = {0}, wanted = {0};
        draw(v, QN__PRODUCTS_BLOCK + 9, kind);
        qn__factor_set(&a, v, QN__PRODUCTS_BLOCK);
        qn__factor_set(&b, v + 9, QN__PRODUCTS_BLOCK);
        qn__factor_multiply(&a, &b, &sum);
        for (size_t i = 0; i < QN__PRODUCTS_BLOCK; i++)
            qn__exact_add(&wanted, (double)v[i] * (double)v[i + 9]);
        assert_int_equal(qn__exact_compare(&sum, &wanted), 0);
    }
}

static void test_ranks(void **state) {
    (void)state;
    static float v[20000];
    const size_t counts[] = {1, 300, 20000};
    for (int test = 0; test < 12; test++) {
        const size_t count = counts[test / 4], rank = count / 3;
        qn__order *order = qn__order_create(count, NULL);
        draw(v, count, test % 4);
        qn__order_take(order, v, count);
        qn__order_want_rank(order, rank);
        qn__order_want_number(order, v[0]);
        qn__order_collect(order, v);
        const float found = qn__order_rank(order, rank);
        size_t less = 0, up_to = 0, below = 0;
        for (size_t i = 0; i < count; i++) {
            less += v[i] < found;
            up_to += v[i] <= found;
            below += v[i] < v[0];
        }
        assert_true(less <= rank && rank < up_to);
        assert_int_equal(qn__order_below(order, v[0]), below);
        qn__order_free(order);
    }
}

/* ------------------------------------------------------------------ blocks */

enum { MANY = 2500 };

/* Numbers of both signs whose powers of two are from `least` to `least` + `range`. */
static void fill(double *x, int least, int range, uint64_t *state) {
    for (size_t i = 0; i < MANY; i++) {
        *state = *state * 6364136223846793005u + 1442695040888963407u;
        const uint64_t random = *state >> 11; /* 53 bits */
        const double part = ldexp((double)(random | 1), -53);
        x[i] = ldexp(*state & 1024 ? -part : part, least + (int)(random % (uint64_t)(range + 1)));
    }
}

static void check_block(const double *x, size_t count) {
    qn__exact_sum each = {0}, block = {0};
    for (size_t i = 0; i < count; i++)
        qn__exact_add(&each, x[i]);
    assert_true(qn__exact_add_doubles(&block, x, count) == count);
    assert_int_equal(qn__exact_compare(&each, &block), 0);
}

/* Blocks that the levels hold, blocks that they do not, and the ends of binary64. */
static void test_blocks(void **state) {
    static double x[MANY];
    static const int ranges[][2] = {{0, 0},      {0, 5},       {-20, 29}, {-30, 33},
                                    {5, 60},     {-9, 72},     {-9, 76},  {-1074, 9},
                                    {-1074, 90}, {-1000, 200}, {990, 33}, {-1074, 2097}};
    uint64_t random = 1;
    (void)state;
    for (size_t k = 0; k < sizeof ranges / sizeof *ranges; k++) {
        fill(x, ranges[k][0], ranges[k][1], &random);
        for (size_t count = 0; count <= MANY; count = count < 30 ? count + 1 : count * 2 - 3)
            check_block(x, count);
        check_block(x, MANY);
        for (size_t i = 0; i < MANY; i++) /* all at the top of their level, of one sign */
            x[i] = ldexp(1 - ldexp(1, -53), ranges[k][0] + ranges[k][1]);
        check_block(x, MANY);
        memset(x, 0, sizeof x);
        check_block(x, MANY);
    }
}

typedef int extractor(const double *x, size_t count, double level[QN__EXACT_LEVELS]);

/* Numbers of one block that one extractor adds: as many powers of two apart as it must hold, and as
 * many as it cannot. */
static void check_extractor(extractor *extract) {
    static double x[MANY];
    uint64_t random = 3;
    for (int range = 0; range <= 90; range += 5)
        for (size_t count = QN__EXACT_STEP; count <= QN__EXACT_BLOCK; count *= 2) {
            qn__exact_sum each = {0}, block = {0};
            double level[QN__EXACT_LEVELS];
            fill(x, -40, range, &random);
            x[0] = ldexp(1 + ldexp(1, -52), -40);
            x[count - 1] = ldexp(1, range - 40);
            const int held = extract(x, count, level);
            assert_int_equal(held, range <= 70);
            for (size_t i = 0; i < count; i++)
                qn__exact_add(&each, x[i]);
            for (int l = 0; l < QN__EXACT_LEVELS && held; l++)
                qn__exact_add(&block, level[l]);
            assert_true(!held || qn__exact_compare(&each, &block) == 0);
        }
    fill(x, 0, 0, &random);
    x[5] = (double)NAN;
    assert_false(extract(x, QN__EXACT_BLOCK, (double[QN__EXACT_LEVELS]){0}));
}

static void test_extractors(void **state) {
    (void)state;
    check_extractor(qn__exact_extract);
    if (qn__exact_avx2_here())
        check_extractor(qn__exact_extract_avx2);
}

/* The first that is not finite is told, wherever it is. */
static void test_blocks_infinite(void **state) {
    static double x[MANY];
    static float f[MANY];
    const double bad[] = {HUGE_VAL, -HUGE_VAL, (double)NAN};
    (void)state;
    for (size_t k = 0; k < 3; k++)
        for (size_t at = 0; at < MANY; at += 307) {
            qn__exact_sum sum = {0};
            x[at] = bad[k];
            f[at] = (float)bad[k];
            x[MANY - 1] = HUGE_VAL;
            f[MANY - 1] = (float)HUGE_VAL;
            assert_true(qn__exact_add_doubles(&sum, x, MANY) == at);
            assert_true(qn__exact_add_floats(&sum, f, MANY) == at);
            f[at] = 0;
            x[at] = 0;
        }
}

static void test_blocks_other_types(void **state) {
    static double x[MANY];
    static float f[MANY];
    static uint64_t n[MANY];
    uint64_t random = 7;
    (void)state;
    fill(x, -140, 200, &random);
    qn__exact_sum each = {0}, block = {0}, signed_each = {0}, signed_block = {0}, plain_each = {0},
                  plain = {0};
    for (size_t i = 0; i < MANY; i++) {
        f[i] = (float)x[i];
        qn__exact_add(&each, (double)f[i]);
        memcpy(&n[i], &x[i], sizeof n[i]);
        qn__exact_add_scaled(&signed_each, n[i] >> 63 ? 0 - n[i] : n[i], 0, (int)(n[i] >> 63));
        qn__exact_add_u64(&plain_each, n[i]);
    }
    assert_true(qn__exact_add_floats(&block, f, MANY) == MANY);
    assert_int_equal(qn__exact_compare(&each, &block), 0);
    qn__exact_add_integers(&signed_block, n, MANY, 1);
    assert_int_equal(qn__exact_compare(&signed_each, &signed_block), 0);
    qn__exact_add_integers(&plain, n, MANY, 0);
    assert_int_equal(qn__exact_compare(&plain_each, &plain), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_vectors),         cmocka_unit_test(test_order),
        cmocka_unit_test(test_cancellation),    cmocka_unit_test(test_integers),
        cmocka_unit_test(test_carries),         cmocka_unit_test(test_weighted),
        cmocka_unit_test(test_sums_of_powers),  cmocka_unit_test(test_sums_of_products),
        cmocka_unit_test(test_blocks),          cmocka_unit_test(test_extractors),
        cmocka_unit_test(test_blocks_infinite), cmocka_unit_test(test_blocks_other_types),
        cmocka_unit_test(test_ranks),           cmocka_unit_test(test_compare),
        cmocka_unit_test(test_limbs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
