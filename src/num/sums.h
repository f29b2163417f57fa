/* Sums that do not depend on order: float32 partials become integers of a fixed unit, and integer
 * addition is associative. docs/exactness.md 7.4, 8.7, 9.1. */
#ifndef QN_NUM_SUMS_H
#define QN_NUM_SUMS_H

#include "num/program.h"

/* The unit of losses is 2^-32; a grain's loss must stay below 2^29. */
#define QN__LOSS_UNIT 0x1p32f
#define QN__LOSS_LIMIT 0x1p29f

/* The nearest integer, ties to even. |x| < 2^62. */
int64_t qn__to_units(float x);

/* RN(S): the nearest float, ties to even. */
float qn__from_units(int64_t sum);

/* Adds a tally to another. Returns 0, or -1 (with *to unchanged) when the sum of the losses does
 * not fit 64 bits. */
int qn__tally_add(qn__tally *to, const qn__tally *more);

/* The power of two below which every partial must be, for batches of `grains` grains: 2^(62 -
 * max(h, 1)). */
float qn__partial_limit(uint64_t grains);

#endif
