/* The functions of user kernels: special cases, the chains that the contract prints, and errors
 * against MPFR on a sample. bench/functions_full.c goes over all floats, by hand. */
#include "kernels/runtime/elementary_functions.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "kernels/runtime/function_samples_test.h"
#ifdef QN_HAVE_MPFR
#include "kernels/runtime/elementary_functions_mpfr.h"
#endif

static const double inf = (double)INFINITY, not_a_number = (double)NAN;

/* Both formats: the arguments are exact in both, and the results are rounded to them. */
static const struct of_one {
    const char *name;
    float (*f32)(float);
    double (*f64)(double);
    double x, y;
} of_one[] = {
#define ROW(name) #name, qn__f32_##name, qn__f64_##name
    {ROW(sqrt), -0.0, -0.0},
    {ROW(sqrt), 4.0, 2.0},
    {ROW(sqrt), INFINITY, INFINITY},
    {ROW(sqrt), -1.0, NAN},
    {ROW(sqrt), -INFINITY, NAN},
    {ROW(sqrt), -0x1p-149, NAN},
    {ROW(cbrt), 0.0, 0.0},
    {ROW(cbrt), -0.0, -0.0},
    {ROW(cbrt), -27.0, -3.0},
    {ROW(cbrt), 0x1p-147, 0x1p-49},
    {ROW(cbrt), 0x1p126, 0x1p42},
    {ROW(cbrt), 343.0, 7.0},
    {ROW(cbrt), INFINITY, INFINITY},
    {ROW(cbrt), -INFINITY, -INFINITY},
    {ROW(exp), 0.0, 1.0},
    {ROW(exp), -0.0, 1.0},
    {ROW(exp), 0x1p-140, 1.0},
    {ROW(exp), 1e9, INFINITY},
    {ROW(exp), INFINITY, INFINITY},
    {ROW(exp), -1e9, 0.0},
    {ROW(exp), -INFINITY, 0.0},
    {ROW(log), 1.0, 0.0},
    {ROW(log), 0.0, -INFINITY},
    {ROW(log), -0.0, -INFINITY},
    {ROW(log), -1.0, NAN},
    {ROW(log), -0x1p-149, NAN},
    {ROW(log), -INFINITY, NAN},
    {ROW(log), INFINITY, INFINITY},
    {ROW(sin), 0.0, 0.0},
    {ROW(sin), -0.0, -0.0},
    {ROW(sin), -0x1p-149, -0x1p-149},
    {ROW(sin), INFINITY, NAN},
    {ROW(sin), -INFINITY, NAN},
    {ROW(cos), 0.0, 1.0},
    {ROW(cos), -0x1p-149, 1.0},
    {ROW(cos), INFINITY, NAN},
    {ROW(tan), 0.0, 0.0},
    {ROW(tan), -0.0, -0.0},
    {ROW(tan), 0x1p-149, 0x1p-149},
    {ROW(tan), -INFINITY, NAN},
    {ROW(atan), 0.0, 0.0},
    {ROW(atan), -0.0, -0.0},
    {ROW(atan), -0x1p-149, -0x1p-149},
    {ROW(atan), INFINITY, 0x1.921fb54442d18p+0},
    {ROW(atan), -INFINITY, -0x1.921fb54442d18p+0},
    {ROW(atan), 1.0, 0x1.921fb54442d18p-1},
    {ROW(atan), -0x1p127, -0x1.921fb54442d18p+0},
    {ROW(erf), 0.0, 0.0},
    {ROW(erf), -0.0, -0.0},
    {ROW(erf), 9.0, 1.0},
    {ROW(erf), INFINITY, 1.0},
    {ROW(erf), -INFINITY, -1.0},
    {ROW(erfc), 0.0, 1.0},
    {ROW(erfc), -0.0, 1.0},
    {ROW(erfc), 0x1p-149, 1.0},
    {ROW(erfc), 28.0, 0.0},
    {ROW(erfc), -7.0, 2.0},
    {ROW(erfc), INFINITY, 0.0},
    {ROW(erfc), -INFINITY, 2.0},
    {ROW(normcdf), 0.0, 0.5},
    {ROW(normcdf), -0.0, 0.5},
    {ROW(normcdf), -0x1p-149, 0.5},
    {ROW(normcdf), -40.0, 0.0},
    {ROW(normcdf), 9.0, 1.0},
    {ROW(normcdf), INFINITY, 1.0},
    {ROW(normcdf), -INFINITY, 0.0},
    {ROW(tanh), -0.0, -0.0},
    {ROW(tanh), 0x1p-149, 0x1p-149},
    {ROW(tanh), 22.0, 1.0},
    {ROW(tanh), -0x1p127, -1.0},
    {ROW(tanh), INFINITY, 1.0},
    {ROW(exp2), 0.0, 1.0},
    {ROW(exp2), -0.0, 1.0},
    {ROW(exp2), -0x1p-149, 1.0},
    {ROW(exp2), 10.0, 1024.0},
    {ROW(exp2), 127.0, 0x1p127},
    {ROW(exp2), -149.0, 0x1p-149},
    {ROW(exp2), 2000.0, INFINITY},
    {ROW(exp2), -2000.0, 0.0},
    {ROW(exp2), INFINITY, INFINITY},
    {ROW(exp2), -INFINITY, 0.0},
    {ROW(expm1), 0.0, 0.0},
    {ROW(expm1), -0.0, -0.0},
    {ROW(expm1), 0x1p-149, 0x1p-149},
    {ROW(expm1), -0x1p-140, -0x1p-140},
    {ROW(expm1), -100.0, -1.0},
    {ROW(expm1), 1e9, INFINITY},
    {ROW(expm1), INFINITY, INFINITY},
    {ROW(expm1), -INFINITY, -1.0},
    {ROW(log2), 1.0, 0.0},
    {ROW(log2), 8.0, 3.0},
    {ROW(log2), 0x1p-149, -149.0},
    {ROW(log2), 0x1p127, 127.0},
    {ROW(log2), 0.0, -INFINITY},
    {ROW(log2), -0.0, -INFINITY},
    {ROW(log2), -1.0, NAN},
    {ROW(log2), -INFINITY, NAN},
    {ROW(log2), INFINITY, INFINITY},
    {ROW(log10), 1.0, 0.0},
    {ROW(log10), 10.0, 1.0},
    {ROW(log10), 1000.0, 3.0},
    {ROW(log10), 1e10, 10.0},
    {ROW(log10), 0.0, -INFINITY},
    {ROW(log10), -0.0, -INFINITY},
    {ROW(log10), -0x1p-149, NAN},
    {ROW(log10), -INFINITY, NAN},
    {ROW(log10), INFINITY, INFINITY},
    {ROW(log1p), 0.0, 0.0},
    {ROW(log1p), -0.0, -0.0},
    {ROW(log1p), 0x1p-149, 0x1p-149},
    {ROW(log1p), -0x1p-140, -0x1p-140},
    {ROW(log1p), -1.0, -INFINITY},
    {ROW(log1p), -0x1.000002p+0, NAN},
    {ROW(log1p), -INFINITY, NAN},
    {ROW(log1p), INFINITY, INFINITY},
    {ROW(asin), 0.0, 0.0},
    {ROW(asin), -0.0, -0.0},
    {ROW(asin), 0x1p-149, 0x1p-149},
    {ROW(asin), -0x1p-149, -0x1p-149},
    {ROW(asin), 1.0, 0x1.921fb54442d18p+0},
    {ROW(asin), -1.0, -0x1.921fb54442d18p+0},
    {ROW(asin), 0x1.000002p+0, NAN},
    {ROW(asin), -INFINITY, NAN},
    {ROW(acos), 0.0, 0x1.921fb54442d18p+0},
    {ROW(acos), -0.0, 0x1.921fb54442d18p+0},
    {ROW(acos), 0x1p-149, 0x1.921fb54442d18p+0},
    {ROW(acos), 1.0, 0.0},
    {ROW(acos), -1.0, 0x1.921fb54442d18p+1},
    {ROW(acos), -0x1.000002p+0, NAN},
    {ROW(acos), INFINITY, NAN},
    {ROW(sinh), 0.0, 0.0},
    {ROW(sinh), -0.0, -0.0},
    {ROW(sinh), 0x1p-149, 0x1p-149},
    {ROW(sinh), -0x1p-140, -0x1p-140},
    {ROW(sinh), -2000.0, -INFINITY},
    {ROW(sinh), INFINITY, INFINITY},
    {ROW(sinh), -INFINITY, -INFINITY},
    {ROW(cosh), 0.0, 1.0},
    {ROW(cosh), -0.0, 1.0},
    {ROW(cosh), -0x1p-149, 1.0},
    {ROW(cosh), -2000.0, INFINITY},
    {ROW(cosh), INFINITY, INFINITY},
    {ROW(cosh), -INFINITY, INFINITY},
#undef ROW
};

