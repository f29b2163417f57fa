/* Tiles of 16 x 32, for products that leave most of a device idle: a lane has 2 x 2 numbers. */
#undef QN_SIZE_NAME
#undef QN_INTGEMM_LANES
#undef QN_DOWN
#undef QN_ACROSS
#undef QN_RUN
#define QN_SIZE_NAME small
#define QN_INTGEMM_LANES 128
#define QN_DOWN 8u
#define QN_ACROSS 16u
#define QN_RUN 2u
