/* The speed of exp, log, tanh and sigmoid, compared with glibc and SLEEF in the same run.
 *
 *     elementary_speed [SAMPLES]
 *
 * For each function and each instruction set of this processor: nanoseconds per element over an
 * array of 2,048 floats; both arrays together fill half of a 32 KiB first-level cache. The figure
 * is the median of SAMPLES samples (default 21) of about 2 ms, with the fastest and the slowest,
 * and the largest error on these arguments in ulps. The peers are glibc's scalar functions, its
 * vector library libmvec, and SLEEF's 1.0-ulp functions. They are opened at run time; a missing
 * library or function is reported.
 *
 * Before timing, Quern's arrays are compared with its scalar reference by bits, and a peer's must
 * be within 5 ulp. Samples of all candidates alternate, so that a change of the clock rate affects
 * all alike. */
#include "device/cpu/cpu_isa.h"
#include "num/elementary.h"

#include <dlfcn.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

enum { N = 2048, CANDIDATES = 16, MOST_SAMPLES = 201 };

/* The second array starts 17 cache lines after a multiple of a page: at a distance of whole pages,
 * stores to one would delay loads from the other. */
static _Alignas(4096) float arena[2 * N + 272];
static float *const input = arena;
static float *const output = arena + N + 272;

typedef struct function {
    const char *name;
    float (*reference)(float);
    double (*near)(double);
    float (*libm)(float);
} function;

static double near_sigmoid(double x) { return 1.0 / (1.0 + exp(-x)); }

static const function functions[] = {
    {"exp", qn__exp, exp, expf},
    {"log", qn__log, log, logf},
    {"tanh", qn__tanh, tanh, tanhf},
    {"sigmoid", qn__sigmoid, near_sigmoid, NULL},
};
enum { FUNCTIONS = sizeof functions / sizeof *functions };

/* One row of the table. A peer is called through `symbol`, Quern's own function through `map`. */
typedef struct candidate {
    char name[40];
    void (*run)(const struct candidate *self);
    qn__map_function *map;
    void (*symbol)(void);
    float (*libm)(float);
    double ns[MOST_SAMPLES];
} candidate;