static const struct of_two {
    double x, y, z;
} of_pow[] = {
    {0.0, -3.0, INFINITY},
    {-0.0, -3.0, -INFINITY},
    {-0.0, -2.0, INFINITY},
    {-0.0, -2.5, INFINITY},
    {-0.0, -INFINITY, INFINITY},
    {-0.0, 3.0, -0.0},
    {0.0, 3.0, 0.0},
    {-0.0, 2.5, 0.0},
    {-0.0, INFINITY, 0.0},
    {-1.0, INFINITY, 1.0},
    {-1.0, -INFINITY, 1.0},
    {1.0, NAN, 1.0},
    {NAN, 0.0, 1.0},
    {NAN, -0.0, 1.0},
    {NAN, 1.0, NAN},
    {2.0, NAN, NAN},
    {-8.0, 0.5, NAN},
    {-0x1p-149, 0.5, NAN},
    {-2.0, 3.0, -8.0},
    {-2.0, 4.0, 16.0},
    {-2.0, -1.0, -0.5},
    {0.5, -INFINITY, INFINITY},
    {2.0, -INFINITY, 0.0},
    {-0.5, INFINITY, 0.0},
    {-2.0, INFINITY, INFINITY},
    {-INFINITY, -3.0, -0.0},
    {-INFINITY, -2.5, 0.0},
    {-INFINITY, 3.0, -INFINITY},
    {-INFINITY, 2.5, INFINITY},
    {INFINITY, -1.0, 0.0},
    {INFINITY, 0x1p-149, INFINITY},
    {3.0, 4.0, 81.0},
    {2.0, -149.0, 0x1p-149},
    {2.0, 127.0, 0x1p127},
    {10.0, 0x1p100, INFINITY},
    {-10.0, 0x1.000002p+23, -INFINITY},
    {-10.0, 0x1p60, INFINITY},
    {-0.1f, -0x1.000002p+23, -INFINITY},
    {0.5, 0x1p100, 0.0},
    {-0.5, 16777215.0, -0.0},
};
static const struct of_two of_atan2[] = {
    {0.0, 0.0, 0.0},
    {-0.0, 0.0, -0.0},
    {0.0, -0.0, 0x1.921fb54442d18p+1},
    {-0.0, -0.0, -0x1.921fb54442d18p+1},
    {-0.0, -1.0, -0x1.921fb54442d18p+1},
    {-0.0, 1.0, -0.0},
    {1.0, 0.0, 0x1.921fb54442d18p+0},
    {-1.0, -0.0, -0x1.921fb54442d18p+0},
    {1.0, INFINITY, 0.0},
    {-1.0, INFINITY, -0.0},
    {-1.0, -INFINITY, -0x1.921fb54442d18p+1},
    {INFINITY, -5.0, 0x1.921fb54442d18p+0},
    {INFINITY, INFINITY, 0x1.921fb54442d18p-1},
    {INFINITY, -INFINITY, 0x1.2d97c7f3321d2p+1},
    {-INFINITY, -INFINITY, -0x1.2d97c7f3321d2p+1},
    {NAN, 1.0, NAN},
    {0.0, NAN, NAN},
    {NAN, INFINITY, NAN},
    {0x1p-149, 0x1p127, 0.0}, /* below half the least number: only in binary32 */
    {-3.0, 3.0, -0x1.921fb54442d18p-1},
    {0x1p-140, 4.0, 0x1p-142},
    {0x1p-149, -0x1p-149, 0x1.2d97c7f3321d2p+1},
    {0x1p127, 0x1p127, 0x1.921fb54442d18p-1},
};

