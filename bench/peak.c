/*
 * peak: the float32 fma rate of this machine in registers.
 *
 *     peak [--json] [THREADS]
 *
 * For every instruction set of the processor (scalar, AVX2, AVX-512, NEON) and for every number of
 * threads from 1 to THREADS (default: all allowed processors), a line has the median GFLOP/s of
 * several samples and their spread. An fma counts as two operations. The other benchmarks divide by
 * this number, so that a result shows the distance from the ceiling and not the speed of the
 * machine.
 *
 * Each kernel runs independent chains in registers, at least latency x ports of them; with fewer
 * the result would be limited by the latency. Twelve fill x86 (4 or 5 cycles x 2 ports) and fit
 * AVX2's sixteen registers; NEON gets sixteen (4 cycles x 4 ports).
 *
 * A line "amx" follows if the system permits AMX: signed bytes multiplied and added to 32 bits,
 * tile by tile with four independent sums, in billions of operations per second. */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#if defined(__x86_64__)
#include <cpuid.h>
#include <immintrin.h>
#include <sys/syscall.h>
#include <unistd.h>
#elif defined(__aarch64__)
#include <arm_neon.h>
#endif

enum { SAMPLES = 7, MAX_THREADS = 1024 };

/* A kernel does `rounds` rounds of `chains * lanes` fma and returns a value that depends on all of
 * them, so that the compiler cannot remove any. */
typedef float kernel_fn(long rounds);

typedef struct fma_kernel {
    const char *name;
    kernel_fn *run;
    int chains;
    int lanes; /* float32 values in one register; byte products in a product of tiles */
} fma_kernel;

/* The part of one thread in one sample. */
typedef struct part {
    pthread_t thread;
    pthread_barrier_t *start;
    const fma_kernel *kernel;
    long rounds;
    size_t cpu;
    double begun, ended; /* seconds of the monotonic clock */
    float result;
} part;

/* The factor is just below one and the addend small: the chains converge and stay normal numbers,
 * because some processors are slow with others. */
static const float factor = 0.999F;
static const float addend = 0.001F;

#if defined(__x86_64__)

__attribute__((target("fma"))) static float peak_scalar(long rounds) {
    const __m128 m = _mm_set_ss(factor);
    const __m128 c = _mm_set_ss(addend);
    __m128 a0 = c, a1 = c, a2 = c, a3 = c, a4 = c, a5 = c;
    __m128 a6 = c, a7 = c, a8 = c, a9 = c, a10 = c, a11 = c;
    for (long i = 0; i < rounds; i++) {
        a0 = _mm_fmadd_ss(a0, m, c);
        a1 = _mm_fmadd_ss(a1, m, c);
        a2 = _mm_fmadd_ss(a2, m, c);
        a3 = _mm_fmadd_ss(a3, m, c);
        a4 = _mm_fmadd_ss(a4, m, c);
        a5 = _mm_fmadd_ss(a5, m, c);
        a6 = _mm_fmadd_ss(a6, m, c);
        a7 = _mm_fmadd_ss(a7, m, c);
        a8 = _mm_fmadd_ss(a8, m, c);
        a9 = _mm_fmadd_ss(a9, m, c);
        a10 = _mm_fmadd_ss(a10, m, c);
        a11 = _mm_fmadd_ss(a11, m, c);
        /* Equal chains could be merged: the asm hides their values from the compiler. */
        __asm__ volatile(""
                         : "+x"(a0), "+x"(a1), "+x"(a2), "+x"(a3), "+x"(a4), "+x"(a5), "+x"(a6),
                           "+x"(a7), "+x"(a8), "+x"(a9), "+x"(a10), "+x"(a11));
    }
    a0 = a0 + a1 + a2 + a3 + a4 + a5 + a6 + a7 + a8 + a9 + a10 + a11;
    return _mm_cvtss_f32(a0);
}

