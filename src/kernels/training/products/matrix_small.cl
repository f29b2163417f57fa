/* Tiles of 64 x 64: 4 warps of 32 x 32. With three digits 8 warps of 32 x 16, whose lanes have
 * registers for 64-bit sums as well. */
#define QN_SIZE_NAME matrix_small
#define QN_WARPS_DOWN 2u
#define QN_HIGH 2u
#define QN_STAGES 3u
#if QN_DIGITS == 3u
#define QN_WARPS_ACROSS 4u
#define QN_BROAD 2u
#else
#define QN_WARPS_ACROSS 2u
#define QN_BROAD 4u
#endif