static const struct of_two of_hypot[] = {
    {3.0, -4.0, 5.0},
    {0.0, 0.0, 0.0},
    {-0.0, -0.0, 0.0},
    {-0.0, -5.0, 5.0},
    {0x1p-149, 0.0, 0x1p-149},
    {0x1.8p-148, -0x1p-147, 0x1.4p-147},
    {0x1.8p+125, 0x1p126, 0x1.4p+126},
    {0x1p127, 0x1p-149, 0x1p127},
    {-INFINITY, NAN, INFINITY},
    {NAN, INFINITY, INFINITY},
    {-INFINITY, 0.0, INFINITY},
    {NAN, 0.0, NAN},
    {1.0, NAN, NAN},
};

static void same_f32(const char *name, double x, double y, float got, double want) {
    const uint32_t bits = isnan(want) ? 0x7fc00000u : qn__bits_f32((float)want);
    if (qn__bits_f32(got) != bits)
        fail_msg("%s of %a, %a in binary32: %a (%08x), not %a", name, x, y, (double)got,
                 qn__bits_f32(got), want);
}

static void same_f64(const char *name, double x, double y, double got, double want) {
    const uint64_t bits = isnan(want) ? 0x7ff8000000000000u : qn__bits_f64(want);
    if (qn__bits_f64(got) != bits)
        fail_msg("%s of %a, %a in binary64: %a (%016llx), not %a", name, x, y, got,
                 (unsigned long long)qn__bits_f64(got), want);
}

