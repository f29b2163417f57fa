/* Sums of products by error-free extraction.
 *
 * Each product p is an exact binary64. Adding and subtracting M = 1.5 * 2^(top + 10) splits it into
 * q, a multiple of 2^(top - 42), and r = p - q, |r| <= 2^(top - 43). 1024 such q have an exact sum
 * in binary64. So have 1024 such r, where the products are multiples of 2^(top - 86). So the order
 * of the additions does not matter, and the loop may use any vectors. Blocks with a wider range
 * take the exact accumulator for each product. */
#include "num/products.h"
#include "base/binary/float_bits.h"
#include <math.h>
#include <string.h>

/* Two numbers are what every 64-bit processor has in one register. */
typedef double lanes __attribute__((vector_size(16)));
enum { LANES = 2, CHAINS = 4 };

void qn__factor_set(qn__factor *f, const float *values, size_t count) {
    uint32_t most = 0, least = 255;
    for (size_t i = 0; i < count; i++) {
        uint32_t e = qn__float_bits(values[i]) >> 23 & 0xFF;
        e += e == 0;
        most = e > most ? e : most;
        least = values[i] != 0 && e < least ? e : least;
        f->x[i] = (double)values[i];
    }
    for (size_t i = count; i < QN__PRODUCTS_BLOCK; i++)
        f->x[i] = 0;
    f->top = (int)most - 126;
    f->unit = (int)least - 150;
}

void qn__factor_square(const qn__factor *f, qn__factor *out) {
    for (size_t i = 0; i < QN__PRODUCTS_BLOCK; i++)
        out->x[i] = f->x[i] * f->x[i];
    out->top = 2 * f->top;
    out->unit = 2 * f->unit;
}

static void multiply_each(const qn__factor *x, const qn__factor *y, qn__exact_sum *sum) {
    for (size_t i = 0; i < QN__PRODUCTS_BLOCK; i++)
        if (x->x[i] != 0 && y->x[i] != 0)
            qn__exact_add(sum, x->x[i] * y->x[i]);
}

void qn__factor_multiply(const qn__factor *x, const qn__factor *y, qn__exact_sum *sum) {
    const int top = x->top + y->top;
    if (x->unit + y->unit < top - 86) {
        multiply_each(x, y, sum);
        return;
    }
    const double m = ldexp(1.5, top + 10);
    const lanes shift = {m, m};
    lanes high[CHAINS] = {{0}}, low[CHAINS] = {{0}};
    for (size_t i = 0; i < QN__PRODUCTS_BLOCK; i += LANES * CHAINS)
        for (size_t c = 0; c < CHAINS; c++) {
            lanes a, b;
            memcpy(&a, x->x + i + c * LANES, sizeof a);
            memcpy(&b, y->x + i + c * LANES, sizeof b);
            const lanes p = a * b, q = (p + shift) - shift;
            high[c] += q;
            low[c] += p - q;
        }
    double highs = 0, lows = 0;
    for (size_t c = 0; c < CHAINS; c++)
        for (size_t k = 0; k < LANES; k++) {
            highs += high[c][k];
            lows += low[c][k];
        }
    qn__exact_add(sum, highs);
    qn__exact_add(sum, lows);
}