__attribute__((target("avx2,fma"))) static float peak_avx2(long rounds) {
    const __m256 m = _mm256_set1_ps(factor);
    const __m256 c = _mm256_set1_ps(addend);
    __m256 a0 = c, a1 = c, a2 = c, a3 = c, a4 = c, a5 = c;
    __m256 a6 = c, a7 = c, a8 = c, a9 = c, a10 = c, a11 = c;
    for (long i = 0; i < rounds; i++) {
        a0 = _mm256_fmadd_ps(a0, m, c);
        a1 = _mm256_fmadd_ps(a1, m, c);
        a2 = _mm256_fmadd_ps(a2, m, c);
        a3 = _mm256_fmadd_ps(a3, m, c);
        a4 = _mm256_fmadd_ps(a4, m, c);
        a5 = _mm256_fmadd_ps(a5, m, c);
        a6 = _mm256_fmadd_ps(a6, m, c);
        a7 = _mm256_fmadd_ps(a7, m, c);
        a8 = _mm256_fmadd_ps(a8, m, c);
        a9 = _mm256_fmadd_ps(a9, m, c);
        a10 = _mm256_fmadd_ps(a10, m, c);
        a11 = _mm256_fmadd_ps(a11, m, c);
        __asm__ volatile(""
                         : "+x"(a0), "+x"(a1), "+x"(a2), "+x"(a3), "+x"(a4), "+x"(a5), "+x"(a6),
                           "+x"(a7), "+x"(a8), "+x"(a9), "+x"(a10), "+x"(a11));
    }
    a0 = a0 + a1 + a2 + a3 + a4 + a5 + a6 + a7 + a8 + a9 + a10 + a11;
    return _mm256_cvtss_f32(a0);
}

__attribute__((target("avx512f"))) static float peak_avx512(long rounds) {
    const __m512 m = _mm512_set1_ps(factor);
    const __m512 c = _mm512_set1_ps(addend);
    __m512 a0 = c, a1 = c, a2 = c, a3 = c, a4 = c, a5 = c;
    __m512 a6 = c, a7 = c, a8 = c, a9 = c, a10 = c, a11 = c;
    for (long i = 0; i < rounds; i++) {
        a0 = _mm512_fmadd_ps(a0, m, c);
        a1 = _mm512_fmadd_ps(a1, m, c);
        a2 = _mm512_fmadd_ps(a2, m, c);
        a3 = _mm512_fmadd_ps(a3, m, c);
        a4 = _mm512_fmadd_ps(a4, m, c);
        a5 = _mm512_fmadd_ps(a5, m, c);
        a6 = _mm512_fmadd_ps(a6, m, c);
        a7 = _mm512_fmadd_ps(a7, m, c);
        a8 = _mm512_fmadd_ps(a8, m, c);
        a9 = _mm512_fmadd_ps(a9, m, c);
        a10 = _mm512_fmadd_ps(a10, m, c);
        a11 = _mm512_fmadd_ps(a11, m, c);
        __asm__ volatile(""
                         : "+v"(a0), "+v"(a1), "+v"(a2), "+v"(a3), "+v"(a4), "+v"(a5), "+v"(a6),
                           "+v"(a7), "+v"(a8), "+v"(a9), "+v"(a10), "+v"(a11));
    }
    a0 = a0 + a1 + a2 + a3 + a4 + a5 + a6 + a7 + a8 + a9 + a10 + a11;
    return _mm512_cvtss_f32(a0);
}

__attribute__((target("amx-tile,amx-int8"))) static float peak_amx(long rounds) {
    static const uint8_t ones[1024] = {1};
    int32_t sums[256];
    uint8_t shape[64] = {1};
    for (int tile = 0; tile < 8; tile++) {
        shape[16 + 2 * tile] = 64; /* bytes of a row */
        shape[48 + tile] = 16;     /* rows */
    }
    _tile_loadconfig(shape);
    _tile_zero(0);
    _tile_zero(1);
    _tile_zero(2);
    _tile_zero(3);
    _tile_loadd(4, ones, 64);
    _tile_loadd(5, ones, 64);
    _tile_loadd(6, ones, 64);
    _tile_loadd(7, ones, 64);
    for (long i = 0; i < rounds; i++) {
        _tile_dpbssd(0, 4, 6);
        _tile_dpbssd(1, 4, 7);
        _tile_dpbssd(2, 5, 6);
        _tile_dpbssd(3, 5, 7);
    }
    _tile_stored(0, sums, 64);
    _tile_release();
    return (float)sums[0];
}

/* Whether the processor has AMX for bytes, and the system permits its use. */
static bool has_amx(void) {
    enum { REQUEST = 0x1023, TILES = 18, INT8 = 1 << 25 };
    unsigned a, b, c, d;
    return __get_cpuid_count(7, 0, &a, &b, &c, &d) && (d & INT8) &&
           syscall(SYS_arch_prctl, REQUEST, TILES) == 0;
}

#elif defined(__aarch64__)

