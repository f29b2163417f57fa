#include "num/symmetric.h"

#include <math.h>
#include <string.h>

enum { MOST_SWEEPS = 60 }; /* some ten are enough */

/* Rows p and q of a matrix: the rotation of each pair of elements. */
static void rotate(uint32_t n, double *p, double *q, double c, double s) {
    for (uint32_t k = 0; k < n; ++k) {
        const double g = p[k], h = q[k];
        p[k] = c * g - s * h;
        q[k] = s * g + c * h;
    }
}

/* The rotation that makes element x of rows p and q 0. */
static void annihilate(uint32_t n, double *a, double *v, uint32_t p, uint32_t q, double x) {
    double *rows[2] = {a + (size_t)p * n, a + (size_t)q * n};
    const double low = rows[0][p], high = rows[1][q];
    const double ratio = (high - low) / (2 * x);
    const double size = 1 / (fabs(ratio) + sqrt(ratio * ratio + 1));
    const double t = ratio < 0 ? -size : size;
    const double c = 1 / sqrt(t * t + 1), s = t * c;
    rotate(n, rows[0], rows[1], c, s);
    rotate(n, v + (size_t)p * n, v + (size_t)q * n, c, s);
    rows[0][p] = low - t * x;
    rows[1][q] = high + t * x;
    rows[0][q] = rows[1][p] = 0;
    for (uint32_t k = 0; k < n; ++k) {
        a[(size_t)k * n + p] = rows[0][k];
        a[(size_t)k * n + q] = rows[1][k];
    }
}

static int is_lost(double small, double large) { return fabs(large) + fabs(small) == fabs(large); }

/* All pairs once. Returns 0 where the matrix was diagonal. */
static int sweep(uint32_t n, double *a, double *v) {
    int found = 0;
    for (uint32_t p = 0; p < n; ++p)
        for (uint32_t q = p + 1; q < n; ++q) {
            double *one = a + (size_t)p * n + q, *other = a + (size_t)q * n + p;
            if (*one == 0)
                continue;
            found = 1;
            if (is_lost(*one, a[(size_t)p * n + p]) && is_lost(*one, a[(size_t)q * n + q]))
                *one = *other = 0;
            else
                annihilate(n, a, v, p, q, *one);
        }
    return found;
}

void qn__symmetric_solve(uint32_t n, double *a, double *v) {
    memset(v, 0, (size_t)n * n * sizeof *v);
    for (uint32_t i = 0; i < n; ++i)
        v[(size_t)i * n + i] = 1;
    for (int i = 0; i < MOST_SWEEPS && sweep(n, a, v); ++i)
        continue;
}
