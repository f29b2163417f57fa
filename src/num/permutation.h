/* A keyed permutation of 0 .. n-1 that can be evaluated at any position: the order of the items in
 * an epoch, and the choice of validation items. docs/exactness.md section 4. */
#ifndef QN_NUM_PERMUTATION_H
#define QN_NUM_PERMUTATION_H

#include <stdint.h>

typedef struct qn__permutation {
    uint64_t n;
    uint32_t low_bits, high_bits; /* widths of the two halves of the Feistel network */
    uint32_t key[8];
} qn__permutation;

/* 1 <= n <= 2^48. */
void qn__permutation_begin(qn__permutation *p, uint64_t n, uint64_t seed, uint32_t purpose,
                           uint32_t epoch);

/* The image of `position` < n. */
uint64_t qn__permutation_at(const qn__permutation *p, uint64_t position);

/* The images of `count` positions from `first`, all of them below n. Several times as fast as one
 * after the other. */
void qn__permutation_run(const qn__permutation *p, uint64_t first, uint32_t count, uint64_t *image);

/* The inverse: the positions whose images are `first` and the next ones, all below n. */
void qn__permutation_find(const qn__permutation *p, uint64_t first, uint32_t count,
                          uint64_t *position);

#endif
