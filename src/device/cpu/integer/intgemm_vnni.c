/* Integer products for x86-64 with AVX-512 and VNNI: vpdpwssd multiplies pairs of 16-bit integers
 * and adds both products in one instruction, where vpmaddwd needs a separate addition. The rest is
 * the code of AVX-512. */
#include <immintrin.h>

#define VI_DOT(acc, a, b) _mm512_dpwssd_epi32((acc), (a), (b))

#include "device/cpu/integer/intgemm.h"
#include "device/cpu/integer/vec_int_avx512.h"
#include <string.h>

#define K(name) qn_cpu_##name##_int_vnni
#define INTGEMM qn__intgemm_vnni
#define INT_NAME "vnni"
#define INT_ROWS 8
#define INT_PANELS 2
#define GROUP 2

#include "device/cpu/integer/intgemm_tile.inc"

#include "device/cpu/integer/intgemm_pairs.inc"

#include "device/cpu/integer/intgemm.inc"
