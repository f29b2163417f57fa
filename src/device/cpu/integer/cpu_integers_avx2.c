/* Products of integers for x86-64 with AVX2 and FMA: vpmaddwd. */
#include "device/cpu/integer/cpu_integers.h"
#include "device/cpu/integer/vec_fixed_avx2.h"
#include <string.h>

#define K(name) qn_cpu_##name##_int_avx2
#define INTEGERS qn__cpu_integers_avx2
#define INT_NAME "avx2"
#define INT_ROWS 4
#define INT_PANELS 1
#define GROUP 2

#include "device/cpu/integer/integers_tile.inc"

#include "device/cpu/integer/integers_pairs.inc"

#include "device/cpu/integer/integers.inc"
