/* The text of the random numbers of user kernels: its files in their order, for all languages of
 * math.cl. Normal numbers stand after math.cl, where QN_DRAWS_NORMAL is 1. */
#include "kernels/runtime/philox.cl"
#include "kernels/runtime/draws.inc"
#if QN_DRAWS_NORMAL
#include "kernels/runtime/draws_normal.inc"
#endif
