/* The part of the sums of blocks that is compiled for several instruction sets. */
#ifndef QN_NUM_EXACT_BLOCK_PARTS_H
#define QN_NUM_EXACT_BLOCK_PARTS_H

#include <stddef.h>

enum { QN__EXACT_LEVELS = 3, QN__EXACT_STEP = 16, QN__EXACT_BLOCK = 1024 };

/* Sets `level` to numbers whose exact sum is that of x[0] to x[count - 1], and returns 1. Returns 0
 * where the numbers differ too much in magnitude or are not finite. `count` is a multiple of
 * QN__EXACT_STEP and at most QN__EXACT_BLOCK. Call the second one only if qn__exact_avx2_here is 1.
 */
int qn__exact_extract(const double *x, size_t count, double level[QN__EXACT_LEVELS]);
int qn__exact_extract_avx2(const double *x, size_t count, double level[QN__EXACT_LEVELS]);
int qn__exact_avx2_here(void);

#endif
