/* Angles of positions (docs/exactness.md 25.13, 25.31): a frequency for each pair of channels, and
 * of each position the cosines and sines. They are computed once, by the processor, in doubles. */
#ifndef QN_NUM_TURN_H
#define QN_NUM_TURN_H

#include <stdint.h>

/* What the frequencies come from. `factor`: what they are divided by, 1: they stay. Where `context`
 * is not 0, those with at most `low` turns in so many positions are, those with at least `high` are
 * not, and others lie between (Llama 3). */
typedef struct qn__turns {
    float base, factor, low, high;
    uint32_t context;
} qn__turns;

/* The frequency of pair number `pair` of so many, at most 2^23; base at least 1. */
float qn__turn_frequency(const qn__turns *turns, uint32_t pairs, uint32_t pair);

/* The cosine and the sine of an angle from 0 to 2^22. */
void qn__turn(float angle, float *cosine, float *sine);

#endif
