/* Tiles of FORWARD_SMALL and ERRORS_SMALL, for products that take microseconds: many groups with
 * few chains a lane. K-blocks are long, since few warps hide the latency of memory. A link is 4 fma
 * a lane and 2 vectors of local memory, about 8 cycles of a multiprocessor with one group. Example:
 * 784 inputs, 500 outputs and 128 items are 128 groups and about 4 us at 1.7 GHz. */
#define QN_TILE(name) name##_small
#define QN_TILE_LANES 128
#define QN_TILE_GROUPS 1 /* resident on a multiprocessor */
#define QN_TILE_ROWS 16u
#define QN_TILE_COLUMNS 32u
#define QN_LANE_ROWS 2u
#define QN_LANE_COLUMNS 2u
#define QN_ROW_RUN 2u
#define QN_COLUMN_RUN 2u
#define QN_K_BLOCK 64u
