/* exp, log, tanh and sigmoid over arrays with NEON: every AArch64. */
#include "device/cpu/float/vec_neon.h"

#define MAP_NAME(f) qn_cpu_map_##f##_f32_neon
#define MAP_INNER(f) qn__cpu_map_##f##_f32_neon
#define MAP_TABLE qn__maps_neon
#define MAP_ISA "neon"
#include "device/cpu/float/map_template.inc"
