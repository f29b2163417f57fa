/* Long natural numbers, and results of exact arithmetic that are rounded once.
 *
 * A result of a statistic is a quotient of two integers, or the square root of one. Both integers
 * are computed exactly; the quotient is then rounded once. */
#ifndef QN_NUM_NATURAL_H
#define QN_NUM_NATURAL_H

#include <stdint.h>

/* Space for the greatest product of a statistic, 2^48 items of any binary64 in a sum. */
#define QN__NATURAL_DIGITS 144

/* A number from 0: the sum of digit[i] * 2^(32 i + place). Digits from `size` on are not set. */
typedef struct qn__natural {
    uint32_t digit[QN__NATURAL_DIGITS];
    int size;  /* digits in use; the highest is not 0 */
    int place; /* power of two of the lowest, a multiple of 32 */
} qn__natural;

/* In all functions here `out` must not be one of the operands. */

/* Removes leading zeros. */
void qn__natural_trim(qn__natural *a);
/* a * factor. */
void qn__natural_multiply(const qn__natural *a, uint64_t factor, qn__natural *out);
/* a * b. */
void qn__natural_product(const qn__natural *a, const qn__natural *b, qn__natural *out);
/* a + b. */
void qn__natural_add(const qn__natural *a, const qn__natural *b, qn__natural *out);
/* a - b, for a >= b. */
void qn__natural_subtract(const qn__natural *a, const qn__natural *b, qn__natural *out);
/* a * 2^power, for any sign of the power. */
void qn__natural_shift(const qn__natural *a, int power, qn__natural *out);
/* Divides in place by n < 2^48 and returns 1 if there is a remainder. */
int qn__natural_divide(qn__natural *a, uint64_t n);
/* 1, 0 or -1: a is greater than b, equal or less. */
int qn__natural_compare(const qn__natural *a, const qn__natural *b);
/* Appends `count` zero digits, so that a quotient gets as many more. */
void qn__natural_lengthen(qn__natural *a, int count);

/* The highest 62 or 63 bits: a number is bits * 2^*place plus, when *rest is 1, a smaller
 * remainder. *rest is set to 1 or left as it was. *place is even, as a square root requires. `a` is
 * not 0. */
uint64_t qn__natural_leading_bits(const qn__natural *a, int *place, int *rest);
/* a / b in the same form: 60 bits or more. Neither is 0. */
uint64_t qn__natural_quotient(const qn__natural *a, const qn__natural *b, int *place, int *rest);

/* The binary64 nearest to a / b, or with `root` to its square root, ties to even. b > 0; the result
 * is 0 or in the range of normal numbers, and a * 2^128 fits a natural. */
double qn__natural_ratio(const qn__natural *a, const qn__natural *b, int root);

#endif
