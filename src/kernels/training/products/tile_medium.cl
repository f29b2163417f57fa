/* Tiles of FORWARD_MEDIUM and ERRORS_MEDIUM, for products where 128 x 128 would leave
 * multiprocessors idle. A link is 32 fma a lane and 3 vectors of local memory (6 cycles for a
 * warp). */
#define QN_TILE(name) name##_medium
#define QN_TILE_LANES 128
#define QN_TILE_GROUPS 4 /* resident on a multiprocessor */
#define QN_TILE_ROWS 64u
#define QN_TILE_COLUMNS 64u
#define QN_LANE_ROWS 8u
#define QN_LANE_COLUMNS 4u
#define QN_ROW_RUN 4u
#define QN_COLUMN_RUN 4u
#define QN_K_BLOCK 16u
