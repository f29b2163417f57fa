/* The text of the random numbers of user kernels: its files in their order, for all languages of
 * math.cl. Normal numbers stand behind math.cl, where QN_DRAWS_NORMAL is 1. */
#include "kernels/philox.cl"
#include "kernels/draws.inc"
#if QN_DRAWS_NORMAL
#include "kernels/draws_normal.inc"
#endif
