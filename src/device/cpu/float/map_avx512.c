/* exp, log, tanh and sigmoid over arrays with AVX-512: Skylake servers, Zen 4 and later. */
#include "device/cpu/float/vec_avx512.h"

#define MAP_NAME(f) qn_cpu_map_##f##_f32_avx512
#define MAP_INNER(f) qn__cpu_map_##f##_f32_avx512
#define MAP_TABLE qn__maps_avx512
#define MAP_ISA "avx512"
#include "device/cpu/float/map_template.inc"
