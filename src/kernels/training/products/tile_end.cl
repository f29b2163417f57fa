/* The end of a size of tiles: the names of tile.cl and of its shape are free again. */
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
#undef QN_ACROSS
#undef QN_DOWN
#undef QN_STRIP
#undef QN_VECTORS_OF
#undef QN_LOADS
#undef QN_SIDE
