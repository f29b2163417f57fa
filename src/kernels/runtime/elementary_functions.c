/* The C instance of math.cl, as ordinary functions. */
#include "kernels/runtime/elementary_functions.h"

#include "kernels/runtime/prelude_c.h"
#include "kernels/step.h"

#include "kernels/runtime/math.cl"

#define DEFINE(name)                                                                               \
    float qn__f32_##name(float x) { return qn_f32_##name(x); }                                     \
    double qn__f64_##name(double x) { return qn_f64_##name(x); }
QN__FUNCTIONS_OF_ONE(DEFINE)
#undef DEFINE

#define DEFINE(name)                                                                               \
    float qn__f32_##name(float first, float second) { return qn_f32_##name(first, second); }       \
    double qn__f64_##name(double first, double second) { return qn_f64_##name(first, second); }
QN__FUNCTIONS_OF_TWO(DEFINE)
#undef DEFINE
