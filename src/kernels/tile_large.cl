/* Tiles of FORWARD_LARGE and ERRORS_LARGE. */
#undef QN_TILE
#undef QN_TILE_LANES
#undef QN_TILE_ROWS
#undef QN_TILE_COLUMNS
#undef QN_LANE_ROWS
#undef QN_LANE_COLUMNS
#define QN_TILE(name) name##_large
#define QN_TILE_LANES 256
#define QN_TILE_ROWS 128u
#define QN_TILE_COLUMNS 128u
#define QN_LANE_ROWS 8u
#define QN_LANE_COLUMNS 8u
