/* The largest error of each elementary function over all floats, proved.
 *
 * Use: elementary_full [ISA [FUNCTION [THREADS]]]. ISA is scalar, avx2, avx512, neon or best (the
 * default), FUNCTION a name or all, THREADS 2 by default. Takes some minutes for each function. The
 * exit status is 1 if an error is above the contract's limit.
 *
 * Each of the 2^32 results is compared with a double from libm, whose error is far below 1e-5 ulp
 * of a float. If an error comes within 1e-5 ulp of the largest so far, MPFR computes it exactly. So
 * the maximum printed is MPFR's, and no input can exceed it unless libm is wrong by more than 1e-5
 * ulp. That is checked with MPFR on one input in 4096, selected by a hash.
 *
 * The digest covers all 2^32 results of a function, with every NaN counted as 7fc00000. Equal
 * digests on two instruction sets mean equal bits for every input. It is the sum modulo 2^64, over
 * blocks of 65,536 consecutive bit patterns, of the block's FNV-like chain. So the number of
 * threads does not matter. */
#include <stdio.h>

#ifdef QN_HAVE_MPFR

#include "device/cpu/cpu_isa.h"
#include "num/elementary_mpfr.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { BLOCK = 65536 };

/* The maximum error of libm's double, in ulps of a float. */
static const double margin = 1e-5;

typedef struct sweep {
    const qn__elementary *f;
    qn__map_function *map;
    atomic_uint next_block;
    pthread_mutex_t lock; /* protects the members below */
    uint64_t digest;
    uint64_t settled;   /* possible maxima that MPFR checked */
    uint64_t sampled;   /* inputs sampled by the hash */
    uint64_t misjudged; /* sampled inputs with a libm error above the margin */
    double worst;
    float worst_at;
} sweep;

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

/* Ranges in which f is constant or its argument, with an error below 0.2 ulp: sets that value and
 * returns 1. The ranges follow from the Taylor series at zero and from the limits; they hold half
 * of all floats. */
static int trivial(const qn__elementary *f, float x, float *value) {
    *value = x;
    if (isnan(x))
        return 1;
    if (f->exact == mpfr_tanh) {
        *value = fabsf(x) >= 10.0f ? copysignf(1.0f, x) : x;
        return fabsf(x) >= 10.0f || fabsf(x) < 0x1p-14f;
    }
    if (f->exact == mpfr_log) {
        *value = NAN;
        return x < 0.0f;
    }
    const int is_exp = f->exact == mpfr_exp;
    if (!is_exp && f->exact != qn__mpfr_sigmoid)
        return 0;
    if (fabsf(x) < 0x1p-27f)
        *value = is_exp ? 1.0f : 0.5f;
    else if (x <= -105.0f)
        *value = 0.0f;
    else if (x >= 89.0f)
        *value = is_exp ? INFINITY : 1.0f;
    else
        return 0;
    return 1;
}

/* The error of y at x by libm, at most the margin below the true one. The binade is that of a
 * slightly smaller number, because the exact result may round down where libm's would not. */
static double estimate(const qn__elementary *f, float x, float y) {
    float value;
    if (trivial(f, x, &value) && to_bits(value) == to_bits(y))
        return 0.0;
    const double right = f->near((double)x);
    if (!isfinite(y) || !isfinite((float)right))
        return INFINITY;
    const double below = fabs(right) * (1.0 - 0x1p-23);
    uint64_t bits;
    memcpy(&bits, &below, sizeof bits);
    const int exponent = (int)(bits >> 52) - 1023;
    const int binade = exponent < f->binade ? f->binade : exponent;
    const uint64_t scale = (uint64_t)(1023 + 23 - binade) << 52;
    double per_ulp;
    memcpy(&per_ulp, &scale, sizeof per_ulp);
    return fabs((double)y - right) * per_ulp;
}

