/* Tiles of FORWARD_SMALL and ERRORS_SMALL. */
#undef QN_TILE
#undef QN_TILE_LANES
#undef QN_TILE_ROWS
#undef QN_TILE_COLUMNS
#undef QN_LANE_ROWS
#undef QN_LANE_COLUMNS
#define QN_TILE(name) name##_small
#define QN_TILE_LANES 64
#define QN_TILE_ROWS 32u
#define QN_TILE_COLUMNS 32u
#define QN_LANE_ROWS 4u
#define QN_LANE_COLUMNS 4u
