/* The text of the functions of user kernels: its files in their order. It stands after a prelude;
 * cmake/QuernKernels.cmake concatenates the files for OpenCL C and CUDA C++, and C includes this
 * file after prelude_c.h and step.h. Those in double precision are there where QN_DOUBLE is 1: in
 * OpenCL C the host defines it for devices that have it. */
#include "kernels/runtime/scalar.cl"
#include "num/elementary.inc"
#include "kernels/runtime/exact.cl"
#include "kernels/runtime/math_polynomials.inc"
#include "kernels/runtime/math_f32.inc"
#include "kernels/runtime/math_coefficients_f32.inc"
#include "kernels/runtime/math_angles.inc"
#include "kernels/runtime/math_powers.inc"
#include "kernels/runtime/math_exponentials.inc"
#if QN_DOUBLE
#include "kernels/runtime/math_f64.inc"
#include "kernels/runtime/math_coefficients_f64.inc"
#include "kernels/runtime/math_angles.inc"
#include "kernels/runtime/math_powers.inc"
#include "kernels/runtime/math_exponentials.inc"
#endif
