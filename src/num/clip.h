/* Clipping by the norm of the gradient: the exact sum of the squares of all sums, its root, and the
 * factor of the step. docs/exactness.md 17.4. */
#ifndef QN_NUM_CLIP_H
#define QN_NUM_CLIP_H

#include "num/program.h"

/* An integer of 192 bits, the lowest word first: 2^63 squares of 2^126 at most fit. */
typedef struct qn__squares {
    uint64_t word[3];
} qn__squares;

/* Adds the squares of `count` integers. They may be added in any order, and in parts. */
void qn__squares_add(qn__squares *squares, const int64_t *sums, uint64_t count);

/* The square root, rounded once. */
float qn__squares_root(const qn__squares *squares);

/* Sets update->gradient for the sums of a step, sums[program->parameters], where the program clips
 * and their norm is above program->clip. */
void qn__update_clip(const qn__program *program, const int64_t *sums, qn__update *update);

#endif
