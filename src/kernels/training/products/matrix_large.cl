/* Tiles of 128 x 128: 8 warps of 64 x 32. With three digits 64 x 128: 8 warps of 32 x 32. A slab of
 * two digits is 64 matrix instructions of a warp, for which a lane reads 48 words of local memory.
 * A group copies 16 KiB for 512 instructions. The sums take 192 registers of a lane, 160 with three
 * digits. */
#define QN_SIZE_NAME matrix_large
#define QN_WARPS_DOWN 2u
#define QN_WARPS_ACROSS 4u
#define QN_BROAD 4u
#if QN_DIGITS == 3u
#define QN_HIGH 2u
#define QN_STAGES 2u
#else
#define QN_HIGH 4u
#define QN_STAGES 3u
#endif
