/* exp, log, tanh and sigmoid over arrays with AVX2 and FMA: x86-64 from Haswell and Zen on. */
#include "device/cpu/float/vec_avx2.h"

#define MAP_NAME(f) qn_cpu_map_##f##_f32_avx2
#define MAP_INNER(f) qn__cpu_map_##f##_f32_avx2
#define MAP_TABLE qn__maps_avx2
#define MAP_ISA "avx2"
#include "device/cpu/float/map_template.inc"
