/* The largest errors of the functions of user kernels (docs/exactness.md 21.2).
 *
 * Use: functions_full [FUNCTION [COUNT]]. FUNCTION is a name or all (the default). A function of
 * one argument is computed for all 2^32 floats, which takes a minute or two, and for COUNT doubles;
 * one of two arguments for COUNT pairs of each. COUNT is 10,000,000 by default; with 0 floats only.
 * The exit status is 1 if an error is above the limit of elementary_functions_mpfr.h.
 *
 * A result is compared with libm's in the next wider format. Where it comes within `margin` of the
 * largest error so far, MPFR computes the error; so no input exceeds the maximum that is printed,
 * unless libm is wrong by more than the margin. Doubles and pairs are samples: half of them have
 * any bits, and half are near 1; pairs for pow are also chosen so that the power is in range.
 *
 * The digest covers all 2^32 results of a function, as docs/exactness.md 13.13 defines it. */
#include <stdio.h>

#ifdef QN_HAVE_MPFR

#include "functions_native.h"
#include "kernels/runtime/elementary_functions_mpfr.h"
#include "kernels/runtime/function_samples_test.h"

#include <stdlib.h>

enum { BLOCK = 65536 };

static const double margin = 1e-5, margin_of_doubles = 0.01;

/* The argument's rounding error counts, because erfc is steep. */
static long double normcdfl(long double x) {
    const long double root = sqrtl(0.5L), root_low = (0.5L - root * root) / (2.0L * root);
    const long double a = -x * root, low = fmal(-x, root, -a) - x * root_low;
    return 0.5L * (erfcl(a) - 1.1283791670955125739L * expl(-a * a) * low);
}

typedef struct worst {
    double ulps, x, y;
    unsigned long long settled; /* inputs that MPFR checked */
} worst;

/* The error of y beside `right`, which is near the exact result; infinite where MPFR must look. */
static double about(long double right, double y, int digits) {
    const double rounded = digits == 24 ? (double)(float)right : (double)right;
    if (isnan(rounded) && isnan(y))
        return 0.0;
    if (!isfinite(rounded) || !isfinite(y))
        return rounded == y ? 0.0 : (double)INFINITY;
    const int least = digits == 24 ? -126 : -1022;
    const int own = rounded == 0.0 ? least : ilogb(rounded), binade = own < least ? least : own;
    /* In the next lower binade, in case that the exact result is rounded down where this is not. */
    const long double size = fabsl(right) * (1.0L - 0x1p-40L);
    const int lower = size > 0.0L && ilogbl(size) < binade && ilogbl(size) >= least;
    return (double)ldexpl(fabsl((long double)y - right), digits - 1 - binade + lower);
}

/* The same for floats, quickly. */
static double about_float(double right, float y) {
    const double size = fabs(right) * (1.0 - 0x1p-40);
    if (!(size < 0x1p127) || !isfinite(y))
        return about((long double)right, (double)y, 24);
    const int exponent = (int)(qn__bits_f64(size) >> 52) - 1023;
    const int binade = exponent < -126 ? -126 : exponent;
    return fabs((double)y - right) * qn__f64_of((uint64_t)(1023 + 23 - binade) << 52);
}

static void sweep_floats(const qn__function_of_one *f, void (*loop)(int, const float *, float *),
                         worst *w, uint64_t *digest) {
    static float x[BLOCK], out[BLOCK];
    *digest = 0;
    for (uint32_t turn = 0; turn < 65536; turn++) {
        /* In scattered order, so that large errors are found early. */
        const uint32_t block = turn * 40503u % 65536u;
        for (uint32_t i = 0; i < BLOCK; i++)
            x[i] = qn__f32_of(block * BLOCK + i);
        loop(BLOCK, x, out);
        uint64_t chain = QN__CHAIN_START ^ block;
        for (uint32_t i = 0; i < BLOCK; i++) {
            chain = qn__chain(chain, qn__bits_f32(out[i]));
            if (about_float(f->near((double)x[i]), out[i]) + margin < w->ulps)
                continue;
            const double ulps = qn__ulps_of_one(f, (double)x[i], (double)out[i], 24);
            w->settled++;
            if (ulps > w->ulps)
                *w = (worst){ulps, (double)x[i], 0.0, w->settled};
        }
        *digest += chain;
    }
}

typedef long double wide_of_one(long double);
typedef long double wide_of_two(long double, long double);

static void sample_doubles(const qn__function_of_one *f, wide_of_one *wide,
                           void (*loop)(int, const double *, double *), uint64_t count, worst *w) {
    static double x[BLOCK], out[BLOCK];
    for (uint64_t first = 0; first < count; first += BLOCK) {
        for (uint32_t i = 0; i < BLOCK; i++)
            x[i] = qn__sample_f64(first + i);
        loop(BLOCK, x, out);
        for (uint32_t i = 0; i < BLOCK; i++) {
            if (about(wide((long double)x[i]), out[i], 53) + margin_of_doubles < w->ulps)
                continue;
            const double ulps = qn__ulps_of_one(f, x[i], out[i], 53);
            w->settled++;
            if (ulps > w->ulps)
                *w = (worst){ulps, x[i], 0.0, w->settled};
        }
    }
}

/* A pair number i; for pow every fourth has a power of a size from 2^-reach to 2^reach. */
static void pair(uint64_t i, int is_pow, double reach, double *x, double *y) {
    *x = qn__sample_f64(i);
    *y = qn__sample_f64(3 * i + 1);
    if (is_pow && i % 4 == 1) {
        *x = fabs(*x);
        *y = reach * 0x1p-31 * (double)(int32_t)(i * 0x9e3779b97f4a7c15u >> 32) / log2(*x);
    }
}

