/* The products of integers of one width, by tiles of each size: a list of files, as program.cl. */
#if QN_PRODUCTS & QN_WITH_LARGE
#include "kernels/training/intgemm_large.cl"
#include "kernels/training/intgemm.cl"
#include "kernels/training/intgemm_products.cl"
#include "kernels/training/intgemm_gradient.cl"
#include "kernels/training/intgemm_end.cl"
#endif
#if QN_PRODUCTS & QN_WITH_MATRIX
#include "kernels/training/matrix_large.cl"
#include "kernels/training/matrix.cl"
#include "kernels/training/matrix_products.cl"
#include "kernels/training/intgemm_end.cl"
#include "kernels/training/matrix_small.cl"
#include "kernels/training/matrix.cl"
#include "kernels/training/matrix_products.cl"
#include "kernels/training/matrix_gradient.cl"
#include "kernels/training/intgemm_end.cl"
#endif
#include "kernels/training/intgemm_small.cl"
#include "kernels/training/intgemm.cl"
#include "kernels/training/intgemm_products.cl"
#include "kernels/training/intgemm_gradient.cl"
#include "kernels/training/intgemm_end.cl"
