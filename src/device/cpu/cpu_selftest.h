/* Checks that an instruction set computes on this machine as the contract requires. */
#ifndef QN_DEVICE_CPU_CPU_SELFTEST_H
#define QN_DEVICE_CPU_CPU_SELFTEST_H

#include "base/error.h"
#include "device/cpu/cpu_isa.h"

/* Runs the float kernels on a few hundred numbers, which takes about ten microseconds, and compares
 * with the scalar definitions. QN_UNSUPPORTED names what is wrong. (qn__cpu_has_amx checks the
 * integer products of matrix units.) */
qn_status qn__cpu_selftest(const qn__cpu_isa *isa, qn_error *err);

#endif
