/* Whether a kernel is first computed with fast functions that are valid for common arguments only.
 */
#ifndef QN_USERKERNEL_COMPILER_USER_COMMON_H
#define QN_USERKERNEL_COMPILER_USER_COMMON_H

#include "userkernel/language/user_source.h"

/* 1: kernels/runtime/math_common.inc has a function that the kernel calls, and a compiler can use
 * vectors for the loop over its items: it has no loops and no neighbours. */
int qn__user_has_common(const qn__user_source *source);

#endif