/* One block: its digest, and its worst input, if an error up to `worst` is known already. */
static void run_block(sweep *s, uint32_t block, sweep *mine) {
    static _Thread_local float x[BLOCK], y[BLOCK];
    const uint32_t first = block * BLOCK;
    for (uint32_t i = 0; i < BLOCK; i++)
        x[i] = from_bits(first + i);
    s->map(BLOCK, x, y);

    uint64_t chain = 0xcbf29ce484222325u ^ block;
    for (uint32_t i = 0; i < BLOCK; i++) {
        chain = (chain ^ to_bits(y[i])) * 0x100000001b3u;
        chain ^= chain >> 29;
        const double about = estimate(s->f, x[i], y[i]);
        const int in_sample = (first + i) * 0x9e3779b1u >> 20 == 0;
        if (!in_sample && about + margin < mine->worst)
            continue;
        const double ulps = qn__ulps_wrong(s->f, x[i], y[i]);
        mine->sampled += (uint64_t)in_sample;
        mine->settled += (uint64_t)!in_sample;
        float value;
        const double slack = trivial(s->f, x[i], &value) ? 0.2 : margin;
        mine->misjudged += in_sample && ulps > about + slack;
        if (ulps > mine->worst) {
            mine->worst = ulps;
            mine->worst_at = x[i];
        }
    }
    mine->digest += chain;
}

static void *work(void *argument) {
    sweep *s = argument;
    sweep mine = {.worst = 0.5};
    for (;;) {
        /* In scattered order, so that large errors are found early and few inputs need MPFR. */
        const uint32_t turn = atomic_fetch_add(&s->next_block, 1);
        if (turn >= 65536)
            break;
        run_block(s, turn * 40503u % 65536, &mine);
    }
    pthread_mutex_lock(&s->lock);
    s->digest += mine.digest;
    s->settled += mine.settled;
    s->sampled += mine.sampled;
    s->misjudged += mine.misjudged;
    if (mine.worst > s->worst) {
        s->worst = mine.worst;
        s->worst_at = mine.worst_at;
    }
    pthread_mutex_unlock(&s->lock);
    mpfr_free_cache();
    return NULL;
}

static int run_function(const qn__elementary *f, qn__map_function *map, const char *isa,
                        int threads) {
    sweep s = {.f = f, .map = map};
    pthread_mutex_init(&s.lock, NULL);
    pthread_t thread[64];
    int started = 0;
    while (started < threads - 1 && !pthread_create(&thread[started], NULL, work, &s))
        started++;
    work(&s);
    while (started > 0)
        pthread_join(thread[--started], NULL);
    pthread_mutex_destroy(&s.lock);

    printf("%-10s %-7s worst %.6f ulp at %a (%08x), limit %.1f; settled %llu, sampled %llu, "
           "misjudged %llu; digest %016llx\n",
           f->name, isa, s.worst, (double)s.worst_at, (unsigned)to_bits(s.worst_at), f->limit,
           (unsigned long long)s.settled, (unsigned long long)s.sampled,
           (unsigned long long)s.misjudged, (unsigned long long)s.digest);
    fflush(stdout);
    return s.worst > f->limit || s.misjudged > 0;
}

static const qn__maps *find_maps(const char *isa) {
    const qn__cpu_isa *found = qn__cpu_isa_find(strcmp(isa, "best") == 0 ? NULL : isa);
    return found ? found->maps : NULL;
}

int main(int argc, char **argv) {
    const char *isa = argc > 1 ? argv[1] : "best";
    const char *only = argc > 2 ? argv[2] : "all";
    const int threads = argc > 3 ? atoi(argv[3]) : 2;
    const qn__maps *maps = find_maps(isa);
    if (!maps || threads < 1 || threads > 64) {
        fprintf(stderr, "usage: elementary_full [scalar|avx2|avx512|neon|best [FUNCTION|all "
                        "[THREADS, 1 to 64]]]; this machine may lack the instruction set\n");
        return 2;
    }
#define MAP(f, none) maps->f,
    qn__map_function *const map[QN__ELEMENTARIES] = {QN__MAPS(MAP, )};
    int failed = 0;
    for (int i = 0; i < QN__ELEMENTARIES; i++)
        if (strcmp(only, "all") == 0 || strcmp(only, qn__elementaries[i].name) == 0)
            failed |= run_function(&qn__elementaries[i], map[i], maps->name, threads);
    return failed;
}

#else

int main(void) {
    fprintf(stderr, "elementary_full was built without MPFR. Install it (Debian: libmpfr-dev) and "
                    "configure again.\n");
    return 77;
}

#endif
