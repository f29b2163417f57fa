/* The end of a size of integer tiles: the names of intgemm.cl, of matrix.cl and of the shape are
 * free again. */
#undef QN_SIZE_NAME
#undef QN_INTGEMM_LANES
#undef QN_DOWN
#undef QN_ACROSS
#undef QN_RUN
#undef QN_WARPS_DOWN
#undef QN_WARPS_ACROSS
#undef QN_HIGH
#undef QN_BROAD
#undef QN_STAGES
#undef QN_INTGEMM
#undef QN_ROWS
#undef QN_COLUMNS
#undef QN_SUMS
#undef QN_LOADS_OF
#undef QN_SLAB
#undef QN_FLUSH
#undef QN_VECTORS_OF
