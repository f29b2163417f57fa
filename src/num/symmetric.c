#include "num/symmetric.h"

#include <math.h>
#include <string.h>

/* Some ten sweeps are enough. Rows whose columns are set together: those of two cache lines. */
enum { MOST_SWEEPS = 60, BLOCK = 16 };

/* Rows p and q of a matrix: the rotation of each pair of elements. */
static void rotate(uint32_t n, double *p, double *q, double c, double s) {
    for (uint32_t k = 0; k < n; ++k) {
        const double g = p[k], h = q[k];
        p[k] = c * g - s * h;
        q[k] = s * g + c * h;
    }
}

/* The rotation that makes element x of rows p and q 0. Their columns do not change. */
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
}

/* Columns from .. end - 1 become what these rows are, in rows low .. high - 1. */
static void set_columns(uint32_t n, double *a, uint32_t from, uint32_t end, uint32_t low,
                        uint32_t high) {
    for (uint32_t k = low; k < high; ++k)
        for (uint32_t q = from; q < end; ++q)
            a[(size_t)k * n + q] = a[(size_t)q * n + k];
}

static int is_lost(double small, double large) { return fabs(large) + fabs(small) == fabs(large); }

/* The pairs of row p and rows from .. end - 1. In these rows all columns are what the rows are; in
 * others the columns from .. end - 1 become so at the end. Row p has its own; column p stays. */
static int sweep_block(uint32_t n, double *a, double *v, uint32_t p, uint32_t from, uint32_t end) {
    int found = 0;
    for (uint32_t q = from; q < end; ++q) {
        double *one = a + (size_t)p * n + q;
        if (*one == 0)
            continue;
        found = 1;
        if (is_lost(*one, a[(size_t)p * n + p]) && is_lost(*one, a[(size_t)q * n + q]))
            *one = 0;
        else
            annihilate(n, a, v, p, q, *one);
        set_columns(n, a, q, q + 1, from, end);
    }
    if (found) {
        set_columns(n, a, from, end, 0, p);
        set_columns(n, a, from, end, p + 1, from);
        set_columns(n, a, from, end, end, n);
    }
    return found;
}

/* All pairs once. Returns 0 where the matrix was diagonal. */
static int sweep(uint32_t n, double *a, double *v) {
    int found = 0;
    for (uint32_t p = 0; p < n; ++p) {
        for (uint32_t q = p + 1; q < n; q += BLOCK)
            found |= sweep_block(n, a, v, p, q, n - q < BLOCK ? n : q + BLOCK);
        set_columns(n, a, p, p + 1, 0, n);
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
