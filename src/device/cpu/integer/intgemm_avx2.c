/* Integer products for x86-64 with AVX2 and FMA: vpmaddwd. */
#include "device/cpu/integer/intgemm.h"
#include "device/cpu/integer/vec_int_avx2.h"
#include <string.h>

#define K(name) qn_cpu_##name##_int_avx2
#define INTGEMM qn__intgemm_avx2
#define INT_NAME "avx2"
#define INT_ROWS 4
#define INT_PANELS 1
#define GROUP 2

#include "device/cpu/integer/intgemm_tile.inc"

#include "device/cpu/integer/intgemm_pairs.inc"

#include "device/cpu/integer/intgemm.inc"