static void sample_pairs(const qn__function_of_two *f, wide_of_two *wide, int is_pow,
                         void (*loop)(int, const double *, const double *, double *),
                         void (*loop32)(int, const float *, const float *, float *), uint64_t count,
                         worst w[2]) {
    static double x[BLOCK], y[BLOCK], out[BLOCK];
    static float a[BLOCK], b[BLOCK], out32[BLOCK];
    for (uint64_t first = 0; first < count; first += BLOCK) {
        for (uint32_t i = 0; i < BLOCK; i++) {
            double u, v;
            pair(first + i, is_pow, 1080.0, &x[i], &y[i]);
            pair(first + i, is_pow, 152.0, &u, &v);
            a[i] = i % 2 ? (float)u : qn__sample_f32((uint32_t)(first + i));
            b[i] = i % 2 ? (float)v : qn__sample_f32((uint32_t)(3 * (first + i) + 1));
        }
        loop(BLOCK, x, y, out);
        loop32(BLOCK, a, b, out32);
        for (uint32_t i = 0; i < BLOCK; i++) {
            if (about(wide((long double)x[i], (long double)y[i]), out[i], 53) + margin_of_doubles >=
                w[1].ulps) {
                const double ulps = qn__ulps_of_two(f, x[i], y[i], out[i], 53);
                w[1].settled++;
                if (ulps > w[1].ulps)
                    w[1] = (worst){ulps, x[i], y[i], w[1].settled};
            }
            if (about(wide((long double)a[i], (long double)b[i]), (double)out32[i], 24) + margin >=
                w[0].ulps) {
                const double ulps =
                    qn__ulps_of_two(f, (double)a[i], (double)b[i], (double)out32[i], 24);
                w[0].settled++;
                if (ulps > w[0].ulps)
                    w[0] = (worst){ulps, (double)a[i], (double)b[i], w[0].settled};
            }
        }
    }
}

static int print(const char *name, const char *format, const worst *w, double limit) {
    printf("%-6s %s worst %.6f ulp at %a", name, format, w->ulps, w->x);
    if (w->y != 0.0)
        printf(", %a", w->y);
    printf(", limit %.2f; settled %llu", limit, w->settled);
    return !(w->ulps <= limit);
}

static int run_one(const qn__function_of_one *f, wide_of_one *wide,
                   void (*loop)(int, const double *, double *),
                   void (*loop32)(int, const float *, float *), uint64_t count) {
    uint64_t digest = 0;
    worst w = {.ulps = 0.4}, w64 = {.ulps = 0.4};
    sweep_floats(f, loop32, &w, &digest);
    int failed = print(f->name, "binary32", &w, f->limit[0]);
    printf("; digest %016llx\n", (unsigned long long)digest);
    fflush(stdout);
    if (count > 0) {
        sample_doubles(f, wide, loop, count, &w64);
        failed |= print(f->name, "binary64", &w64, f->limit[1]);
        printf("\n");
        fflush(stdout);
    }
    return failed;
}

static int run_two(const qn__function_of_two *f, wide_of_two *wide, int is_pow,
                   void (*loop)(int, const double *, const double *, double *),
                   void (*loop32)(int, const float *, const float *, float *), uint64_t count) {
    worst w[2] = {{.ulps = 0.4}, {.ulps = 0.4}};
    sample_pairs(f, wide, is_pow, loop, loop32, count, w);
    int failed = print(f->name, "binary32", &w[0], f->limit[0]);
    printf("\n");
    failed |= print(f->name, "binary64", &w[1], f->limit[1]);
    printf("\n");
    fflush(stdout);
    return failed;
}

int main(int argc, char **argv) {
    const char *only = argc > 1 ? argv[1] : "all";
    const uint64_t count = argc > 2 ? strtoull(argv[2], NULL, 10) : 10000000;
    int failed = 0, ran = 0, k = 0;
    if (!native_runs()) {
        fprintf(stderr, "functions_full needs a processor with AVX2 and FMA\n");
        return 2;
    }
#define RUN(name)                                                                                  \
    if (strcmp(only, "all") == 0 || strcmp(only, #name) == 0) {                                    \
        failed |= run_one(&qn__functions_of_one[k], name##l, native_f64_##name, native_f32_##name, \
                          count);                                                                  \
        ran = 1;                                                                                   \
    }                                                                                              \
    k++;
    QN__FUNCTIONS_OF_ONE(RUN)
#undef RUN
    k = 0;
#define RUN(name)                                                                                  \
    if (count > 0 && (strcmp(only, "all") == 0 || strcmp(only, #name) == 0)) {                     \
        failed |= run_two(&qn__functions_of_two[k], name##l, k == 0, native_f64_##name,            \
                          native_f32_##name, count);                                               \
        ran = 1;                                                                                   \
    }                                                                                              \
    k++;
    QN__FUNCTIONS_OF_TWO(RUN)
#undef RUN
    if (!ran)
        fprintf(stderr, "usage: functions_full [FUNCTION [COUNT]]; FUNCTION is one of "
                        "elementary_functions.h, COUNT above 0 for those of two arguments\n");
    return ran ? failed : 2;
}

#else

int main(void) {
    fprintf(stderr, "functions_full needs MPFR (Debian: libmpfr-dev); configure again with it\n");
    return 2;
}

#endif
