/* exp, log, tanh, sigmoid, cospi, gelu, gelu-tanh, silu and their slopes: their errors against MPFR
 * on a dense sample and at the ends of every binade, their special cases, and the bits printed in
 * the contract. bench/elementary_full.c checks all 2^32 inputs, by hand. */
#include "num/elementary.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#ifdef QN_HAVE_MPFR
#include "num/elementary_mpfr.h"
#endif

static float from_bits(uint32_t bits) {
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

static uint32_t to_bits(float x) {
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return isnan(x) ? 0x7fc00000u : bits;
}

static void same_bits(float (*f)(float), uint32_t x, uint32_t y) {
    const uint32_t got = to_bits(f(from_bits(x)));
    if (got != y)
        fail_msg("at %08x (%a): %08x, not %08x", x, (double)from_bits(x), got, y);
}

enum { INF = 0x7f800000, NOT = 0x7fc00000, SIGN = (int)0x80000000 };

static void special_cases(void **state) {
    (void)state;
    static const struct {
        float (*f)(float);
        uint32_t x, y;
    } cases[] = {
        {qn__exp, 0, 0x3f800000},
        {qn__exp, 0x80000000, 0x3f800000},
        {qn__exp, 1, 0x3f800000},
        {qn__exp, INF, INF},
        {qn__exp, 0xff800000, 0},
        {qn__exp, 0x42b17218, INF}, /* the first argument that overflows */
        {qn__exp, 0x7f7fffff, INF},
        {qn__exp, 0xff7fffff, 0},
        {qn__exp, 0xc2cff1b5, 0}, /* the first below half the smallest subnormal */
        {qn__exp, 0xc2cff1b4, 1},
        {qn__log, 0, 0xff800000},
        {qn__log, 0x80000000, 0xff800000},
        {qn__log, 0x80000001, NOT},
        {qn__log, 0xbf800000, NOT},
        {qn__log, 0xff800000, NOT},
        {qn__log, INF, INF},
        {qn__log, 0x3f800000, 0},
        {qn__tanh, 0, 0},
        {qn__tanh, 0x80000000, 0x80000000},
        {qn__tanh, 1, 1},
        {qn__tanh, 0x807fffff, 0x807fffff},
        {qn__tanh, 0x00800000, 0x00800000},
        {qn__tanh, INF, 0x3f800000},
        {qn__tanh, 0xff800000, 0xbf800000},
        {qn__tanh, 0x7f7fffff, 0x3f800000},
        {qn__sigmoid, 0, 0x3f000000},
        {qn__sigmoid, 0x80000000, 0x3f000000},
        {qn__sigmoid, INF, 0x3f800000},
        {qn__sigmoid, 0xff800000, 0},
        {qn__sigmoid, 0x7f7fffff, 0x3f800000},
        {qn__sigmoid, 0xff7fffff, 0},
        {qn__gelu, 0x80000000, 0x80000000},
        {qn__gelu, INF, INF},
        {qn__gelu, 0xff800000, NOT},
        {qn__gelu, 0xff7fffff, 0x80000000},
        {qn__gelu_slope, INF, NOT},
        {qn__gelu_slope, 0x7f7fffff, 0x3f800000},
        {qn__gelu_tanh, 0x80000000, 0x80000000},
        {qn__gelu_tanh, INF, INF},
        {qn__gelu_tanh, 0xff800000, NOT},
        {qn__gelu_tanh, 0xff7fffff, 0x80000000},
        {qn__gelu_tanh_slope, INF, NOT},
        {qn__gelu_tanh_slope, 0x7f7fffff, 0x3f800000},
        {qn__gelu_tanh_slope, 0xff7fffff, 0},
        {qn__silu, 0x80000000, 0x80000000},
        {qn__silu, 0xff800000, NOT},
        {qn__silu_slope, 0xff800000, NOT},
        {qn__silu_slope, 0xff7fffff, 0},
        {qn__cospi, 0, 0x3f800000},
        {qn__cospi, 0x3f000000, 0},
        {qn__cospi, 0x3f800000, 0xbf800000},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        same_bits(cases[i].f, cases[i].x, cases[i].y);
    float (*const all[])(float) = {qn__exp,        qn__log,       qn__tanh,           qn__sigmoid,
                                   qn__cospi,      qn__gelu,      qn__gelu_slope,     qn__silu,
                                   qn__silu_slope, qn__gelu_tanh, qn__gelu_tanh_slope};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        same_bits(all[i], 0x7fc00000, NOT);
        same_bits(all[i], 0xffffffff, NOT);
        same_bits(all[i], 0x7f800001, NOT);
    }
}

/* The vectors printed in docs/exactness.md, 13.14, 17.2 and 25.80. */
static void bits_of_the_contract(void **state) {
    (void)state;
    static const struct {
        uint32_t x, exp, log, tanh, sigmoid;
    } rows[] = {
        {0x3f800000, 0x402df854, 0x00000000, 0x3f42f7d6, 0x3f3b26a8},
        {0xbf800000, 0x3ebc5ab2, 0x7fc00000, 0xbf42f7d6, 0x3e89b2b1},
        {0x3f000000, 0x3fd3094c, 0xbf317218, 0x3eec9a9f, 0x3f1f597f},
        {0xbe800000, 0x3f475f7d, 0x7fc00000, 0xbe7acbf5, 0x3ee02a67},
        {0x3dcccccd, 0x3f8d763e, 0xc0135d8e, 0x3dcc1ebc, 0x3f066509},
        {0xbdcccccd, 0x3f67a36d, 0x7fc00000, 0xbdcc1ebc, 0x3ef335ee},
        {0x40000000, 0x40ec7326, 0x3f317218, 0x3f76ca83, 0x3f617beb},
        {0x40490fdb, 0x41b92024, 0x3f928683, 0x3f7f0bb0, 0x3f756540},
        {0xc0a00000, 0x3bdcc9ff, 0x7fc00000, 0xbf7ffa0d, 0x3bdb4fb4},
        {0x40f00000, 0x44e2015c, 0x4000f42c, 0x3f7ffff6, 0x3f7fdbc6},
        {0xc1440000, 0x36a08fd8, 0x7fc00000, 0xbf800000, 0x36a08fa6},
        {0x41860000, 0x4b8f85fc, 0x403460a3, 0x3f800000, 0x3f800000},
        {0xc1f00000, 0x29d2b706, 0x7fc00000, 0xbf800000, 0x29d2b706},
        {0x42b00000, 0x7ef882b7, 0x408f4658, 0x3f800000, 0x3f800000},
        {0xc2b00000, 0x0041edc4, 0x7fc00000, 0xbf800000, 0x0041edc4},
        {0xc2c80000, 0x0000001b, 0x7fc00000, 0xbf800000, 0x0000001b},
        {0x3a83126f, 0x3f8020c9, 0xc0dd0c55, 0x3a83126c, 0x3f001062},
        {0xba83126f, 0x3f7fbe7f, 0x7fc00000, 0xba83126c, 0x3effdf3b},
        {0x358637bd, 0x3f800008, 0xc15d0c55, 0x358637bd, 0x3f000004},
        {0x00080000, 0x3f800000, 0xc2b437e0, 0x00080000, 0x3f000000},
        {0x3faa3d71, 0x4071fc9e, 0x3e9202fb, 0x3f5e8720, 0x3f4a7488},
        {0x3f2b851f, 0x3ffa2473, 0xbecd0b64, 0x3f15c13e, 0x3f295845},
        {0x501502f9, 0x7f800000, 0x41b834f1, 0x3f800000, 0x3f800000},
        {0x7f61b1e6, 0x7f800000, 0x42b13196, 0x3f800000, 0x3f800000},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        same_bits(qn__exp, rows[i].x, rows[i].exp);
        same_bits(qn__log, rows[i].x, rows[i].log);
        same_bits(qn__tanh, rows[i].x, rows[i].tanh);
        same_bits(qn__sigmoid, rows[i].x, rows[i].sigmoid);
    }
    static const struct {
        uint32_t z, gelu, gelu_slope, silu, silu_slope;
    } gated[] = {
        {0x3f800000, 0x3f57625e, 0x3f8aaa15, 0x3f3b26a8, 0x3f6d7bd1},
        {0xbf800000, 0xbe227686, 0xbdaaa14e, 0xbe89b2b1, 0x3d94217b},
        {0x3f000000, 0x3eb103b0, 0x3f5e142a, 0x3e9f597f, 0x3f3d6e19},
        {0xbe800000, 0xbdcd765e, 0x3e9bf807, 0xbde02a67, 0x3ec0a915},
        {0x3dcccccd, 0x3d5d1d0d, 0x3f145ba0, 0x3d57080f, 0x3f0cc759},
        {0xbdcccccd, 0xbd3c7c8c, 0x3ed748bf, 0xbd42918b, 0x3ee6714f},
        {0x40000000, 0x3ffa2d0c, 0x3f8ae8e0, 0x3fe17beb, 0x3f8b9ed1},
        {0xc0490fdb, 0xbb2cfa5b, 0xbc05ea44, 0xbe054295, 0xbdaaa4d5},
        {0xc0a00000, 0xb5c05e5d, 0xb6efcfce, 0xbd0911d0, 0xbcd97a00},
        {0x40f00000, 0x40f00000, 0x3f800000, 0x40efde0a, 0x3f8075a9},
        {0xc1440000, 0x88aaf7c2, 0x8a82e2cf, 0xb875dbf6, 0xb861c9b4},
        {0xc1600000, 0x80000054, 0x8000043e, 0xb7434f66, 0xb7355bf9},
        {0x41600000, 0x41600000, 0x3f800000, 0x415ffff4, 0x3f80005b},
        {0xc1680000, 0x80000000, 0x00000000, 0xb6f56283, 0xb6e4762c},
        {0xc2b00000, 0x80000000, 0x00000000, 0x83354ddb, 0x83333e6d},
        {0xc2c80000, 0x80000000, 0x00000000, 0x80000a8c, 0x80000a71},
        {0x3a83126f, 0x3a032d35, 0x3f00344a, 0x3a032336, 0x3f0020c4},
        {0xba83126f, 0xba02f7a9, 0x3eff976c, 0xba0301a8, 0x3effbe76},
        {0x358637bd, 0x350637c3, 0x3f00000d, 0x350637c1, 0x3f000008},
        {0x80080000, 0x80040000, 0x3f000000, 0x80040000, 0x3f000000},
        {0x00000000, 0x00000000, 0x3f000000, 0x00000000, 0x3f000000},
        {0x80000000, 0x80000000, 0x3f000000, 0x80000000, 0x3f000000},
        {0xbf4073fd, 0xbe2e0ced, 0x371c738f, 0xbe76ace8, 0x3e207e95},
        {0xbfa3a4d7, 0xbe039fff, 0xbdff6a1c, 0xbe8e92e7, 0xb549b8ae},
        {0x501502f9, 0x501502f9, 0x3f800000, 0x501502f9, 0x3f800000},
        {0xff61b1e6, 0x80000000, 0x00000000, 0x80000000, 0x00000000},
        {0x7f800000, 0x7f800000, NOT, 0x7f800000, NOT},
        {0xff800000, NOT, NOT, NOT, NOT},
    };
    for (size_t i = 0; i < sizeof gated / sizeof *gated; i++) {
        same_bits(qn__gelu, gated[i].z, gated[i].gelu);
        same_bits(qn__gelu_slope, gated[i].z, gated[i].gelu_slope);
        same_bits(qn__silu, gated[i].z, gated[i].silu);
        same_bits(qn__silu_slope, gated[i].z, gated[i].silu_slope);
    }
    static const struct {
        uint32_t z, gelu_tanh, slope;
    } bent[] = {
        {0x3f800000, 0x3f57585c, 0x3f8a9e91},
        {0xbf800000, 0xbe229e90, 0xbda9e914},
        {0x3f000000, 0x3eb1016d, 0x3f5e0bf4},
        {0xbe800000, 0xbdcd7702, 0x3e9bfa8c},
        {0x3dcccccd, 0x3d5d1d05, 0x3f145b8b},
        {0xbdcccccd, 0xbd3c7c95, 0x3ed748eb},
        {0x40000000, 0x3ffa3042, 0x3f8b054d},
        {0xc0490fdb, 0xbb15b3f7, 0xbbfd8f1a},
        {0xc0a00000, 0xb4761471, 0xb5cf8c9e},
        {0x40f00000, 0x40f00000, 0x3f800000},
        {0xc1280000, 0x8000020d, 0x8000337a},
        {0xc1440000, 0x80000000, 0x00000000},
        {0xc1600000, 0x80000000, 0x00000000},
        {0x41600000, 0x41600000, 0x3f800000},
        {0xc2c80000, 0x80000000, 0x00000000},
        {0x3a83126f, 0x3a032d35, 0x3f00344a},
        {0xba83126f, 0xba02f7a9, 0x3eff976c},
        {0x358637bd, 0x350637c4, 0x3f00000e},
        {0x80080000, 0x80040000, 0x3f000000},
        {0x00000000, 0x00000000, 0x3f000000},
        {0x80000000, 0x80000000, 0x3f000000},
        {0xbf4073fd, 0xbe2e1f22, 0x399c25b6},
        {0xbfa3a4d7, 0xbe03dbba, 0xbdff2555},
        {0x501502f9, 0x501502f9, 0x3f800000},
        {0xff61b1e6, 0x80000000, 0x00000000},
        {0x7f800000, 0x7f800000, NOT},
        {0xff800000, NOT, NOT},
    };
    for (size_t i = 0; i < sizeof bent / sizeof *bent; i++) {
        same_bits(qn__gelu_tanh, bent[i].z, bent[i].gelu_tanh);
        same_bits(qn__gelu_tanh_slope, bent[i].z, bent[i].slope);
    }
    same_bits(qn__cospi, 0x3dcccccd, 0x3f737871);
    same_bits(qn__cospi, 0x3e4ccccd, 0x3f4f1bbd);
    same_bits(qn__cospi, 0x3e800000, 0x3f3504f3);
    same_bits(qn__cospi, 0x3e99999a, 0x3f167918);
    same_bits(qn__cospi, 0x3eaaaaab, 0x3effffff);
    same_bits(qn__cospi, 0x3eff7cee, 0x3b4de26a);
    same_bits(qn__cospi, 0x3f333333, 0xbf167918);
    same_bits(qn__cospi, 0x3f400000, 0xbf3504f3);
    same_bits(qn__cospi, 0x3f666666, 0xbf737870);
}

/* One number for 65,552 results of each function: the chain of section 13.13 from the block number
 * 0, over the bit patterns 0, 65521, 2 * 65521, ... A change of any bit of any result changes
 * it. */
static void chains_of_the_contract(void **state) {
    (void)state;
    static const struct {
        float (*f)(float);
        uint64_t chain;
    } rows[] = {
        {qn__exp, 0x9a7ac86623200b60u},
        {qn__log, 0xf5f5c2ae24dac282u},
        {qn__tanh, 0x042d7fc3732c6f3au},
        {qn__sigmoid, 0x8f26d74e385986dcu},
        {qn__gelu, 0x587705adbb539f4cu}, /* 17.2 */
        {qn__gelu_slope, 0x556de6d1f7caa378u},
        {qn__silu, 0xa50adea9ecda1110u},
        {qn__silu_slope, 0xa13ae13e77340a9eu},
        {qn__gelu_tanh, 0x4e3f8504ff2158efu}, /* 25.80 */
        {qn__gelu_tanh_slope, 0x268386f8a21b9335u},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        uint64_t chain = 0xcbf29ce484222325u;
        for (uint64_t bits = 0; bits <= UINT32_MAX; bits += 65521) {
            chain = (chain ^ to_bits(rows[i].f(from_bits((uint32_t)bits)))) * 0x100000001b3u;
            chain ^= chain >> 29;
        }
        if (chain != rows[i].chain)
            fail_msg("row %zu: %016llx, not %016llx", i, (unsigned long long)chain,
                     (unsigned long long)rows[i].chain);
    }
}

static void odd_and_bounded(void **state) {
    (void)state;
    for (uint32_t bits = 0; bits <= INF; bits += 1021) {
        const float x = from_bits(bits);
        same_bits(qn__tanh, bits | (uint32_t)SIGN, to_bits(qn__tanh(x)) | (uint32_t)SIGN);
        assert_true(qn__tanh(x) <= 1.0f);
        assert_true(qn__sigmoid(x) >= 0.5f && qn__sigmoid(x) <= 1.0f);
        assert_true(qn__sigmoid(-x) >= 0.0f && qn__sigmoid(-x) <= 0.5f);
    }
}

#ifdef QN_HAVE_MPFR

static void within_limit(const qn__elementary *f, uint32_t bits) {
    const float x = from_bits(bits);
    const float y = f->reference(x);
    const double ulps = qn__ulps_wrong(f, x, y);
    if (!(ulps <= f->limit))
        fail_msg("%s at %a (%08x) gives %a, %.4f ulp off, more than %.1f", f->name, (double)x, bits,
                 (double)y, ulps, f->limit);
}

static void errors_on_a_sample(void **state) {
    (void)state;
    for (int k = 0; k < QN__ELEMENTARIES; k++) {
        const qn__elementary *f = &qn__elementaries[k];
        for (uint64_t bits = 0; bits <= UINT32_MAX; bits += 16411 * f->every)
            if (!isnan(from_bits((uint32_t)bits)))
                within_limit(f, (uint32_t)bits);
    }
}

static void errors_at_binade_edges(void **state) {
    (void)state;
    for (int k = 0; k < QN__ELEMENTARIES; k++)
        for (uint32_t exponent = 0; exponent < 512; exponent++)
            for (uint32_t step = 0; step<33; step += qn__elementaries[k].every> 1 ? 16 : 1)
                within_limit(&qn__elementaries[k], (exponent << 23) + step - 16);
}

/* Where tanh and sigmoid change their range reduction, and where results become subnormal. */
static void errors_in_the_tails(void **state) {
    (void)state;
    for (int k = 0; k < QN__ELEMENTARIES; k++) {
        for (uint32_t bits = 0xc2ae0000; bits < 0xc2d10000; bits += 251 * qn__elementaries[k].every)
            within_limit(&qn__elementaries[k], bits);
        for (uint32_t bits = 0x40f00000; bits < 0x41a10000; bits += 509 * qn__elementaries[k].every)
            within_limit(&qn__elementaries[k], bits);
    }
}

static void cospi_within_one_ulp(void **state) {
    (void)state;
    mpfr_t pi, exact;
    mpfr_inits2(QN__MPFR_BITS, pi, exact, (mpfr_ptr)0);
    mpfr_const_pi(pi, MPFR_RNDN);
    for (uint32_t bits = 0; bits < 0x3f800000; bits += bits < 0x3a000000 ? 10007 : 251) {
        const float t = from_bits(bits);
        if (t == 0.5f)
            continue;
        mpfr_set_flt(exact, t, MPFR_RNDN);
        mpfr_mul(exact, exact, pi, MPFR_RNDN);
        mpfr_cos(exact, exact, MPFR_RNDN);
        const double ulps = qn__ulps_from(qn__cospi(t), exact, -126);
        if (!(ulps <= 1.0))
            fail_msg("cospi at %a is %.4f ulp off", (double)t, ulps);
    }
    mpfr_clears(pi, exact, (mpfr_ptr)0);
}

/* The reference depends on libm's fmaf, which is software if the compiler may not assume the
 * instruction. Checks products of random floats with addends that nearly cancel them, or that are
 * nearly lost below them. */
static void fmaf_rounds_once(void **state) {
    (void)state;
    mpfr_t a, b, c;
    mpfr_inits2(24, a, b, c, (mpfr_ptr)0);
    uint64_t seed = 20261121;
    for (int i = 0; i < 200000; i++) {
        uint32_t word[3];
        for (int k = 0; k < 3; k++) {
            seed = seed * 6364136223846793005u + 1442695040888963407u;
            word[k] = (uint32_t)(seed >> 32);
        }
        /* The exponents keep the exact result, which MPFR rounds to 24 bits, a normal number. */
        const float x = from_bits((word[0] & 0x807fffff) | (96 + (word[0] >> 23 & 31)) << 23);
        const float y = from_bits((word[1] & 0x807fffff) | (96 + (word[1] >> 23 & 31)) << 23);
        const float below = from_bits((word[2] & 0x807fffff) | 0x38800000); /* 2^-14 or so */
        const float z = i % 2 ? -x * y * (1.0f + below) : x * y * below * 0x1p-9f;
        mpfr_set_flt(a, x, MPFR_RNDN);
        mpfr_set_flt(b, y, MPFR_RNDN);
        mpfr_set_flt(c, z, MPFR_RNDN);
        mpfr_fma(a, a, b, c, MPFR_RNDN);
        assert_true(fmaf(x, y, z) == mpfr_get_flt(a, MPFR_RNDN));
    }
    mpfr_clears(a, b, c, (mpfr_ptr)0);
}

#else

static void mpfr_is_missing(void **state) {
    (void)state;
    print_message("no MPFR in this build (Debian: libmpfr-dev): the errors are not measured\n");
    skip();
}

#endif

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(special_cases),          cmocka_unit_test(bits_of_the_contract),
        cmocka_unit_test(chains_of_the_contract), cmocka_unit_test(odd_and_bounded),
#ifdef QN_HAVE_MPFR
        cmocka_unit_test(errors_on_a_sample),     cmocka_unit_test(errors_at_binade_edges),
        cmocka_unit_test(errors_in_the_tails),    cmocka_unit_test(cospi_within_one_ulp),
        cmocka_unit_test(fmaf_rounds_once),
#else
        cmocka_unit_test(mpfr_is_missing),
#endif
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
