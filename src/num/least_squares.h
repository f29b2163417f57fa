/* Linear algebra of small symmetric matrices in scalar double, in the order of operations that
 * docs/exactness.md 20 states. Matrices are n x n, row after row. */
#ifndef QN_NUM_LEAST_SQUARES_H
#define QN_NUM_LEAST_SQUARES_H

#include <stdint.h>

/* Solves a x = b by Cholesky's method. `a` is overwritten; b becomes x. Returns 0 where a pivot is
 * too small: a is not positive definite. */
int qn__linear_solve(uint32_t n, double *a, double *b);

/* Lasso on sums (20.3): minimises w G w / 2 - g w + l1 |w|. */
typedef struct qn__lasso {
    uint32_t n;
    const double *gram, *products; /* G (n x n) and g */
    double square;                 /* of the labels, as G is of the inputs */
    double l1, tolerance;
    uint32_t iterations; /* in: at most so many; out: those that were done */
    double *w, *slopes;  /* n each: the result; scratch */
    double gap;
    int converged;
} qn__lasso;

/* From w = 0. */
void qn__lasso_descend(qn__lasso *lasso);

#endif
