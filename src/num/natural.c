/* Long natural numbers, a 32-bit digit at a time. They are short: sums of columns have some ten
 * digits, and the powers that a skewness needs some seventy. */
#include "num/natural.h"
#include <math.h>
#include <string.h>

void qn__natural_trim(qn__natural *a) {
    while (a->size > 0 && a->digit[a->size - 1] == 0)
        a->size--;
}

/* A digit at a time, in two halves of the factor. */
void qn__natural_multiply(const qn__natural *a, uint64_t factor, qn__natural *out) {
    uint32_t parts[2] = {(uint32_t)factor, (uint32_t)(factor >> 32)};
    memset(out->digit, 0, (size_t)(a->size + 2) * sizeof *out->digit);
    for (int j = 0; j < 2; j++) {
        uint64_t rest = 0;
        for (int i = 0; i < a->size; i++) {
            rest += (uint64_t)a->digit[i] * parts[j] + out->digit[i + j];
            out->digit[i + j] = (uint32_t)rest;
            rest >>= 32;
        }
        out->digit[a->size + j] += (uint32_t)rest;
    }
    out->size = a->size + 2;
    out->place = a->place;
    qn__natural_trim(out);
}

void qn__natural_product(const qn__natural *a, const qn__natural *b, qn__natural *out) {
    memset(out->digit, 0, (size_t)(a->size + b->size) * sizeof *out->digit);
    for (int i = 0; i < a->size; i++) {
        uint64_t rest = 0;
        for (int j = 0; j < b->size; j++) {
            rest += (uint64_t)a->digit[i] * b->digit[j] + out->digit[i + j];
            out->digit[i + j] = (uint32_t)rest;
            rest >>= 32;
        }
        out->digit[i + b->size] = (uint32_t)rest;
    }
    out->size = a->size + b->size;
    out->place = a->place + b->place;
    qn__natural_trim(out);
}

/* The digit of weight 2^place. */
static uint32_t digit_at(const qn__natural *a, int place) {
    int i = (place - a->place) / 32;
    return place >= a->place && i < a->size ? a->digit[i] : 0;
}

void qn__natural_subtract(const qn__natural *a, const qn__natural *b, qn__natural *out) {
    int low = a->place < b->place ? a->place : b->place;
    int high = a->place + 32 * a->size;
    if (a->size == 0) {
        *out = (qn__natural){.size = 0};
        return;
    }
    int64_t borrow = 0;
    out->place = low;
    out->size = 0;
    for (int place = low; place < high; place += 32) {
        int64_t value = (int64_t)digit_at(a, place) - digit_at(b, place) + borrow;
        out->digit[out->size++] = (uint32_t)(value & 0xFFFFFFFF);
        borrow = value < 0 ? -1 : 0;
    }
    qn__natural_trim(out);
}

/* The dividend of each digit is the remainder so far and 32 more bits, 80 in all, so that it is
 * processed in two steps of 16 bits. */
int qn__natural_divide(qn__natural *a, uint64_t n) {
    uint64_t rest = 0;
    for (int i = a->size - 1; i >= 0; i--) {
        uint64_t high = rest << 16 | a->digit[i] >> 16;
        rest = high % n;
        uint64_t low = rest << 16 | (a->digit[i] & 0xFFFF);
        rest = low % n;
        a->digit[i] = (uint32_t)(high / n << 16 | low / n);
    }
    qn__natural_trim(a);
    return rest != 0;
}

int qn__natural_compare(const qn__natural *a, const qn__natural *b) {
    const int low = a->place < b->place ? a->place : b->place;
    const int a_top = a->place + 32 * a->size, b_top = b->place + 32 * b->size;
    for (int place = (a_top > b_top ? a_top : b_top) - 32; place >= low; place -= 32) {
        const uint32_t x = digit_at(a, place), y = digit_at(b, place);
        if (x != y)
            return x > y ? 1 : -1;
    }
    return 0;
}

/* The power of two of the highest bit. `a` is not 0. */
static int top_bit(const qn__natural *a) {
    return a->place + 32 * a->size - 1 - __builtin_clz(a->digit[a->size - 1]);
}

uint64_t qn__natural_quotient(const qn__natural *a, const qn__natural *b, int *place, int *rest) {
    const int wanted = 61 - (top_bit(a) - top_bit(b)), up = wanted - (wanted & 1);
    qn__natural scaled, trial;
    uint64_t bits = 0;
    /* up = 32 * floor(up / 32) + up mod 32, for negative numbers too */
    const int digits = (up - (up & 31)) / 32;
    qn__natural_multiply(a, (uint64_t)1 << (up & 31), &scaled);
    scaled.place += 32 * digits;
    for (int bit = 62; bit >= 0; bit--) {
        qn__natural_multiply(b, bits | (uint64_t)1 << bit, &trial);
        if (qn__natural_compare(&trial, &scaled) <= 0)
            bits |= (uint64_t)1 << bit;
    }
    qn__natural_multiply(b, bits, &trial);
    *rest = qn__natural_compare(&trial, &scaled) != 0;
    *place = -up;
    return bits;
}

