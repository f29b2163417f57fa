/* Nanoseconds an element of the functions of user kernels, in binary32 and binary64: as a loop that
 * the compiler vectorises for AVX2, and one call at a time, beside glibc's function and the vector
 * functions of its libmvec (within 4 ulp).
 *
 * Use: functions_speed [SAMPLES], 11 by default. One thread, 2,048 elements in the first-level
 * cache; the time is the thread's processor time. All candidates take turns. Before that the loop
 * is compared with the library's function, bit for bit, and the others within 5 ulp. */
#include <stdio.h>

#include "functions_native.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <time.h>
#if defined __x86_64__
#include <immintrin.h>
#endif

enum { N = 2048, MOST_SAMPLES = 101, CANDIDATES = 4, FUNCTIONS = 24 };

static float x32[N], y32[N], out32[N];
static double x64[N], y64[N], out64[N];

/* What takes their place where glibc has none: in the format itself the tail would be wrong. */
static float normcdff(float x) { return 0.5f * (float)erfc(-(double)x * M_SQRT1_2); }
static double normcdf(double x) { return (double)(0.5L * erfcl(-(long double)x * sqrtl(0.5L))); }

/* A function of both formats. Members of the other number of arguments are NULL. */
static const struct function {
    const char *name;
    float (*f32)(float);
    double (*f64)(double);
    float (*libm32)(float);
    double (*libm64)(double);
    void (*loop32)(int, const float *, float *);
    void (*loop64)(int, const double *, double *);
    float (*two32)(float, float);
    double (*two64)(double, double);
    float (*libm_two32)(float, float);
    double (*libm_two64)(double, double);
    void (*loop_two32)(int, const float *, const float *, float *);
    void (*loop_two64)(int, const double *, const double *, double *);
} functions[FUNCTIONS] = {
#define ONE(name)                                                                                  \
    {#name,                                                                                        \
     qn__f32_##name,                                                                               \
     qn__f64_##name,                                                                               \
     name##f,                                                                                      \
     name,                                                                                         \
     native_f32_##name,                                                                            \
     native_f64_##name,                                                                            \
     NULL,                                                                                         \
     NULL,                                                                                         \
     NULL,                                                                                         \
     NULL,                                                                                         \
     NULL,                                                                                         \
     NULL},
#define TWO(name)                                                                                  \
    {#name,                                                                                        \
     NULL,                                                                                         \
     NULL,                                                                                         \
     NULL,                                                                                         \
     NULL,                                                                                         \
     NULL,                                                                                         \
     NULL,                                                                                         \
     qn__f32_##name,                                                                               \
     qn__f64_##name,                                                                               \
     name##f,                                                                                      \
     name,                                                                                         \
     native_f32_##name,                                                                            \
     native_f64_##name},
    QN__FUNCTIONS_OF_ONE(ONE) QN__FUNCTIONS_OF_TWO(TWO)
#undef ONE
#undef TWO
};

typedef struct candidate {
    const char *name;
    void (*run)(const struct candidate *c);
    const struct function *f;
    void *vector; /* of libmvec */
    double ns[MOST_SAMPLES];
} candidate;

static void loop_f32(const candidate *c) {
    if (c->f->two32)
        c->f->loop_two32(N, x32, y32, out32);
    else
        c->f->loop32(N, x32, out32);
}

static void loop_f64(const candidate *c) {
    if (c->f->two64)
        c->f->loop_two64(N, x64, y64, out64);
    else
        c->f->loop64(N, x64, out64);
}

static void each_f32(const candidate *c) {
    for (int i = 0; i < N; i++)
        out32[i] = c->f->two32 ? c->f->two32(x32[i], y32[i]) : c->f->f32(x32[i]);
}

static void each_f64(const candidate *c) {
    for (int i = 0; i < N; i++)
        out64[i] = c->f->two64 ? c->f->two64(x64[i], y64[i]) : c->f->f64(x64[i]);
}

static void libm_f32(const candidate *c) {
    for (int i = 0; i < N; i++)
        out32[i] = c->f->two32 ? c->f->libm_two32(x32[i], y32[i]) : c->f->libm32(x32[i]);
}

static void libm_f64(const candidate *c) {
    for (int i = 0; i < N; i++)
        out64[i] = c->f->two64 ? c->f->libm_two64(x64[i], y64[i]) : c->f->libm64(x64[i]);
}

#if defined __x86_64__

__attribute__((target("avx2"))) static void vector_f32(const candidate *c) {
    typedef __m256 one(__m256);
    typedef __m256 two(__m256, __m256);
    one *f;
    two *g;
    memcpy(&f, &c->vector, sizeof f);
    memcpy(&g, &c->vector, sizeof g);
    for (int i = 0; i < N; i += 8) {
        const __m256 x = _mm256_loadu_ps(x32 + i), y = _mm256_loadu_ps(y32 + i);
        _mm256_storeu_ps(out32 + i, c->f->two32 ? g(x, y) : f(x));
    }
}

__attribute__((target("avx2"))) static void vector_f64(const candidate *c) {
    typedef __m256d one(__m256d);
    typedef __m256d two(__m256d, __m256d);
    one *f;
    two *g;
    memcpy(&f, &c->vector, sizeof f);
    memcpy(&g, &c->vector, sizeof g);
    for (int i = 0; i < N; i += 4) {
        const __m256d x = _mm256_loadu_pd(x64 + i), y = _mm256_loadu_pd(y64 + i);
        _mm256_storeu_pd(out64 + i, c->f->two64 ? g(x, y) : f(x));
    }
}

/* libmvec's function, or NULL: there is none for sqrt, nor elsewhere. */
static void *find_vector(const struct function *f, int wide) {
    static void *library;
    char symbol[64];
    if (!library)
        library = dlopen("libmvec.so.1", RTLD_NOW);
    snprintf(symbol, sizeof symbol, "_ZGVdN%d%s_%s%s", wide ? 4 : 8, f->two32 ? "vv" : "v", f->name,
             wide ? "" : "f");
    return library ? dlsym(library, symbol) : NULL;
}

#else

static void vector_f32(const candidate *c) { (void)c; }
static void vector_f64(const candidate *c) { (void)c; }
static void *find_vector(const struct function *f, int wide) {
    (void)f;
    (void)wide;
    return NULL;
}

#endif

/* x in 0.1 to 10 for functions that want it positive, within 1 of zero for asin and acos, else
 * within 8; y within 4. */
static void fill(const struct function *f) {
    uint32_t seed = 20261124;
    const int positive = strncmp(f->name, "log", 3) == 0 || strcmp(f->name, "pow") == 0 ||
                         strcmp(f->name, "sqrt") == 0;
    const double reach = strcmp(f->name, "asin") == 0 || strcmp(f->name, "acos") == 0 ? 1.0 : 8.0;
    for (int i = 0; i < N; i++) {
        seed = seed * 1664525u + 1013904223u;
        const double x = (double)(seed >> 8) * 0x1p-24;
        seed = seed * 1664525u + 1013904223u;
        y64[i] = (double)(seed >> 8) * 0x1p-21 - 4.0;
        x64[i] = positive ? 0.1 + 9.9 * x : reach * (2.0 * x - 1.0);
        x32[i] = (float)x64[i];
        y32[i] = (float)y64[i];
    }
}

/* Whether a candidate's results are those of the library's function; others may be 5 ulp off. */
static int verified(const candidate *c, int wide) {
    c->run(c);
    for (int i = 0; i < N; i++) {
        const double got = wide ? out64[i] : (double)out32[i];
        const double own = wide ? (c->f->two64 ? c->f->two64(x64[i], y64[i]) : c->f->f64(x64[i]))
                           : c->f->two32 ? (double)c->f->two32(x32[i], y32[i])
                                         : (double)c->f->f32(x32[i]);
        const int exact = c->run == loop_f32 || c->run == loop_f64;
        if (exact ? memcmp(&got, &own, sizeof got) != 0
                  : !(fabs(got - own) <= 5.0 * fabs(own) * (wide ? 0x1p-52 : 0x1p-23)))
            return 0;
    }
    return 1;
}

static double seconds(void) {
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static double sample(const candidate *c, int rounds) {
    const double start = seconds();
    for (int r = 0; r < rounds; r++)
        c->run(c);
    return (seconds() - start) * 1e9 / ((double)rounds * N);
}

static int by_size(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static int run_function(const struct function *f, int wide, int samples) {
    static candidate c[CANDIDATES];
    int n = 0;
    fill(f);
    c[n++] = (candidate){.name = "loop", .run = wide ? loop_f64 : loop_f32, .f = f};
    c[n++] = (candidate){.name = "each", .run = wide ? each_f64 : each_f32, .f = f};
    c[n++] = (candidate){.name = "glibc", .run = wide ? libm_f64 : libm_f32, .f = f};
    c[n] = (candidate){.name = "libmvec",
                       .run = wide ? vector_f64 : vector_f32,
                       .f = f,
                       .vector = find_vector(f, wide)};
    n += c[n].vector != NULL;
    for (int k = 0; k < n; k++)
        if (!verified(&c[k], wide)) {
            fprintf(stderr, "%s: %s gives wrong results\n", f->name, c[k].name);
            return 1;
        }
    for (int s = 0; s < samples; s++)
        for (int k = 0; k < n; k++)
            c[k].ns[s] = sample(&c[k], 20);
    printf("%-6s %s", f->name, wide ? "f64" : "f32");
    for (int k = 0; k < n; k++) {
        qsort(c[k].ns, (size_t)samples, sizeof *c[k].ns, by_size);
        printf("  %s %6.2f (%.2f)", c[k].name, c[k].ns[samples / 2], c[k].ns[0]);
    }
    printf("\n");
    return 0;
}

int main(int argc, char **argv) {
    const int samples = argc > 1 ? atoi(argv[1]) : 11;
    if (samples < 1 || samples > MOST_SAMPLES) {
        fprintf(stderr, "usage: functions_speed [SAMPLES, 1 to %d]\n", MOST_SAMPLES);
        return 2;
    }
    if (!native_runs()) {
        fprintf(stderr, "functions_speed needs a processor with AVX2 and FMA\n");
        return 2;
    }
    printf("compiler %s, -ffp-contract=off, one thread, %d elements, %d samples\n"
           "median ns of processor time per element (fastest sample)\n",
           __VERSION__, N, samples);
    int failed = 0;
    for (int k = 0; k < FUNCTIONS; k++)
        for (int wide = 0; wide < 2; wide++)
            failed |= run_function(&functions[k], wide, samples);
    return failed;
}
