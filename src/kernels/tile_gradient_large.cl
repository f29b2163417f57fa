/* Tiles of GRADIENT_LARGE. A link is 32 fma a lane and 3 vectors of local memory; each chain has
 * an integer of 64 bits beside it, and a grain costs some 5 instructions a chain besides its fma.
 * 168 registers, so that three groups share a processor of 65536: one converts while others
 * multiply. */
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
#define QN_TILE(name) name##_gradient_large
#define QN_TILE_LANES 128
#define QN_TILE_GROUPS 3 /* that a processor is to hold at the same time */
#define QN_TILE_ROWS 64u
#define QN_TILE_COLUMNS 64u
#define QN_LANE_ROWS 8u
#define QN_LANE_COLUMNS 4u
#define QN_ROW_RUN 4u
#define QN_COLUMN_RUN 4u
#define QN_K_BLOCK 16u
