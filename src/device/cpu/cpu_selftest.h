/* Whether an instruction set computes here as the contract says. */
#ifndef QN_DEVICE_CPU_CPU_SELFTEST_H
#define QN_DEVICE_CPU_CPU_SELFTEST_H

#include "base/error.h"
#include "device/cpu/cpu_isa.h"

/* Runs the kernels for floats on a few hundred numbers, which takes some ten microseconds, and
 * compares with the scalar definitions. QN_UNSUPPORTED names what is wrong. (Products of integers
 * of matrix units are looked at by qn__cpu_has_amx.) */
qn_status qn__cpu_selftest(const qn__cpu_isa *isa, qn_error *err);

#endif
