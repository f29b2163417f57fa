/* The OpenCL program has these files after those of program.cl: the kernels for CPU devices. They
 * are compiled when the host defines QN_VECTORS. The condition begins in vector_words.cl and ends
 * in vector_loss.cl. */
#include "kernels/training/vector_words.cl"
#include "num/elementary.inc"
#include "kernels/training/activations.inc"
#include "kernels/training/vector_pointwise.cl"
#include "kernels/training/optimizers.inc"
#include "kernels/training/epilogue.cl"
#include "kernels/training/products/vector_products.cl"
#include "kernels/training/products/vector_gradient.cl"
#include "kernels/training/vector_items.cl"
#include "kernels/training/vector_map.cl"
#include "kernels/training/vector_sums.cl"
#include "kernels/training/losses.inc"
#include "kernels/training/vector_loss.cl"
