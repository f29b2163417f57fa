/* Eigenvalues of a symmetric matrix in scalar double, in the order of operations that
 * docs/exactness.md 20.5 states. */
#ifndef QN_NUM_SYMMETRIC_H
#define QN_NUM_SYMMETRIC_H

#include <stdint.h>

/* Jacobi's method. Of `a` (n x n, row after row) the diagonal becomes the eigenvalues, in no
 * particular order. Row i of `v` (n x n) becomes the eigenvector of eigenvalue i, of length 1.
 * Takes about 60 n^3 operations. */
void qn__symmetric_solve(uint32_t n, double *a, double *v);

#endif