static float peak_neon(long rounds) {
    const float32x4_t m = vdupq_n_f32(factor);
    const float32x4_t c = vdupq_n_f32(addend);
    float32x4_t a0 = c, a1 = c, a2 = c, a3 = c, a4 = c, a5 = c, a6 = c, a7 = c;
    float32x4_t a8 = c, a9 = c, a10 = c, a11 = c, a12 = c, a13 = c, a14 = c, a15 = c;
    for (long i = 0; i < rounds; i++) {
        a0 = vfmaq_f32(a0, a0, m);
        a1 = vfmaq_f32(a1, a1, m);
        a2 = vfmaq_f32(a2, a2, m);
        a3 = vfmaq_f32(a3, a3, m);
        a4 = vfmaq_f32(a4, a4, m);
        a5 = vfmaq_f32(a5, a5, m);
        a6 = vfmaq_f32(a6, a6, m);
        a7 = vfmaq_f32(a7, a7, m);
        a8 = vfmaq_f32(a8, a8, m);
        a9 = vfmaq_f32(a9, a9, m);
        a10 = vfmaq_f32(a10, a10, m);
        a11 = vfmaq_f32(a11, a11, m);
        a12 = vfmaq_f32(a12, a12, m);
        a13 = vfmaq_f32(a13, a13, m);
        a14 = vfmaq_f32(a14, a14, m);
        a15 = vfmaq_f32(a15, a15, m);
        __asm__ volatile(""
                         : "+w"(a0), "+w"(a1), "+w"(a2), "+w"(a3), "+w"(a4), "+w"(a5), "+w"(a6),
                           "+w"(a7));
        __asm__ volatile(""
                         : "+w"(a8), "+w"(a9), "+w"(a10), "+w"(a11), "+w"(a12), "+w"(a13),
                           "+w"(a14), "+w"(a15));
    }
    return vgetq_lane_f32(a0 + a1 + a2 + a3 + a4 + a5 + a6 + a7, 0) +
           vgetq_lane_f32(a8 + a9 + a10 + a11 + a12 + a13 + a14 + a15, 0);
}

static float peak_scalar(long rounds) {
    float a0 = addend, a1 = addend, a2 = addend, a3 = addend, a4 = addend, a5 = addend;
    float a6 = addend, a7 = addend, a8 = addend, a9 = addend, a10 = addend, a11 = addend;
    for (long i = 0; i < rounds; i++) {
        a0 = __builtin_fmaf(a0, factor, addend);
        a1 = __builtin_fmaf(a1, factor, addend);
        a2 = __builtin_fmaf(a2, factor, addend);
        a3 = __builtin_fmaf(a3, factor, addend);
        a4 = __builtin_fmaf(a4, factor, addend);
        a5 = __builtin_fmaf(a5, factor, addend);
        a6 = __builtin_fmaf(a6, factor, addend);
        a7 = __builtin_fmaf(a7, factor, addend);
        a8 = __builtin_fmaf(a8, factor, addend);
        a9 = __builtin_fmaf(a9, factor, addend);
        a10 = __builtin_fmaf(a10, factor, addend);
        a11 = __builtin_fmaf(a11, factor, addend);
        __asm__ volatile(""
                         : "+w"(a0), "+w"(a1), "+w"(a2), "+w"(a3), "+w"(a4), "+w"(a5), "+w"(a6),
                           "+w"(a7), "+w"(a8), "+w"(a9), "+w"(a10), "+w"(a11));
    }
    return a0 + a1 + a2 + a3 + a4 + a5 + a6 + a7 + a8 + a9 + a10 + a11;
}

#endif

/* Fills `list` with the kernels that this processor can run, widest last; returns how many. */
static int kernels_here(fma_kernel list[5]) {
    int count = 0;
#if defined(__x86_64__)
    if (__builtin_cpu_supports("fma"))
        list[count++] = (fma_kernel){"scalar", peak_scalar, 12, 1};
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
        list[count++] = (fma_kernel){"avx2", peak_avx2, 12, 8};
    if (__builtin_cpu_supports("avx512f"))
        list[count++] = (fma_kernel){"avx512", peak_avx512, 12, 16};
    if (has_amx())
        list[count++] = (fma_kernel){"amx", peak_amx, 4, 16 * 16 * 64};
#elif defined(__aarch64__)
    list[count++] = (fma_kernel){"scalar", peak_scalar, 12, 1};
    list[count++] = (fma_kernel){"neon", peak_neon, 16, 4};
#else
    (void)list;
#endif
    return count;
}

