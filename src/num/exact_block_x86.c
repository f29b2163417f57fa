/* Exact sums of blocks by AVX2. */
#define QN_LANES 4
#define QN_EXTRACT __attribute__((target("avx2")))
#include "num/exact_block_parts.h"

#if defined(__x86_64__)

#include "num/exact_extract.h"

QN_EXTRACT int qn__exact_extract_avx2(const double *x, size_t count,
                                      double level[QN__EXACT_LEVELS]) {
    return extract_block(x, count, level);
}

int qn__exact_avx2_here(void) { return __builtin_cpu_supports("avx2") != 0; }

#else

int qn__exact_extract_avx2(const double *x, size_t count, double level[QN__EXACT_LEVELS]) {
    (void)x, (void)count, (void)level;
    return 0;
}

int qn__exact_avx2_here(void) { return 0; }

#endif
