/* The kernel program: the files of its text in their order. The C compiler reads this file as it
 * is, after prelude_c.h. cmake/QuernKernels.cmake concatenates the files that it names after the
 * prelude of another language. Only #include lines, their conditions and comments are allowed here.
 * A file program_NAME.cl is such a list again.
 * A program has the products that QN_PRODUCTS selects (step.h). */
#include "kernels/step.h"
#include "kernels/runtime/scalar.cl"
#include "num/elementary.inc"
#include "num/gated.inc"
#include "kernels/runtime/exact.cl"
#include "kernels/runtime/philox.cl"
#include "kernels/training/words.cl"
#include "kernels/training/activations.inc"
#include "kernels/training/pointwise.cl"
#include "kernels/training/epilogue.cl"
#include "kernels/training/epilogue_run.cl"
#include "kernels/training/pixels.cl"
#include "kernels/training/gate.cl"
#include "kernels/training/fetch.cl"
#include "kernels/training/products/intgemm_words.cl"
#if QN_PRODUCTS & QN_WITH_INTGEMM
#include "kernels/training/products/quantize.cl"
#endif
#if QN_PRODUCTS & QN_WITH_MATRIX
#include "kernels/training/products/matrix_words.cl"
#endif
#if QN_PRODUCTS & QN_WITH_F32
#include "kernels/training/lists.cl"
#include "kernels/training/products/tile_large.cl"
#include "kernels/training/products/tile.cl"
#include "kernels/training/products/products.cl"
#include "kernels/training/products/tile_end.cl"
#include "kernels/training/products/tile_medium.cl"
#include "kernels/training/products/tile.cl"
#include "kernels/training/products/products.cl"
#include "kernels/training/products/tile_end.cl"
#include "kernels/training/products/tile_small.cl"
#include "kernels/training/products/tile.cl"
#include "kernels/training/products/products.cl"
#include "kernels/training/products/tile_end.cl"
#include "kernels/training/products/tile_gradient_large.cl"
#include "kernels/training/products/tile.cl"
#include "kernels/training/products/gradient.cl"
#include "kernels/training/products/tile_end.cl"
#include "kernels/training/products/tile_gradient_small.cl"
#include "kernels/training/products/tile.cl"
#include "kernels/training/products/gradient.cl"
#include "kernels/training/products/tile_end.cl"
#endif
#if QN_PRODUCTS & QN_WITH_PIXELS
#include "kernels/training/unfold.cl"
#include "kernels/training/pixels_run.cl"
#include "kernels/training/join.cl"
#include "kernels/training/pools.cl"
#include "kernels/training/norm.cl"
#include "kernels/training/item_norm.cl"
#include "kernels/training/layerscale.cl"
#include "kernels/training/rms_norm.cl"
#include "kernels/training/sequences/embedding.cl"
#include "kernels/training/sequences/position.cl"
#include "kernels/training/sequences/rotary.cl"
#include "kernels/training/sequences/attention.cl"
#include "kernels/training/sequences/attention_cached.cl"
#include "kernels/training/sequences/pooled.cl"
#include "kernels/training/sequences/recurrent.cl"
#include "kernels/training/products/grouped.cl"
#if QN_PRODUCTS & QN_WITH_INTGEMM
#include "kernels/training/products/quantize_pixels.cl"
#include "kernels/training/sequences/attention_integer.cl"
#include "kernels/training/sequences/attention_cached_integer.cl"
#endif
#endif
#if QN_PRODUCTS & QN_WITH_I7
#include "kernels/training/products/intgemm_i7.cl"
#include "kernels/training/products/program_intgemm.cl"
#endif
#if QN_PRODUCTS & QN_WITH_I14
#include "kernels/training/products/intgemm_i14.cl"
#include "kernels/training/products/program_intgemm.cl"
#endif
#if QN_PRODUCTS & QN_WITH_I21
#include "kernels/training/products/intgemm_i21.cl"
#include "kernels/training/products/program_intgemm.cl"
#endif
#include "kernels/training/losses.inc"
#include "kernels/training/loss.cl"
#if QN_PRODUCTS & QN_WITH_PIXELS
#include "kernels/training/answers.cl"
#endif
#include "kernels/training/sums.cl"
#include "kernels/training/optimizers.inc"
#include "kernels/training/update.cl"
#include "kernels/runtime/trial.cl"
