/* Tiles of FORWARD_SMALL and ERRORS_SMALL, for products that take microseconds: many groups, few
 * chains in each lane, long k-blocks because few lanes wait for memory together. A link is 4 fma a
 * lane and 2 vectors of local memory, about 8 cycles of a processor with one group: 784 links of a
 * layer of 500 outputs at 128 items are 128 groups and some 4 us at 1.7 GHz. */
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
#define QN_TILE(name) name##_small
#define QN_TILE_LANES 128
#define QN_TILE_GROUPS 1 /* that a processor is to hold at the same time */
#define QN_TILE_ROWS 16u
#define QN_TILE_COLUMNS 32u
#define QN_LANE_ROWS 2u
#define QN_LANE_COLUMNS 2u
#define QN_ROW_RUN 2u
#define QN_COLUMN_RUN 2u
#define QN_K_BLOCK 64u
