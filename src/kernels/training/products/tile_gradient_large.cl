/* Tiles of GRADIENT_LARGE. A link is 32 fma a lane and 3 vectors of local memory. Each chain has a
 * 64-bit sum, and a grain costs about 5 instructions a chain besides its fma. With 168 registers a
 * lane, three groups run on a multiprocessor of 65536 registers: one group converts while others
 * multiply. */
#define QN_TILE(name) name##_gradient_large
#define QN_TILE_LANES 128
#define QN_TILE_GROUPS 3 /* resident on a multiprocessor */
#define QN_TILE_ROWS 64u
#define QN_TILE_COLUMNS 64u
#define QN_LANE_ROWS 8u
#define QN_LANE_COLUMNS 4u
#define QN_ROW_RUN 4u
#define QN_COLUMN_RUN 4u
#define QN_K_BLOCK 16u
