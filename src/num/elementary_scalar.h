/* The operations of elementary.inc on one float: the reference for every other instruction set, bit
 * for bit.
 *
 * fmaf comes from libm: one instruction if the compiler may use it, otherwise a correctly rounded
 * function. Integer operations use uint32_t: they must wrap around and shift into the sign bit,
 * which C leaves undefined for int32_t. */
#ifndef QN_NUM_ELEMENTARY_SCALAR_H
#define QN_NUM_ELEMENTARY_SCALAR_H

#include <math.h>
#include <stdint.h>
#include <string.h>

typedef float vf;
typedef int32_t vi;

static inline vf v_set(float c) { return c; }
static inline vi vi_set(int32_t c) { return c; }

static inline vf v_add(vf a, vf b) { return a + b; }
static inline vf v_sub(vf a, vf b) { return a - b; }
static inline vf v_mul(vf a, vf b) { return a * b; }
static inline vf v_fma(vf a, vf b, vf c) { return fmaf(a, b, c); }
static inline vf v_fnma(vf a, vf b, vf c) { return fmaf(-a, b, c); }

/* Not fminf and fmaxf, which return the number when one argument is NaN. */
static inline vf v_min(vf a, vf b) { return a < b ? a : b; }
static inline vf v_max(vf a, vf b) { return a > b ? a : b; }
static inline vf v_sel_lt(vf a, vf b, vf x, vf y) { return a < b ? x : y; }

static inline vi v_bits(vf a) {
    vi i;
    memcpy(&i, &a, sizeof i);
    return i;
}

static inline vf v_float(vi i) {
    vf a;
    memcpy(&a, &i, sizeof a);
    return a;
}

static inline vf v_cvt(vi i) { return (float)i; }

static inline vi vi_add(vi a, vi b) { return (vi)((uint32_t)a + (uint32_t)b); }
static inline vi vi_sub(vi a, vi b) { return (vi)((uint32_t)a - (uint32_t)b); }
static inline vi vi_and(vi a, vi b) { return a & b; }
static inline vi vi_or(vi a, vi b) { return a | b; }
static inline vi vi_shl(vi a, int s) { return (vi)((uint32_t)a << s); }

/* In C the right shift of a negative number is implementation-defined, although gcc and clang both
 * shift in the sign. These operations compile to one instruction. */
static inline vi vi_sar(vi a, int s) {
    uint32_t shifted = (uint32_t)a >> s;
    return (vi)(a < 0 ? shifted | ~(UINT32_MAX >> s) : shifted);
}

#endif
