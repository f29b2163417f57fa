/* The float kernels for any machine, one number at a time: the reference for the other tables. */
#include "device/cpu/float/cpu_kernels.h"
#include "device/cpu/float/map.h"
#include "device/cpu/float/vec_scalar.h"
#include <string.h>

#define K(name) qn_cpu_##name##_f32_scalar
#define MAP(name) qn__cpu_map_##name##_f32_scalar
#define KERNELS qn__cpu_kernels_scalar
#define ISA_NAME "scalar"
#define MM_ROWS 2
#define MM_PANELS 1
#define MM_BLOCK 144u
#define OUT_ROWS 2
#define OUT_PANELS 1
#define OUT_ALONE 2
#define OUT_PIECE 96
#define SPARSE_ROWS 1
#define SPARSE_PANELS 1

static inline vf v_load_bytes(const uint8_t *p) { return (float)*p; }

static inline vf v_rint(vf x) { return rintf(x); }

static inline void v_load_quad(const float *p, size_t apart, vf r[4]) {
    (void)apart;
    memcpy(r, p, 4 * sizeof *r);
}

static inline void v_widen(double *s, vf x, int add) { *s = add ? *s + (double)x : (double)x; }

static inline vf v_round_sums(const double *s) { return (float)*s; }

static inline uint32_t v_nonzero(vf x) { return v_bits(x) != 0; }

#define TRANSPOSE_SIDE 1

static inline void v_transpose(const int64_t *from, size_t from_stride, int64_t *to,
                               size_t to_stride) {
    (void)from_stride;
    (void)to_stride;
    *to = *from;
}

#include "device/cpu/float/table.inc"
