/* Tiles of 64 x 64: a lane has 4 x 4 numbers. A word of two digits is 64 dot products of four bytes
 * and four vectors of local memory. */
#define QN_SIZE_NAME large
#define QN_INTGEMM_LANES 256
#define QN_DOWN 16u
#define QN_ACROSS 16u
#define QN_RUN 4u
