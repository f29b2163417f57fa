/* Products of integers for x86-64 with AVX-512 and VNNI: vpdpwssd multiplies pairs of 16-bit
 * integers and adds both products in one instruction, where vpmaddwd needs an addition behind it.
 * All else is AVX-512's. */
#include <immintrin.h>

#define VI_DOT(acc, a, b) _mm512_dpwssd_epi32((acc), (a), (b))

#include "device/cpu/integer/cpu_integers.h"
#include "device/cpu/integer/vec_fixed_avx512.h"
#include <string.h>

#define K(name) qn_cpu_##name##_int_vnni
#define INTEGERS qn__cpu_integers_vnni
#define INT_NAME "vnni"
#define INT_ROWS 8
#define INT_PANELS 2
#define GROUP 2

#include "device/cpu/integer/integers_tile.inc"

#include "device/cpu/integer/integers_pairs.inc"

#include "device/cpu/integer/integers.inc"
