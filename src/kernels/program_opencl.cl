/* The OpenCL program has these files after those of program.cl: the kernels for CPU devices. They
 * are compiled when the host defines QN_VECTORS. The condition begins in vector_words.cl and ends
 * in vector_loss.cl. */
#include "kernels/vector_words.cl"
#include "num/elementary.inc"
#include "kernels/activations.inc"
#include "kernels/vector_pointwise.cl"
#include "kernels/optimizers.inc"
#include "kernels/epilogue.cl"
#include "kernels/vector_products.cl"
#include "kernels/vector_gradient.cl"
#include "kernels/vector_items.cl"
#include "kernels/vector_map.cl"
#include "kernels/vector_sums.cl"
#include "kernels/losses.inc"
#include "kernels/vector_loss.cl"
