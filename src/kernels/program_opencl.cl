/* What the OpenCL program has behind the files of program.cl: the kernels for devices that are
 * CPUs. They belong to it where the host defines QN_VECTORS: vector_words.cl begins and
 * vector_loss.cl ends the text that depends on it. */
#include "kernels/vector_words.cl"
#include "num/elementary.inc"
#include "kernels/vector_pointwise.cl"
#include "kernels/epilogue.cl"
#include "kernels/vector_products.cl"
#include "kernels/vector_gradient.cl"
#include "kernels/vector_items.cl"
#include "kernels/vector_map.cl"
#include "kernels/vector_sums.cl"
#include "kernels/losses.inc"
#include "kernels/vector_loss.cl"
