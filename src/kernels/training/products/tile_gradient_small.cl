/* Tiles of GRADIENT_SMALL: a link is 16 fma a lane and 2 vectors of local memory. */
#define QN_TILE(name) name##_gradient_small
#define QN_TILE_LANES 64
#define QN_TILE_GROUPS 1 /* resident on a multiprocessor */
#define QN_TILE_ROWS 32u
#define QN_TILE_COLUMNS 32u
#define QN_LANE_ROWS 4u
#define QN_LANE_COLUMNS 4u
#define QN_ROW_RUN 4u
#define QN_COLUMN_RUN 4u
#define QN_K_BLOCK 16u
