/* The scalar instance of elementary.inc, as ordinary functions. The algorithms are explained in
 * that file. */
#include "num/elementary.h"

#include "num/elementary_scalar.h"

#define V_NAME(f) scalar_##f
#include "num/elementary.inc"
#include "num/gated.inc"

float qn__exp(float x) { return scalar_exp(x); }

float qn__log(float x) { return scalar_log(x); }

float qn__tanh(float x) { return scalar_tanh(x); }

float qn__sigmoid(float x) { return scalar_sigmoid(x); }

float qn__cospi(float t) { return scalar_cospi(t); }

float qn__gelu(float z) { return scalar_gelu(z); }

float qn__gelu_slope(float z) { return scalar_gelu_slope(z); }

float qn__gelu_tanh(float z) { return scalar_gelu_tanh(z); }

float qn__gelu_tanh_slope(float z) { return scalar_gelu_tanh_slope(z); }

float qn__silu(float z) { return scalar_silu(z); }

float qn__silu_slope(float z) { return scalar_silu_slope(z); }