void qn__natural_lengthen(qn__natural *a, int count) {
    memmove(a->digit + count, a->digit, (size_t)a->size * sizeof *a->digit);
    memset(a->digit, 0, (size_t)count * sizeof *a->digit);
    a->size += count;
    a->place -= 32 * count;
}

uint64_t qn__natural_leading_bits(const qn__natural *a, int *place, int *rest) {
    int top = a->size - 1;
    uint64_t high = (uint64_t)a->digit[top] << 32 | (top > 0 ? a->digit[top - 1] : 0);
    uint32_t below = top > 1 ? a->digit[top - 2] : 0;
    int zeros = __builtin_clzll(high);
    *place = a->place + 32 * (top - 1);
    /* shifts to the top bit, then one back, and one more if the place would be odd */
    if (zeros > 0) {
        high = high << zeros | (zeros < 32 ? below >> (32 - zeros) : 0);
        below = zeros < 32 ? below << zeros : 0;
        *place -= zeros;
    }
    int down = *place % 2 != 0 ? 1 : 2;
    *rest |= below != 0 || (high & (((uint64_t)1 << down) - 1)) != 0;
    for (int i = 0; i < top - 2; i++)
        *rest |= a->digit[i] != 0;
    *place += down;
    return high >> down;
}

void qn__natural_add(const qn__natural *a, const qn__natural *b, qn__natural *out) {
    if (a->size == 0 || b->size == 0) {
        *out = a->size == 0 ? *b : *a;
        return;
    }
    const int low = a->place < b->place ? a->place : b->place;
    const int a_top = a->place + 32 * a->size, b_top = b->place + 32 * b->size;
    const int high = a_top > b_top ? a_top : b_top;
    uint64_t carry = 0;
    out->place = low;
    out->size = 0;
    for (int place = low; place < high; place += 32) {
        carry += (uint64_t)digit_at(a, place) + digit_at(b, place);
        out->digit[out->size++] = (uint32_t)carry;
        carry >>= 32;
    }
    out->digit[out->size++] = (uint32_t)carry;
    qn__natural_trim(out);
}

void qn__natural_shift(const qn__natural *a, int power, qn__natural *out) {
    /* power = 32 * whole + power mod 32, for negative ones too */
    const int bits = power & 31;
    qn__natural_multiply(a, (uint64_t)1 << bits, out);
    out->place += power - bits;
}

/* 1, 0 or -1: a / b, or the root of it, is greater than m * 2^power, equal or less. */
static int compare_ratio(const qn__natural *a, const qn__natural *b, int root, uint64_t m,
                         int power) {
    qn__natural one, other;
    qn__natural_multiply(b, m, &one);
    if (root) {
        qn__natural_multiply(&one, m, &other);
        qn__natural_shift(&other, 2 * power, &one);
        return qn__natural_compare(a, &one);
    }
    qn__natural_shift(&one, power, &other);
    return qn__natural_compare(a, &other);
}

/* Moves a candidate k * 2^power, 2^52 <= k <= 2^53, to the neighbour of a / b; returns 0 when it is
 * the nearest. Both distances are decided by exact comparisons with the middle of two numbers. */
static int improve(const qn__natural *a, const qn__natural *b, int root, uint64_t *k, int *power) {
    const int above = compare_ratio(a, b, root, 2 * *k + 1, *power - 1);
    if (above > 0 || (above == 0 && *k & 1)) {
        ++*k;
        if (*k > (uint64_t)1 << 53) {
            *k = ((uint64_t)1 << 52) + 1; /* the search goes on in the next binade */
            ++*power;
        }
        return above > 0;
    }
    if (above == 0)
        return 0;
    if (*k == (uint64_t)1 << 52) { /* below a power of two the numbers are twice as close */
        *k <<= 1;
        --*power;
    }
    const int below = compare_ratio(a, b, root, 2 * *k - 1, *power - 1);
    *k -= below < 0 || (below == 0 && *k & 1);
    return below < 0;
}

double qn__natural_ratio(const qn__natural *a, const qn__natural *b, int root) {
    int a_place, b_place, rest = 0, power;
    if (a->size == 0)
        return 0.0;
    const uint64_t high = qn__natural_leading_bits(a, &a_place, &rest);
    const uint64_t low = qn__natural_leading_bits(b, &b_place, &rest);
    double near = (double)high / (double)low;
    power = a_place - b_place; /* even, as both places are */
    if (root) {
        near = sqrt(near);
        power /= 2;
    }
    int more;
    uint64_t k = (uint64_t)ldexp(frexp(near, &more), 53);
    power += more - 53;
    while (improve(a, b, root, &k, &power))
        ;
    return ldexp((double)k, power);
}
