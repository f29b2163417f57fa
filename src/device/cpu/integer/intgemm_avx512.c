/* Integer products for x86-64 with AVX-512 (F, DQ, VL, BW): vpmaddwd. */
#include "device/cpu/integer/intgemm.h"
#include "device/cpu/integer/vec_int_avx512.h"
#include <string.h>

#define K(name) qn_cpu_##name##_int_avx512
#define INTGEMM qn__intgemm_avx512
#define INT_NAME "avx512"
#define INT_ROWS 8
#define INT_PANELS 2
#define GROUP 2

#include "device/cpu/integer/intgemm_tile.inc"

#include "device/cpu/integer/intgemm_pairs.inc"

#include "device/cpu/integer/intgemm.inc"