static double seconds(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void run_map(const candidate *self) { self->map(N, input, output); }

static void run_libm(const candidate *self) {
    for (int i = 0; i < N; i++)
        output[i] = self->libm(input[i]);
}

#if defined(__x86_64__)

__attribute__((target("avx2"))) static void run_8(const candidate *self) {
    __m256 (*f)(__m256);
    memcpy(&f, &self->symbol, sizeof f);
    for (int i = 0; i < N; i += 8)
        _mm256_storeu_ps(output + i, f(_mm256_loadu_ps(input + i)));
}

__attribute__((target("avx512f"))) static void run_16(const candidate *self) {
    __m512 (*f)(__m512);
    memcpy(&f, &self->symbol, sizeof f);
    for (int i = 0; i < N; i += 16)
        _mm512_storeu_ps(output + i, f(_mm512_loadu_ps(input + i)));
}

static int has_avx2(void) {
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
}

static int has_avx512(void) {
    return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
           __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512bw");
}

/* Adds a peer's vector function, or prints that it is missing. */
static int add_peer(candidate *c, const char *label, const char *library, const char *symbol,
                    void (*run)(const candidate *)) {
    void *opened = dlopen(library, RTLD_NOW);
    void *found = opened ? dlsym(opened, symbol) : NULL;
    if (!found) {
        printf("    %-26s missing: %s of %s\n", label, symbol, library);
        return 0;
    }
    *c = (candidate){.run = run};
    snprintf(c->name, sizeof c->name, "%s", label);
    memcpy(&c->symbol, &found, sizeof found);
    return 1;
}

static int add_vector_peers(candidate *c, const char *f) {
    char symbol[64];
    int n = 0;
    if (has_avx2()) {
        snprintf(symbol, sizeof symbol, "_ZGVdN8v_%sf", f);
        n += add_peer(c + n, "libmvec avx2", "libmvec.so.1", symbol, run_8);
        snprintf(symbol, sizeof symbol, "Sleef_%sf8_u10avx2", f);
        n += add_peer(c + n, "SLEEF avx2", "libsleef.so.3", symbol, run_8);
    }
    if (has_avx512()) {
        snprintf(symbol, sizeof symbol, "_ZGVeN16v_%sf", f);
        n += add_peer(c + n, "libmvec avx512", "libmvec.so.1", symbol, run_16);
        snprintf(symbol, sizeof symbol, "Sleef_%sf16_u10avx512f", f);
        n += add_peer(c + n, "SLEEF avx512", "libsleef.so.3", symbol, run_16);
    }
    return n;
}

#else

static int add_vector_peers(candidate *c, const char *f) {
    (void)c;
    (void)f;
    return 0;
}

#endif

static int add_own(candidate *c, const qn__maps *maps, int which) {
    qn__map_function *const map[FUNCTIONS] = {maps->exp, maps->log, maps->tanh, maps->sigmoid};
    *c = (candidate){.run = run_map, .map = map[which]};
    snprintf(c->name, sizeof c->name, "Quern %s", maps->name);
    return 1;
}

static int candidates_for(candidate *c, int which) {
    int n = add_own(c, &qn__maps_scalar, which);
    const qn__cpu_isa *isa;
    for (uint32_t i = 1; (isa = qn__cpu_isa_at(i)) != NULL; i++)
        if (isa->maps && isa->maps != qn__cpu_isa_at(i - 1)->maps && isa->here())
            n += add_own(c + n, isa->maps, which);
    if (functions[which].libm) {
        c[n] = (candidate){.name = "glibc, one at a time", .run = run_libm};
        c[n++].libm = functions[which].libm;
        n += add_vector_peers(c + n, functions[which].name);
    }
    return n;
}

/* Typical arguments of a network: within 8 of zero, and for log from 1e-3 to 1e3. */
static void fill(int which) {
    uint32_t seed = 20261121;
    for (int i = 0; i < N; i++) {
        seed = seed * 1664525u + 1013904223u;
        const float unit = (float)(seed >> 8) * 0x1p-24f;
        input[i] = functions[which].near == log ? expf(13.8f * (unit - 0.5f)) : 16.0f * unit - 8.0f;
    }
}

/* The largest error of the candidate in ulps; negative if verification fails. */
static double verify(const candidate *c, int which) {
    double worst = 0.0;
    c->run(c);
    for (int i = 0; i < N; i++) {
        const float own = functions[which].reference(input[i]);
        if (c->map && memcmp(&own, &output[i], sizeof own) != 0)
            return -1.0;
        const double right = functions[which].near((double)input[i]);
        const double ulps = fabs((double)output[i] - right) / ldexp(1.0, ilogb(right) - 23);
        worst = fmax(worst, ulps);
    }
    return worst <= 5.0 ? worst : -1.0;
}

static int by_size(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double sample(const candidate *c, long rounds) {
    const double start = seconds();
    for (long r = 0; r < rounds; r++)
        c->run(c);
    return (seconds() - start) * 1e9 / ((double)rounds * N);
}

static int run_function(int which, int samples) {
    static candidate c[CANDIDATES];
    printf("%s\n", functions[which].name);
    const int n = candidates_for(c, which);
    fill(which);
    double worst[CANDIDATES];
    long rounds[CANDIDATES];
    for (int k = 0; k < n; k++) {
        worst[k] = verify(&c[k], which);
        if (worst[k] < 0.0) {
            fprintf(stderr, "%s of %s gives wrong results\n", functions[which].name, c[k].name);
            return 1;
        }
        rounds[k] = 1 + (long)(2e6 / (sample(&c[k], 20) * N));
    }
    for (int s = 0; s < samples; s++)
        for (int k = 0; k < n; k++)
            c[k].ns[s] = sample(&c[k], rounds[k]);
    for (int k = 0; k < n; k++) {
        qsort(c[k].ns, (size_t)samples, sizeof *c[k].ns, by_size);
        printf("    %-26s %7.3f ns  (%.3f to %.3f)  %.2f ulp\n", c[k].name, c[k].ns[samples / 2],
               c[k].ns[0], c[k].ns[samples - 1], worst[k]);
    }
    return 0;
}

static void print_machine(int samples) {
    char line[256];
    FILE *info = fopen("/proc/cpuinfo", "r");
    while (info && fgets(line, sizeof line, info))
        if (strncmp(line, "model name", 10) == 0) {
            printf("%s", line);
            break;
        }
    if (info)
        fclose(info);
    printf("compiler %s, -ffp-contract=off, one thread, %d floats, %d samples\n"
           "median ns per element (fastest to slowest sample), largest error seen\n",
           __VERSION__, N, samples);
}

int main(int argc, char **argv) {
    const int samples = argc > 1 ? atoi(argv[1]) : 21;
    if (samples < 1 || samples > MOST_SAMPLES) {
        fprintf(stderr, "usage: elementary_speed [SAMPLES, 1 to %d]\n", MOST_SAMPLES);
        return 2;
    }
    print_machine(samples);
    int failed = 0;
    for (int which = 0; which < FUNCTIONS; which++)
        failed |= run_function(which, samples);
    return failed;
}
