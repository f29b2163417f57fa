/* exp, log, tanh and sigmoid over arrays, for any machine. */
#include "device/cpu/float/vec_scalar.h"

#define MAP_NAME(f) qn_cpu_map_##f##_f32_scalar
#define MAP_INNER(f) qn__cpu_map_##f##_f32_scalar
#define MAP_TABLE qn__maps_scalar
#define MAP_ISA "scalar"
#include "device/cpu/float/map_template.inc"
