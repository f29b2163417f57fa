/* Tiles of FORWARD_LARGE and ERRORS_LARGE. A link is 64 fma a lane and 4 vectors of local memory, 8
 * of its cycles for 32 lanes: 32 for the four times 32 that compute 64 cycles meanwhile. For a
 * group it is 1 KB of memory and 16384 fma. 128 registers, so that two groups share a processor of
 * 65536. */
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
#define QN_TILE(name) name##_large
#define QN_TILE_LANES 256
#define QN_TILE_GROUPS 2 /* that a processor is to hold at the same time */
#define QN_TILE_ROWS 128u
#define QN_TILE_COLUMNS 128u
#define QN_LANE_ROWS 8u
#define QN_LANE_COLUMNS 8u
#define QN_ROW_RUN 4u
#define QN_COLUMN_RUN 4u
#define QN_K_BLOCK 8u
