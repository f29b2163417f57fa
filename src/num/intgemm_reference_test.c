/* Block fixed point against exact rational arithmetic (intgemm_vectors.h, made by
 * tests/intgemm_vectors.py), against 128-bit integers, and against properties of every value. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "num/intgemm_reference.h"
#include "num/intgemm_vectors.h"
#include <stdlib.h>
#include <string.h>

#define COUNT(array) (sizeof(array) / sizeof *(array))

static const qn__arith ariths[] = {QN__ARITH_I7, QN__ARITH_I14, QN__ARITH_I21};

static float of(uint32_t bits) {
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static uint32_t bits_of(float value) {
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static void test_bits(void **state) {
    (void)state;
    assert_int_equal(qn__arith_bits(QN__ARITH_F32), 0);
    assert_int_equal(qn__arith_bits(QN__ARITH_I7), 7);
    assert_int_equal(qn__arith_bits(QN__ARITH_I14), 14);
    assert_int_equal(qn__arith_bits(QN__ARITH_I21), 21);
}

static void test_exponents(void **state) {
    (void)state;
    for (size_t i = 0; i < COUNT(exponent_vectors); ++i) {
        const int bits = exponent_vectors[i].bits;
        const uint32_t absmax = exponent_vectors[i].absmax;
        const int32_t t = qn__block_exponent(bits, absmax);
        const float value = of(absmax), inverse = qn__block_inverse(t);
        if (t != exponent_vectors[i].t || qn__quantize(value, inverse) != exponent_vectors[i].q ||
            qn__quantize(-value, inverse) != -exponent_vectors[i].q)
            fail_msg("vector %zu: %a in %d bits has the exponent %d and the integer %d", i,
                     (double)value, bits, t, qn__quantize(value, inverse));
    }
}

/* Checks 15.2 for the absmax of a block and its exponent. Every 1021st magnitude, all near powers
 * of two, and those where rounding crosses a power of two. */
static void check_absmax(int bits, uint32_t absmax) {
    const int32_t t = qn__block_exponent(bits, absmax);
    const int32_t q = qn__quantize(of(absmax), qn__block_inverse(t)), half = 1 << (bits - 2);
    const int small = of(absmax) < 0x1p-95f;
    if (q < 0 || q >= 2 * half || (q < half && !small) || t < -93 - bits || t > 130 - bits)
        fail_msg("%a in %d bits: exponent %d, integer %d", (double)of(absmax), bits, t, q);
    if (qn__block_factor(t) * qn__block_inverse(t) != 1.0f || qn__block_factor(t) < 0x1p-126f)
        fail_msg("2^%d is not a float with an inverse", t);
}

static void test_absmax_of_a_block(void **state) {
    (void)state;
    for (size_t a = 0; a < COUNT(ariths); ++a) {
        const int bits = qn__arith_bits(ariths[a]);
        for (uint32_t m = 0; m < 0x7f800000u; m += 1021)
            check_absmax(bits, m);
        for (uint32_t e = 0; e < 255; ++e)
            for (uint32_t k = 0; k < 8; ++k) {
                const uint32_t power = e << 23, border = power + 0x800000u - (1u << (24 - bits));
                check_absmax(bits, power + k);
                check_absmax(bits, border + k - 4);
            }
        check_absmax(bits, 0x7f7fffffu);
    }
}

/* A larger absmax never has a smaller exponent, so the largest magnitude determines it. */
static void test_exponents_grow(void **state) {
    (void)state;
    for (size_t a = 0; a < COUNT(ariths); ++a) {
        const int bits = qn__arith_bits(ariths[a]);
        int32_t before = qn__block_exponent(bits, 0);
        assert_int_equal(before, -93 - bits);
        for (uint32_t m = 0; m < 0x7f800000u; m += 509) {
            const int32_t t = qn__block_exponent(bits, m);
            assert_true(t == before || t == before + 1);
            before = t;
        }
        assert_int_equal(qn__block_exponent(bits, 0x7f7fffffu), 130 - bits);
    }
}

/* Blocks of bytes over 256: 14 and 21 bits hold each byte, and all integers of a block are the
 * bytes times the same power of two. This is not true for 7 bits. */
static void test_bytes_over_256(void **state) {
    (void)state;
    int rounded = 0;
    for (size_t a = 0; a < COUNT(ariths); ++a)
        for (uint32_t most = 1; most < 256; ++most) {
            const int bits = qn__arith_bits(ariths[a]);
            const int32_t t = qn__block_exponent(bits, bits_of((float)most / 256.0f));
            for (uint32_t byte = 0; byte <= most; ++byte) {
                const int32_t q = qn__quantize((float)byte / 256.0f, qn__block_inverse(t));
                const int exact = t <= -8 && q == (int32_t)(byte << (-8 - t));
                rounded += !exact;
                assert_true(exact || bits == 7);
            }
        }
    assert_true(rounded > 0);
}