static double seconds_now(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static void *run_part(void *argument) {
    part *mine = argument;
    cpu_set_t only;
    CPU_ZERO(&only);
    CPU_SET(mine->cpu, &only);
    pthread_setaffinity_np(pthread_self(), sizeof only, &only);
    pthread_barrier_wait(mine->start);
    mine->begun = seconds_now();
    mine->result = mine->kernel->run(mine->rounds);
    mine->ended = seconds_now();
    return NULL;
}

/* GFLOP/s of all threads together, from the first one's start to the last one's end; negative if
 * threads could not be created. */
static double sample(const fma_kernel *kernel, long rounds, int threads, const size_t *cpus) {
    pthread_barrier_t start;
    part *parts = calloc((size_t)threads, sizeof *parts);
    if (parts == NULL)
        return -1.0;
    pthread_barrier_init(&start, NULL, (unsigned)threads);
    for (int t = 0; t < threads; t++) {
        parts[t] = (part){.start = &start, .kernel = kernel, .rounds = rounds, .cpu = cpus[t]};
        if (pthread_create(&parts[t].thread, NULL, run_part, &parts[t]) != 0) {
            /* threads that wait at the barrier cannot be cancelled */
            fprintf(stderr, "peak: thread %d cannot be started: %s\n", t, strerror(errno));
            exit(1);
        }
    }
    double begun = 0.0, ended = 0.0;
    for (int t = 0; t < threads; t++) {
        pthread_join(parts[t].thread, NULL);
        begun = t == 0 || parts[t].begun < begun ? parts[t].begun : begun;
        ended = parts[t].ended > ended ? parts[t].ended : ended;
    }
    pthread_barrier_destroy(&start);
    free(parts);
    double operations = 2.0 * kernel->chains * kernel->lanes * (double)rounds * threads;
    return operations / (ended - begun) / 1e9;
}

static int ascending(const void *left, const void *right) {
    double a = *(const double *)left, b = *(const double *)right;
    return (a > b) - (a < b);
}

/* The number of rounds that takes about a tenth of a second; the warm-up also raises the clock
 * rate. */
static long rounds_for(const fma_kernel *kernel) {
    long rounds = 1 << 16;
    for (;;) {
        double begun = seconds_now();
        volatile float sink = kernel->run(rounds);
        (void)sink;
        double took = seconds_now() - begun;
        if (took > 0.05)
            return (long)((double)rounds * 0.1 / took);
        rounds *= 2;
    }
}

static void report(const fma_kernel *kernel, int threads, const size_t *cpus, bool json) {
    double rates[SAMPLES];
    long rounds = rounds_for(kernel);
    for (int s = 0; s < SAMPLES; s++)
        rates[s] = sample(kernel, rounds, threads, cpus);
    qsort(rates, SAMPLES, sizeof rates[0], ascending);
    double lowest = rates[0], median = rates[SAMPLES / 2], highest = rates[SAMPLES - 1];
    if (json)
        printf("{\"set\": \"%s\", \"threads\": %d, \"gflops\": %.2f, \"lowest\": %.2f, "
               "\"highest\": %.2f}\n",
               kernel->name, threads, median, lowest, highest);
    else
        printf("%-7s %4d threads %10.1f Gop/s  (%.1f to %.1f)\n", kernel->name, threads, median,
               lowest, highest);
    fflush(stdout);
}

/* The processors that this process may use, at most MAX_THREADS; returns how many. */
static int allowed_cpus(size_t cpus[MAX_THREADS]) {
    cpu_set_t set;
    int count = 0;
    CPU_ZERO(&set);
    if (sched_getaffinity(0, sizeof set, &set) != 0)
        return 0;
    for (size_t cpu = 0; cpu < CPU_SETSIZE && count < MAX_THREADS; cpu++) {
        if (CPU_ISSET(cpu, &set))
            cpus[count++] = cpu;
    }
    return count;
}

int main(int argc, char **argv) {
    static size_t cpus[MAX_THREADS];
    int available = allowed_cpus(cpus);
    int most = available;
    bool json = false;
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--json") == 0) {
            json = true;
            continue;
        }
        char *end;
        long wanted = strtol(argv[i], &end, 10);
        if (*end != '\0' || wanted < 1 || wanted > available) {
            fprintf(stderr, "peak [--json] [THREADS]: THREADS is 1 to %d here, not '%s'\n",
                    available, argv[i]);
            return 2;
        }
        most = (int)wanted;
    }
    fma_kernel list[5];
    int count = kernels_here(list);
    if (count == 0)
        fprintf(stderr, "peak: no fma kernel for this processor; nothing was measured\n");
    for (int k = 0; k < count; k++) {
        for (int threads = 1; threads <= most; threads++)
            report(&list[k], threads, cpus, json);
    }
    return count == 0;
}
