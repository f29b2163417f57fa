/* Sums of floats of like exponents as integers; moments.c and moments_x86.c include it.
 *
 * A block is at most QN__MOMENT_BLOCK floats. Those with an exponent from `least` to `least` + 7
 * are integers of at most 31 bits with the unit 2^(least - 150). */
#ifndef QN_NUM_MOMENTS_BLOCK_H
#define QN_NUM_MOMENTS_BLOCK_H

#include <stddef.h>
#include <stdint.h>

enum { QN__MOMENT_BLOCK = 4096 };

/* Sums of integers x, of the digits of x*x, and of those of x*x*x with the sign of x: of 32 bits,
 * the lowest first. */
typedef struct qn__moment_group {
    int64_t first;
    uint64_t second[2];
    int64_t third[3];
} qn__moment_group;

/* Adds floats of a block whose exponent is from `least` to the block's greatest, at most least + 7,
 * and returns how many of `count` it went through: all, or all but the last `count` % 8. Bit i % 8
 * of outside[i / 8] becomes 1 where float i has a lower exponent, and was left out. Call it only if
 * qn__moment_avx2_here is 1. */
size_t qn__moment_add_avx2(qn__moment_group *group, const float *values, size_t count,
                           uint32_t least, uint8_t *outside);
int qn__moment_avx2_here(void);

#endif
