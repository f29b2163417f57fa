/* The products of integers of one width, by tiles of each size: a list of files, as program.cl. */
#if QN_PRODUCTS & QN_WITH_LARGE
#include "kernels/training/products/intgemm_large.cl"
#include "kernels/training/products/intgemm.cl"
#include "kernels/training/products/intgemm_products.cl"
#include "kernels/training/products/intgemm_gradient.cl"
#include "kernels/training/products/intgemm_end.cl"
#endif
#if QN_PRODUCTS & QN_WITH_MATRIX
#include "kernels/training/products/matrix_large.cl"
#include "kernels/training/products/matrix.cl"
#include "kernels/training/products/matrix_products.cl"
#include "kernels/training/products/intgemm_end.cl"
#include "kernels/training/products/matrix_small.cl"
#include "kernels/training/products/matrix.cl"
#include "kernels/training/products/matrix_products.cl"
#include "kernels/training/products/matrix_gradient.cl"
#include "kernels/training/products/intgemm_end.cl"
#endif
#include "kernels/training/products/intgemm_small.cl"
#include "kernels/training/products/intgemm.cl"
#include "kernels/training/products/intgemm_products.cl"
#include "kernels/training/products/intgemm_gradient.cl"
#include "kernels/training/products/intgemm_end.cl"
