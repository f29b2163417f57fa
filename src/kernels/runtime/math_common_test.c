/* The functions for common arguments have the bits of those of math.cl, for every argument that
 * they do not call rare; and those that kernels use every day are not rare. */
#include "kernels/runtime/prelude_c.h"
#include "kernels/step.h"

#include "kernels/runtime/math.cl"
#define QN_INLINE static inline __attribute__((unused))
#include "kernels/runtime/math_common.inc"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "kernels/runtime/function_samples_test.h"

/* `least` to `most`: magnitudes that are common. */
static const struct of_f64 {
    const char *name;
    double (*common)(uint64_t *, double);
    double (*all)(double);
    double least, most;
} of_f64[] = {
#define ROW(name, least, most) {#name, qn_f64_common_##name, qn_f64_##name, least, most},
    ROW(exp, 0, 708) ROW(erf, 0, INFINITY) ROW(tanh, 0, INFINITY) ROW(sin, 0, 0x1.fffffffffffffp19)
        ROW(cos, 0, 0x1.fffffffffffffp19) ROW(tan, 0, 0x1.fffffffffffffp19)
            ROW(log, 0x1p-1022, 0x1.fffffffffffffp1023)
#undef ROW
};

static const struct of_f32 {
    const char *name;
    float (*common)(uint64_t *, float);
    float (*all)(float);
} of_f32[] = {{"sin", qn_f32_common_sin, qn_f32_sin},
              {"cos", qn_f32_common_cos, qn_f32_cos},
              {"tan", qn_f32_common_tan, qn_f32_tan}};

static const double edges[] = {0.0,
                               0x1p-1074,
                               0x1p-1022,
                               0x1p-149,
                               0x1p-30,
                               0.5,
                               0x1.921fb54442d18p-1,
                               0x1.921fb6p-1,
                               1.0,
                               6.0,
                               20.0,
                               708.0,
                               710.0,
                               0x1p20,
                               0x1p25,
                               0x1.fffffep127,
                               0x1.fffffffffffffp1023};
enum {
    EDGES = sizeof edges / sizeof *edges,
    AROUND = 7,
    ALL = QN__SAMPLES + EDGES * AROUND * 2 + 2
};

/* Samples; neighbours of the edges; infinity and NaN. */
static double argument(uint32_t i) {
    const uint32_t k = i - QN__SAMPLES;
    if (i < QN__SAMPLES)
        return qn__sample_f64(i);
    if (k >= EDGES * AROUND * 2)
        return k % 2 ? (double)INFINITY : (double)NAN;
    const double edge = edges[k / 2 / AROUND];
    const double near = qn__f64_of(qn__bits_f64(edge) + k / 2 % AROUND - (edge > 0 ? 3 : 0));
    return k % 2 ? -near : near;
}

static int same(double a, double b) {
    return qn__bits_f64(a) == qn__bits_f64(b) || (a != a && b != b);
}

static void functions_of_double(void **state) {
    (void)state;
    for (size_t k = 0; k < sizeof of_f64 / sizeof *of_f64; k++)
        for (uint32_t i = 0; i < ALL; i++) {
            const struct of_f64 *f = &of_f64[k];
            const double x = argument(i);
            uint64_t rare = 0;
            const double y = f->common(&rare, x);
            const int wanted =
                fabs(x) >= f->least && fabs(x) <= f->most && (f->all != qn_f64_log || x > 0);
            if ((rare >> 63 == 0) != wanted)
                fail_msg("%s of %a is %s", f->name, x, wanted ? "rare" : "common");
            if (wanted && !same(y, f->all(x)))
                fail_msg("%s of %a is %a, not %a", f->name, x, y, f->all(x));
        }
}

static void functions_of_float(void **state) {
    (void)state;
    for (size_t k = 0; k < sizeof of_f32 / sizeof *of_f32; k++)
        for (uint32_t i = 0; i < ALL; i++) {
            const struct of_f32 *f = &of_f32[k];
            const float x = i < QN__SAMPLES ? qn__sample_f32(i) : (float)argument(i);
            uint64_t rare = 0;
            const float y = f->common(&rare, x);
            const int wanted = fabsf(x) < 0x1p25f;
            if ((rare >> 63 == 0) != wanted)
                fail_msg("%s of %a in binary32 is %s", f->name, (double)x,
                         wanted ? "rare" : "common");
            if (wanted && !same((double)y, (double)f->all(x)))
                fail_msg("%s of %a in binary32 is %a, not %a", f->name, (double)x, (double)y,
                         (double)f->all(x));
        }
}

static int check_power(double x, double y) {
    uint64_t rare = 0;
    const double z = qn_f64_common_pow(&rare, x, y);
    if (rare >> 63)
        return 0;
    if (!same(z, qn_f64_pow(x, y)))
        fail_msg("pow of %a, %a is %a, not %a", x, y, z, qn_f64_pow(x, y));
    return 1;
}

static void powers(void **state) {
    uint32_t common = 0;
    (void)state;
    for (uint32_t i = 0; i < ALL; i++) {
        check_power(argument(i), argument((3 * i + 1) % ALL));
        check_power(1.0, argument(i));
        check_power(argument(i), 0.0);
        common += (uint32_t)check_power(fabs(qn__sample_f64(2 * i + 1)), (i % 64) / 8.0 - 4);
    }
    assert_int_equal(common, ALL);
    for (int n = -1025; n < 1026; n++)
        assert_int_equal(check_power(2.0, n), n >= -1020 && n <= 1020);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(functions_of_double),
        cmocka_unit_test(functions_of_float),
        cmocka_unit_test(powers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
