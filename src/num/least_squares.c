#include "num/least_squares.h"

#include <math.h>
#include <string.h>

/* A pivot below this part of its diagonal element has lost its digits. */
#define LEAST_PIVOT 0x1p-46

/* 20.2: column j of the factor. */
static int factor_column(uint32_t n, double *a, uint32_t j) {
    const double *row = a + (size_t)j * n;
    const double least = LEAST_PIVOT * row[j];
    for (uint32_t i = j; i < n; ++i) {
        double *to = a + (size_t)i * n, sum = to[j];
        for (uint32_t k = 0; k < j; ++k)
            sum = sum - to[k] * row[k];
        if (i > j)
            to[j] = sum / row[j];
        else if (sum > least && isfinite(sum))
            to[j] = sqrt(sum);
        else
            return 0;
    }
    return 1;
}

int qn__linear_solve(uint32_t n, double *a, double *b) {
    for (uint32_t j = 0; j < n; ++j)
        if (!factor_column(n, a, j))
            return 0;
    for (uint32_t i = 0; i < n; ++i) {
        const double *row = a + (size_t)i * n;
        for (uint32_t k = 0; k < i; ++k)
            b[i] = b[i] - row[k] * b[k];
        b[i] = b[i] / row[i];
    }
    for (uint32_t i = n; i-- > 0;) {
        for (uint32_t k = i + 1; k < n; ++k)
            b[i] = b[i] - a[(size_t)k * n + i] * b[k];
        b[i] = b[i] / a[(size_t)i * n + i];
    }
    return 1;
}

/* One coefficient's minimum, the others being as they are. Returns how far it moved. */
static double minimise_one(const qn__lasso *l, uint32_t i) {
    const double *row = l->gram + (size_t)i * l->n;
    const double before = l->w[i], slope = (l->products[i] - l->slopes[i]) + row[i] * before;
    const double size = fabs(slope) - l->l1;
    const double after = size > 0 ? copysign(size, slope) / row[i] : 0;
    const double step = after - before;
    if (step != 0)
        for (uint32_t k = 0; k < l->n; ++k)
            l->slopes[k] = l->slopes[k] + step * row[k];
    l->w[i] = after;
    return fabs(step);
}

/* 20.3: the duality gap. */
static double gap_of(const qn__lasso *l) {
    double fitted = 0, labels = 0, sizes = 0, largest = 0;
    for (uint32_t i = 0; i < l->n; ++i) {
        fitted = fitted + l->w[i] * l->slopes[i];
        labels = labels + l->w[i] * l->products[i];
        sizes = sizes + fabs(l->w[i]);
        largest = fmax(largest, fabs(l->products[i] - l->slopes[i]));
    }
    const double rest = (l->square + fitted) - 2 * labels;
    const double part = largest > l->l1 ? l->l1 / largest : 1;
    const double both = 0.5 * (rest + rest * (part * part));
    return (both + l->l1 * sizes) - part * (l->square - labels);
}

void qn__lasso_descend(qn__lasso *l) {
    const uint32_t most = l->iterations;
    const double bound = l->tolerance * l->square;
    memset(l->w, 0, l->n * sizeof *l->w);
    memset(l->slopes, 0, l->n * sizeof *l->slopes);
    l->converged = 0;
    for (l->iterations = 1;; ++l->iterations) {
        double moved = 0, largest = 0;
        for (uint32_t i = 0; i < l->n; ++i) {
            if (!(l->gram[(size_t)i * l->n + i] > 0))
                continue; /* a column of zeros */
            moved = fmax(moved, minimise_one(l, i));
            largest = fmax(largest, fabs(l->w[i]));
        }
        if (moved <= l->tolerance * largest || l->iterations >= most) {
            l->gap = gap_of(l);
            l->converged = l->gap <= bound;
        }
        if (l->converged || l->iterations >= most)
            return;
    }
}