static void special_cases_of_one(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof of_one / sizeof *of_one; i++) {
        const struct of_one *c = &of_one[i];
        same_f32(c->name, c->x, 0.0, c->f32((float)c->x), c->y);
        same_f64(c->name, c->x, 0.0, c->f64(c->x), c->y);
        same_f32(c->name, not_a_number, 0.0, c->f32(qn__f32_of(0xffc00001u)), not_a_number);
        same_f64(c->name, not_a_number, 0.0, c->f64(qn__f64_of(0xfff0000000000001u)), not_a_number);
    }
}

static void special_cases_of_two(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof of_pow / sizeof *of_pow; i++) {
        const struct of_two *c = &of_pow[i];
        same_f32("pow", c->x, c->y, qn__f32_pow((float)c->x, (float)c->y), c->z);
        if (fabs(c->y) < 16e6 || fabs(c->y) > 1e9)
            same_f64("pow", c->x, c->y, qn__f64_pow(c->x, c->y), c->z);
    }
    for (size_t i = 0; i < sizeof of_atan2 / sizeof *of_atan2; i++) {
        const struct of_two *c = &of_atan2[i];
        same_f32("atan2", c->x, c->y, qn__f32_atan2((float)c->x, (float)c->y), c->z);
        if (!(c->x > 0.0 && c->y == 0x1p127 && c->x < c->y))
            same_f64("atan2", c->x, c->y, qn__f64_atan2(c->x, c->y), c->z);
    }
}

static void special_cases_of_hypot(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof of_hypot / sizeof *of_hypot; i++) {
        const struct of_two *c = &of_hypot[i];
        same_f32("hypot", c->x, c->y, qn__f32_hypot((float)c->x, (float)c->y), c->z);
        same_f64("hypot", c->x, c->y, qn__f64_hypot(c->x, c->y), c->z);
    }
}

