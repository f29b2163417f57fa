/* Tiles of 16 x 32, for products that leave most of a device idle: a lane has 2 x 2 numbers. */
#define QN_SIZE_NAME small
#define QN_INTGEMM_LANES 128
#define QN_DOWN 8u
#define QN_ACROSS 16u
#define QN_RUN 2u
