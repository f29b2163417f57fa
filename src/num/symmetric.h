/* Eigenvalues of a symmetric matrix in scalar double, in the order of operations that
 * docs/exactness.md 20.5 states. */
#ifndef QN_NUM_SYMMETRIC_H
#define QN_NUM_SYMMETRIC_H

#include <stdint.h>

/* Jacobi's method. Of `a` (n x n, row after row) the diagonal becomes the eigenvalues, in no order;
 * row i of `v` (n x n) the vector of eigenvalue i, of length 1. Takes some ten times 6 n^3
 * operations. */
void qn__symmetric_solve(uint32_t n, double *a, double *v);

#endif
