/* The kernel program: the files of its text in their order. The C compiler reads this file as it
 * is, after prelude_c.h. cmake/QuernKernels.cmake concatenates the files that it names after the
 * prelude of another language. Only #include lines, their conditions and comments are allowed here.
 * A program has the products that QN_PRODUCTS selects (step.h). */
#include "kernels/step.h"
#include "kernels/scalar.cl"
#include "num/elementary.inc"
#include "num/gated.inc"
#include "kernels/exact.cl"
#include "kernels/philox.cl"
#include "kernels/words.cl"
#include "kernels/activations.inc"
#include "kernels/pointwise.cl"
#include "kernels/epilogue.cl"
#include "kernels/epilogue_run.cl"
#include "kernels/pixels.cl"
#include "kernels/gate.cl"
#include "kernels/fetch.cl"
#include "kernels/intgemm_words.cl"
#if QN_PRODUCTS & QN_WITH_INTGEMM
#include "kernels/quantize.cl"
#endif
#if QN_PRODUCTS & QN_WITH_MATRIX
#include "kernels/matrix_words.cl"
#endif
#if QN_PRODUCTS & QN_WITH_F32
#include "kernels/tile_large.cl"
#include "kernels/tile.cl"
#include "kernels/products.cl"
#include "kernels/tile_medium.cl"
#include "kernels/tile.cl"
#include "kernels/products.cl"
#include "kernels/tile_small.cl"
#include "kernels/tile.cl"
#include "kernels/products.cl"
#include "kernels/tile_gradient_large.cl"
#include "kernels/tile.cl"
#include "kernels/gradient.cl"
#include "kernels/tile_gradient_small.cl"
#include "kernels/tile.cl"
#include "kernels/gradient.cl"
#endif
#if QN_PRODUCTS & QN_WITH_PIXELS
#include "kernels/unfold.cl"
#include "kernels/pixels_run.cl"
#include "kernels/pools.cl"
#include "kernels/norm.cl"
#include "kernels/item_norm.cl"
#include "kernels/grouped.cl"
#if QN_PRODUCTS & QN_WITH_INTGEMM
#include "kernels/quantize_pixels.cl"
#endif
#endif
#if QN_PRODUCTS & QN_WITH_I7
#include "kernels/intgemm_i7.cl"
#if QN_PRODUCTS & QN_WITH_LARGE
#include "kernels/intgemm_large.cl"
#include "kernels/intgemm.cl"
#include "kernels/intgemm_products.cl"
#include "kernels/intgemm_gradient.cl"
#endif
#if QN_PRODUCTS & QN_WITH_MATRIX
#include "kernels/matrix_large.cl"
#include "kernels/matrix.cl"
#include "kernels/matrix_products.cl"
#include "kernels/matrix_small.cl"
#include "kernels/matrix.cl"
#include "kernels/matrix_products.cl"
#include "kernels/matrix_gradient.cl"
#endif
#include "kernels/intgemm_small.cl"
#include "kernels/intgemm.cl"
#include "kernels/intgemm_products.cl"
#include "kernels/intgemm_gradient.cl"
#endif
#if QN_PRODUCTS & QN_WITH_I14
#include "kernels/intgemm_i14.cl"
#if QN_PRODUCTS & QN_WITH_LARGE
#include "kernels/intgemm_large.cl"
#include "kernels/intgemm.cl"
#include "kernels/intgemm_products.cl"
#include "kernels/intgemm_gradient.cl"
#endif
#if QN_PRODUCTS & QN_WITH_MATRIX
#include "kernels/matrix_large.cl"
#include "kernels/matrix.cl"
#include "kernels/matrix_products.cl"
#include "kernels/matrix_small.cl"
#include "kernels/matrix.cl"
#include "kernels/matrix_products.cl"
#include "kernels/matrix_gradient.cl"
#endif
#include "kernels/intgemm_small.cl"
#include "kernels/intgemm.cl"
#include "kernels/intgemm_products.cl"
#include "kernels/intgemm_gradient.cl"
#endif
#if QN_PRODUCTS & QN_WITH_I21
#include "kernels/intgemm_i21.cl"
#if QN_PRODUCTS & QN_WITH_LARGE
#include "kernels/intgemm_large.cl"
#include "kernels/intgemm.cl"
#include "kernels/intgemm_products.cl"
#include "kernels/intgemm_gradient.cl"
#endif
#if QN_PRODUCTS & QN_WITH_MATRIX
#include "kernels/matrix_large.cl"
#include "kernels/matrix.cl"
#include "kernels/matrix_products.cl"
#include "kernels/matrix_small.cl"
#include "kernels/matrix.cl"
#include "kernels/matrix_products.cl"
#include "kernels/matrix_gradient.cl"
#endif
#include "kernels/intgemm_small.cl"
#include "kernels/intgemm.cl"
#include "kernels/intgemm_products.cl"
#include "kernels/intgemm_gradient.cl"
#endif
#include "kernels/losses.inc"
#include "kernels/loss.cl"
#include "kernels/sums.cl"
#include "kernels/optimizers.inc"
#include "kernels/update.cl"
#include "kernels/trial.cl"