/* At the ends of the range of binary64. */
static void special_cases_of_f64(void **state) {
    (void)state;
    same_f64("exp", 710.0, 0.0, qn__f64_exp(710.0), inf);
    same_f64("exp", 0x1.62e42fefa39efp+9, 0.0, qn__f64_exp(0x1.62e42fefa39efp+9),
             0x1.fffffffffff2ap+1023);
    same_f64("exp", 0x1.62e42fefa39fp+9, 0.0, qn__f64_exp(0x1.62e42fefa39fp+9), inf);
    same_f64("exp", -0x1.74910d52d3051p+9, 0.0, qn__f64_exp(-0x1.74910d52d3051p+9), 0x1p-1074);
    same_f64("exp", -0x1.74910d52d3052p+9, 0.0, qn__f64_exp(-0x1.74910d52d3052p+9), 0.0);
    same_f64("cbrt", 0x1p-1074, 0.0, qn__f64_cbrt(0x1p-1074), 0x1p-358);
    same_f64("cbrt", -0x1p1023, 0.0, qn__f64_cbrt(-0x1p1023), -0x1p341);
    same_f64("sin", 0x1p-1074, 0.0, qn__f64_sin(0x1p-1074), 0x1p-1074);
    same_f64("tanh", -0x1p-1074, 0.0, qn__f64_tanh(-0x1p-1074), -0x1p-1074);
    same_f64("erf", 0x1p-1074, 0.0, qn__f64_erf(0x1p-1074), 0x1p-1074);
    same_f64("erfc", 0x1.b39dc41e48bfcp+4, 0.0, qn__f64_erfc(0x1.b39dc41e48bfcp+4), 0x1p-1074);
    same_f64("erfc", 0x1.b39dc41e48bfdp+4, 0.0, qn__f64_erfc(0x1.b39dc41e48bfdp+4), 0.0);
    same_f64("log", 0x1p-1074, 0.0, qn__f64_log(0x1p-1074), -0x1.74385446d71c3p+9);
    same_f64("exp2", -1074.0, 0.0, qn__f64_exp2(-1074.0), 0x1p-1074);
    same_f64("exp2", 1023.0, 0.0, qn__f64_exp2(1023.0), 0x1p1023);
    same_f64("exp2", 1024.0, 0.0, qn__f64_exp2(1024.0), inf);
    same_f64("expm1", 0x1.62e42fefa39efp+9, 0.0, qn__f64_expm1(0x1.62e42fefa39efp+9),
             0x1.fffffffffff2ap+1023);
    same_f64("expm1", 0x1.62e42fefa39fp+9, 0.0, qn__f64_expm1(0x1.62e42fefa39fp+9), inf);
    same_f64("expm1", -0x1p-1074, 0.0, qn__f64_expm1(-0x1p-1074), -0x1p-1074);
    same_f64("log2", 0x1p-1074, 0.0, qn__f64_log2(0x1p-1074), -1074.0);
    same_f64("log10", 1e22, 0.0, qn__f64_log10(1e22), 22.0);
    same_f64("log1p", -0x1p-1074, 0.0, qn__f64_log1p(-0x1p-1074), -0x1p-1074);
    same_f64("asin", 0x1p-1074, 0.0, qn__f64_asin(0x1p-1074), 0x1p-1074);
    same_f64("sinh", -0x1p-1074, 0.0, qn__f64_sinh(-0x1p-1074), -0x1p-1074);
    same_f64("sinh", 0x1.633ce8fb9f87dp+9, 0.0, qn__f64_sinh(0x1.633ce8fb9f87dp+9),
             0x1.ffffffffffd3bp+1023);
    same_f64("sinh", -0x1.633ce8fb9f87ep+9, 0.0, qn__f64_sinh(-0x1.633ce8fb9f87ep+9), -inf);
    same_f64("cosh", -0x1.633ce8fb9f87ep+9, 0.0, qn__f64_cosh(-0x1.633ce8fb9f87ep+9), inf);
    same_f64("hypot", 0x1.8p-1073, -0x1p-1072, qn__f64_hypot(0x1.8p-1073, -0x1p-1072), 0x1.4p-1072);
    same_f64("hypot", 0x1.8p+1022, 0x1p1023, qn__f64_hypot(0x1.8p+1022, 0x1p1023), 0x1.4p+1023);
    same_f64("hypot", 0x1.8p+1023, 0x1p1023, qn__f64_hypot(0x1.8p+1023, 0x1p1023),
             0x1.cd82b446159f3p+1023);
    same_f64("hypot", 0x1.8p+1023, 0x1.8p1023, qn__f64_hypot(0x1.8p+1023, 0x1.8p1023), inf);
    same_f64("pow", 2.0, -1074.0, qn__f64_pow(2.0, -1074.0), 0x1p-1074);
    same_f64("pow", 2.0, 1023.0, qn__f64_pow(2.0, 1023.0), 0x1p1023);
    same_f64("pow", -1.5, 0x1.fffffffffffffp+52, qn__f64_pow(-1.5, 0x1.fffffffffffffp+52), -inf);
    same_f64("pow", -1.5, 0x1p+53, qn__f64_pow(-1.5, 0x1p+53), inf);
    same_f64("atan2", 0x1p-1074, 1.0, qn__f64_atan2(0x1p-1074, 1.0), 0x1p-1074);
    same_f64("atan2", 0x1p1023, 0x1p1023, qn__f64_atan2(0x1p1023, 0x1p1023), 0x1.921fb54442d18p-1);
    same_f64("atan2", 0x1p-1000, 0x1p74, qn__f64_atan2(0x1p-1000, 0x1p74), 0x1p-1074);
}

