/* Tiles of GRADIENT_SMALL: a link is 16 fma a lane and 2 vectors of local memory. */
#undef QN_TILE
#undef QN_TILE_LANES
#undef QN_TILE_GROUPS
#undef QN_TILE_ROWS
#undef QN_TILE_COLUMNS
#undef QN_LANE_ROWS
#undef QN_LANE_COLUMNS
#undef QN_ROW_RUN
#undef QN_COLUMN_RUN
#undef QN_K_BLOCK
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
