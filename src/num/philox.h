/* Philox4x32-10 (Salmon, Moraes, Dror and Shaw, "Parallel random numbers: as easy as 1, 2, 3",
 * 2011): random words that are a function of a counter and a key, so that they can be drawn in any
 * order. docs/exactness.md section 3. */
#ifndef QN_NUM_PHILOX_H
#define QN_NUM_PHILOX_H

#include <stdint.h>

/* The purposes of words; part of the counter. */
enum {
    QN__PURPOSE_INIT = 1,
    QN__PURPOSE_ORDER = 2,
    QN__PURPOSE_DROPOUT = 3,
    QN__PURPOSE_SPLIT = 4,
    QN__PURPOSE_DIGITS = 5,
    QN__PURPOSE_AUGMENT = 6,
    QN__PURPOSE_IMPORTANCE = 7, /* of reports: no result depends on it */
    QN__PURPOSE_CENTRES = 9,    /* the first ones of k-means */
    QN__PURPOSE_KERNEL = 10,    /* user kernels: kernels/runtime/draws.inc has the number, too */
    QN__PURPOSE_NEW_LAST = 11,
    QN__PURPOSE_TOKENS = 12, /* that are generated */
    QN__PURPOSE_LENGTHS = 13 /* the order of batches of texts of like lengths */
};

void qn__philox(const uint32_t counter[4], const uint32_t key[2], uint32_t out[4]);

/* The four words word(purpose, layer, epoch, item, 4 * quad .. 4 * quad + 3) of 3.2; layer <
 * 1024, item < 2^48, quad < 2^30. */
void qn__words(uint64_t seed, uint32_t purpose, uint32_t layer, uint32_t epoch, uint64_t item,
               uint32_t quad, uint32_t out[4]);

#endif