static void test_not_finite(void **state) {
    (void)state;
    const uint32_t patterns[] = {0x7f800000u, 0x7f800001u, 0x7fc00000u, 0x7fffffffu};
    for (size_t a = 0; a < COUNT(ariths); ++a)
        for (size_t i = 0; i < COUNT(patterns); ++i)
            assert_int_equal(qn__block_exponent(qn__arith_bits(ariths[a]), patterns[i]),
                             QN__NOT_FINITE);
    assert_true(isnan(qn__block_factor(QN__NOT_FINITE)));
    assert_int_equal(qn__quantize(of(0x7fc00000u), qn__block_inverse(QN__NOT_FINITE)), 0);
    assert_int_equal(qn__quantize(INFINITY, qn__block_inverse(QN__NOT_FINITE)), 0);
    assert_int_equal(qn__quantize(3.0f, qn__block_inverse(QN__NOT_FINITE)), 0);
}

static void test_ties_and_zeros(void **state) {
    (void)state;
    const struct {
        float v;
        int32_t q;
    } cases[] = {{0.5f, 0},
                 {1.5f, 2},
                 {2.5f, 2},
                 {-0.5f, 0},
                 {-1.5f, -2},
                 {-2.5f, -2},
                 {62.5f, 62},
                 {-0.0f, 0},
                 {0x1p-149f, 0},
                 {3.0f, 3},
                 {-3.0f, -3},
                 {0.4999999701976776f, 0},
                 {0.5000000596046448f, 1}};
    for (size_t i = 0; i < COUNT(cases); ++i)
        assert_int_equal(qn__quantize(cases[i].v, 1.0f), cases[i].q);
}

static void test_absmax(void **state) {
    (void)state;
    const float v[] = {-0.0f, 2.0f, -7.0f, 3.0f, 0x1p-149f, 6.5f, -INFINITY, NAN};
    assert_int_equal(qn__absmax(0, v, 1), 0);
    assert_int_equal(qn__absmax(1, v, 1), 0);
    assert_int_equal(qn__absmax(6, v, 1), bits_of(7.0f));
    assert_int_equal(qn__absmax(3, v + 1, 2), bits_of(6.5f));
    assert_int_equal(qn__absmax(7, v, 1), 0x7f800000u);
    assert_true(qn__absmax(8, v, 1) > 0x7f800000u);
}

/* ------------------------------------------------------------------------------------- partials */

static void check_units(int64_t n, int64_t s, int limit, int fits, int64_t want) {
    int64_t got = 77;
    const int ok = qn__intgemm_units(n, s, ldexpf(1.0f, limit), &got);
    if (ok != fits || got != (fits ? want : 77))
        fail_msg("%lld * 2^%lld below 2^%d: %d, %lld; expected %d, %lld", (long long)n,
                 (long long)s, limit, ok, (long long)got, fits, (long long)want);
}

static void test_units_of_vectors(void **state) {
    (void)state;
    for (size_t i = 0; i < COUNT(units_vectors); ++i)
        check_units(units_vectors[i].n, units_vectors[i].s, units_vectors[i].limit,
                    units_vectors[i].fits, units_vectors[i].units);
}

__extension__ typedef __int128 wide;

/* n * 2^s by 128-bit integers. */
static void check_units_wide(int64_t n, int64_t s, int limit) {
    const wide size = n < 0 ? -(wide)n : n, most = (wide)1 << limit;
    if (s >= 0) {
        const int fits = n == 0 || (s < 62 && size << s < most);
        check_units(n, s, limit, fits, fits ? (int64_t)(n * ((wide)1 << (s % 62))) : 0);
        return;
    }
    const wide unit = (wide)1 << -s, whole = size / unit, twice = 2 * (size % unit);
    const wide nearest = whole + (twice > unit || (twice == unit && whole % 2 == 1));
    check_units(n, s, limit, whole < most, (int64_t)(n < 0 ? -nearest : nearest));
}

static void test_units_everywhere(void **state) {
    (void)state;
    const int limits[] = {0, 1, 2, 20, 43, 60, 61};
    uint64_t random = 15;
    for (int64_t s = -70; s <= 70; ++s)
        for (size_t l = 0; l < COUNT(limits); ++l) {
            for (int e = 0; e < 63; ++e)
                for (int64_t more = -1; more <= 1; ++more) {
                    const int64_t n = (INT64_C(1) << e) + more;
                    check_units_wide(n, s, limits[l]);
                    check_units_wide(-n, s, limits[l]);
                }
            for (int i = 0; i < 40; ++i) {
                random = random * 6364136223846793005u + 1442695040888963407u;
                const int64_t n = (int64_t)random >> (random % 60 + 1);
                check_units_wide(n, s, limits[l]);
                check_units_wide(n * 2 / 2 | 1, s, limits[l]);
            }
        }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bits),
        cmocka_unit_test(test_exponents),
        cmocka_unit_test(test_absmax_of_a_block),
        cmocka_unit_test(test_exponents_grow),
        cmocka_unit_test(test_bytes_over_256),
        cmocka_unit_test(test_not_finite),
        cmocka_unit_test(test_ties_and_zeros),
        cmocka_unit_test(test_absmax),
        cmocka_unit_test(test_units_of_vectors),
        cmocka_unit_test(test_units_everywhere),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
