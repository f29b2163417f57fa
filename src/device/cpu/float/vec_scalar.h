/* Vectors of float for any machine: VL = 1.
 *
 * Each vec_*.h defines the same names for its instruction set, and a translation unit includes
 * exactly one of them; kernels are written once, in terms of these names. The first part is the
 * operations of num/elementary.inc, explained there. The second part is for kernels:
 *
 *   VL                          number of lanes
 *   v_load(p), v_store(p, a)    VL consecutive floats; no alignment needed
 *   vi_load(p), vi_store(p, i)  the same for int32
 *   v_zero()                    +0 in all lanes
 *   v_div(a, b), v_sqrt(a)      correctly rounded
 *
 * Nothing here fuses, reorders or approximates, and no file may be compiled with flags that do. */
#ifndef QN_DEVICE_CPU_FLOAT_VEC_SCALAR_H
#define QN_DEVICE_CPU_FLOAT_VEC_SCALAR_H

#include "num/elementary_scalar.h"

#define VL 1

static inline vf v_load(const float *p) { return *p; }
static inline void v_store(float *p, vf a) { *p = a; }
static inline vi vi_load(const int32_t *p) { return *p; }
static inline void vi_store(int32_t *p, vi a) { *p = a; }
static inline vi vi_max(vi a, vi b) { return a > b ? a : b; }

static inline vf v_zero(void) { return 0.0f; }
static inline vf v_div(vf a, vf b) { return a / b; }
static inline vf v_sqrt(vf a) { return sqrtf(a); }

#endif
