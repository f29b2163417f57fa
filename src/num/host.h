/* Tests of the processor that runs the library: operations with known answers. It computes initial
 * values, scaling, rates and updates, and devices are compared with it. So one wrong operation (an
 * emulator's fmaf, a C library's) would change models without an error. docs/exactness.md 1.9,
 * 14.10. */
#ifndef QN_NUM_HOST_H
#define QN_NUM_HOST_H

#include "base/error.h"
#include <stdint.h>

typedef enum qn__host_operation {
    QN__HOST_ADD,
    QN__HOST_MULTIPLY,
    QN__HOST_DIVIDE,
    QN__HOST_ROOT,
    QN__HOST_FMA,
    QN__HOST_MULTIPLY_ADD, /* two roundings */
    QN__HOST_TO_INTEGER,   /* of 64 bits, ties to even */
    QN__HOST_FROM_INTEGER,
    QN__HOST_NARROW, /* double to float */
    QN__HOST_WIDEN,
    QN__HOST_DOUBLE_ADD,
    QN__HOST_DOUBLE_MULTIPLY,
    QN__HOST_DOUBLE_DIVIDE,
    QN__HOST_LESS,
    QN__HOST_OPERATIONS
} qn__host_operation;

/* The bits of the result for operands by their bits; a float in the low 32. */
typedef uint64_t qn__host_function(qn__host_operation operation, uint64_t a, uint64_t b,
                                   uint64_t c);

/* Compares all known answers at the first call in a process, in some microseconds; later calls
 * return the same result. QN_UNSUPPORTED names the first operation that is wrong. */
qn_status qn__host_check(qn_error *err);

/* The comparison for any implementation. For tests. */
qn_status qn__host_compare(qn__host_function *function, qn_error *err);
qn__host_function qn__host_compute;

#endif
