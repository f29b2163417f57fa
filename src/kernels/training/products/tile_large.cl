/* Tiles of FORWARD_LARGE and ERRORS_LARGE. A link is 64 fma a lane and 4 vectors of local memory.
 * The vectors of a warp take 8 cycles of local memory: four warps read for 32 cycles while they
 * compute for 64. For a group, a link is 1 KB of memory and 16384 fma. With 128 registers a lane,
 * two groups run on a multiprocessor of 65536 registers. */
#define QN_TILE(name) name##_large
#define QN_TILE_LANES 256
#define QN_TILE_GROUPS 2 /* resident on a multiprocessor */
#define QN_TILE_ROWS 128u
#define QN_TILE_COLUMNS 128u
#define QN_LANE_ROWS 8u
#define QN_LANE_COLUMNS 8u
#define QN_ROW_RUN 4u
#define QN_COLUMN_RUN 4u
#define QN_K_BLOCK 8u