/* Numbers for the bits of all results of a sample, in the table of section 21.15. */
static void chains_of_the_contract(void **state) {
    (void)state;
    static const struct {
        const char *name;
        float (*f32)(float);
        double (*f64)(double);
        float (*f32_two)(float, float);
        double (*f64_two)(double, double);
        uint64_t chain[4];
    } rows[] = {
#define ONE(name, a, b, c, d)                                                                      \
    {#name, qn__f32_##name, qn__f64_##name, NULL, NULL, {a##u, b##u, c##u, d##u}},
#define TWO(name, a, b, c, d)                                                                      \
    {#name, NULL, NULL, qn__f32_##name, qn__f64_##name, {a##u, b##u, c##u, d##u}},
        QN__CHAINS_OF_ONE(ONE) QN__CHAINS_OF_TWO(TWO)
#undef ONE
#undef TWO
    };
    int wrong = 0;
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
        uint64_t got[4] = {0}, a = QN__CHAIN_START, b = QN__CHAIN_START;
        for (uint32_t i = 0; i < QN__SAMPLES; i++) {
            const float x = qn__sample_f32(i), y = qn__sample_f32(3 * i + 1);
            const double v = qn__sample_f64(i), w = qn__sample_f64(3 * i + 1);
            a = qn__chain(a, qn__bits_f32(rows[k].f32 ? rows[k].f32(x) : rows[k].f32_two(x, y)));
            b = qn__chain(b, qn__bits_f64(rows[k].f64 ? rows[k].f64(v) : rows[k].f64_two(v, w)));
            if (i == QN__FIRST_SAMPLES - 1) {
                got[0] = a;
                got[2] = b;
            }
        }
        got[1] = a;
        got[3] = b;
        if (memcmp(got, rows[k].chain, sizeof got) != 0) {
            print_message("ROW(%s, 0x%016llx, 0x%016llx, 0x%016llx, 0x%016llx)\n", rows[k].name,
                          (unsigned long long)got[0], (unsigned long long)got[1],
                          (unsigned long long)got[2], (unsigned long long)got[3]);
            wrong++;
        }
    }
    if (wrong)
        fail_msg("the chains of %d functions are not those of the contract", wrong);
}

#ifdef QN_HAVE_MPFR

static void check_one(const qn__function_of_one *f, float x, double v) {
    const double ulps = qn__ulps_of_one(f, (double)x, (double)f->f32(x), 24);
    if (!(ulps <= f->limit[0]))
        fail_msg("%s of %a in binary32 is %.4f ulp off, more than %.2f", f->name, (double)x, ulps,
                 f->limit[0]);
    const double ulps64 = qn__ulps_of_one(f, v, f->f64(v), 53);
    if (!(ulps64 <= f->limit[1]))
        fail_msg("%s of %a in binary64 is %.4f ulp off, more than %.2f", f->name, v, ulps64,
                 f->limit[1]);
}

static void errors_on_a_sample(void **state) {
    (void)state;
    for (int k = 0; k < QN__FUNCTIONS_ONE; k++)
        for (uint32_t i = 0; i < 1500; i++)
            check_one(&qn__functions_of_one[k], qn__sample_f32(i), qn__sample_f64(i));
}

/* Powers of two and their neighbours, where exponents, formulas and units change. */
static void errors_at_binade_edges(void **state) {
    (void)state;
    for (int k = 0; k < QN__FUNCTIONS_ONE; k++)
        for (uint32_t e = 0; e < 256; e += e % 2 || e > 150 || e < 90 ? 5 : 1) {
            const uint64_t wide = e < 32 ? e : e > 224 ? e + 1792 : e + 896;
            check_one(&qn__functions_of_one[k], qn__f32_of(e << 23), qn__f64_of(wide << 52));
            check_one(&qn__functions_of_one[k], qn__f32_of((e << 23) - 1),
                      qn__f64_of((wide << 52) - 1));
        }
}

/* Angles next to multiples of pi/2, the nearest of all among them; other arguments at which the
 * exact result is close to the middle of two numbers or a formula changes. */
static void errors_of_hard_cases(void **state) {
    (void)state;
    static const double angles[] = {
        0x1.921fb6p+0,
        0x1.921fb6p+1,
        0x1.2d97c8p+2, /* floats near k pi/2 */
        0x1.f9cbe2p+7,
        0x1.47d0fep+34,
        0x1.f37c8ap+95, /* the nearest floats */
        0x1.921fb54442d18p+0,
        0x1.921fb54442d18p+1,
        0x1.2d97c7f3321d2p+2, /* the same, doubles */
        0x1.6c6cbc45dc8dep+5,
        0x1.6c6cbc45dc8dep+13,
        0x1.b951f1572eba5p+23,
        0x1.504cac51f1eafp+131,
        0x1.6ac5b262ca1ffp+849, /* the nearest of all */
        0x1.fffffffffffffp+1023,
        0x1.fffffep+127,
        0x1p+20,
        0x1.fffffffffffffp+19,
        0x1.921fb54442d18p+19,
        0x1.921fb54442d18p+40,
        0x1.921fb6p-1,
        0x1.921fb54442d18p-1,
    };
    static const double others[] = {40.0,
                                    89.5,
                                    0x1.0p-24,
                                    0.3466,
                                    0x1.0p-53,
                                    0.7071,
                                    1e-9,
                                    1.0,
                                    0x1.fffffep-1,
                                    0x1.000002p+0,
                                    0.55,
                                    4.0,
                                    6.0,
                                    3.92,
                                    0x1.3p+4,
                                    20.0,
                                    0x1.6a09e6p-1,
                                    0x1.6a09e8p-1,
                                    0x1.a8279ap-2,
                                    0x1.3504f4p+1,
                                    0x1.6d148130fa688p-2,
                                    0x1.f88c0b31a479fp-3};
    for (size_t i = 0; i < sizeof angles / sizeof *angles; i++)
        for (int k = 0; k < QN__FUNCTIONS_ONE; k++)
            if (strlen(qn__functions_of_one[k].name) == 3)
                check_one(&qn__functions_of_one[k], (float)fmin(angles[i], 0x1.fffffep+127),
                          angles[i]);
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        for (int step = -2; step < 3; step++)
            for (int k = 0; k < QN__FUNCTIONS_ONE; k++)
                check_one(&qn__functions_of_one[k],
                          qn__f32_of(qn__bits_f32((float)others[i]) + (uint32_t)step),
                          qn__f64_of(qn__bits_f64(others[i]) + (uint64_t)(int64_t)step));
}

/* The tails of erfc and normcdf, down to results that are subnormal or round to 0. */
static void errors_of_tails(void **state) {
    (void)state;
    for (int k = 0; k < QN__FUNCTIONS_ONE; k++) {
        const int is_erfc = strcmp(qn__functions_of_one[k].name, "erfc") == 0;
        if (!is_erfc && strcmp(qn__functions_of_one[k].name, "normcdf") != 0)
            continue;
        const double end32 = is_erfc ? 10.1 : -14.25, end64 = is_erfc ? 27.3 : -38.55;
        for (int i = 0; i < 1200; i++) {
            /* A part of them near the end. */
            const double at = i % 3 ? 1.0 - 0.06 * (double)i / 1200.0 : (double)i / 1200.0;
            check_one(&qn__functions_of_one[k], (float)(at * end32), at * end64);
        }
    }
}

static void check_two(const qn__function_of_two *f, float x, float y, double v, double w) {
    const double ulps = qn__ulps_of_two(f, (double)x, (double)y, (double)f->f32(x, y), 24);
    if (!(ulps <= f->limit[0]))
        fail_msg("%s of %a, %a in binary32 is %.4f ulp off, more than %.2f", f->name, (double)x,
                 (double)y, ulps, f->limit[0]);
    const double ulps64 = qn__ulps_of_two(f, v, w, f->f64(v, w), 53);
    if (!(ulps64 <= f->limit[1]))
        fail_msg("%s of %a, %a in binary64 is %.4f ulp off, more than %.2f", f->name, v, w, ulps64,
                 f->limit[1]);
}

/* Any two numbers; and powers near the ends of the range, whose exponent is large. */
static void errors_of_two_arguments(void **state) {
    (void)state;
    for (int k = 0; k < QN__FUNCTIONS_TWO; k++)
        for (uint32_t i = 0; i < 1500; i++)
            check_two(&qn__functions_of_two[k], qn__sample_f32(i), qn__sample_f32(3 * i + 1),
                      qn__sample_f64(i), qn__sample_f64(3 * i + 1));
    /* hypot, rounded once more where it is subnormal. */
    for (uint32_t i = 0; i < 1500; i++)
        check_two(&qn__functions_of_two[2], qn__f32_of(i * 0x9e3779b1u >> 9),
                  qn__f32_of(i * 0x85ebca6bu >> (9 + i % 12)),
                  qn__f64_of(i * 0x9e3779b97f4a7c15u >> 12),
                  qn__f64_of(i * 0xc2b2ae3d27d4eb4fu >> (12 + i % 12)));
    for (uint32_t i = 1; i < 1500; i += 2) {
        const float x = fabsf(qn__sample_f32(i));
        const double v = fabs(qn__sample_f64(i));
        const double part = (double)(i % 150) / 74.0 - 1.0;
        check_two(&qn__functions_of_two[0], x, (float)(part * 140.0 / log2((double)x)), v,
                  part * 1070.0 / log2(v));
        check_two(&qn__functions_of_two[0], 1.0f + 0x1p-8f * (float)part, x, 1.0 + part / 256.0, v);
    }
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
        cmocka_unit_test(special_cases_of_one),    cmocka_unit_test(special_cases_of_two),
        cmocka_unit_test(special_cases_of_hypot),  cmocka_unit_test(special_cases_of_f64),
        cmocka_unit_test(chains_of_the_contract),
#ifdef QN_HAVE_MPFR
        cmocka_unit_test(errors_on_a_sample),      cmocka_unit_test(errors_at_binade_edges),
        cmocka_unit_test(errors_of_tails),         cmocka_unit_test(errors_of_hard_cases),
        cmocka_unit_test(errors_of_two_arguments),
#else
        cmocka_unit_test(mpfr_is_missing),
#endif
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
