/* The state of the floating-point unit: rounding direction, treatment of subnormal numbers, which
 * exceptions trap. Each thread has its own, and a new thread inherits it. So the settings of a
 * caller (fesetround, feenableexcept, flush to zero by a library built for speed) would change
 * results.
 *
 * Every public function that computes, or calls functions that may compute, begins with
 * QN__OWN_FLOATS. It sets the state of docs/exactness.md 1.8 and restores the caller's state,
 * including exception flags, at every return. Code that runs after foreign code (a callback, a
 * library that was opened, the body of a thread) calls qn__float_state_set, because foreign code
 * may change the state. */
#ifndef QN_BASE_SYSTEM_FLOAT_STATE_H
#define QN_BASE_SYSTEM_FLOAT_STATE_H

#include <stdint.h>

#if defined(__SSE__)
typedef struct qn__float_state {
    uint32_t mxcsr;
    uint16_t x87_control, x87_status; /* glibc's strtof takes its rounding direction from there */
} qn__float_state;
#elif defined(__aarch64__)
typedef struct qn__float_state {
    uint64_t fpcr, fpsr;
} qn__float_state;
#else
#include <fenv.h>
typedef struct qn__float_state {
    fenv_t env;
} qn__float_state;
#endif

/* Round to nearest even, subnormal numbers kept, no traps. A few nanoseconds. */
void qn__float_state_set(void);

/* The same; returns the previous state. */
qn__float_state qn__float_state_enter(void);
void qn__float_state_leave(const qn__float_state *before);

/* For the rest of the block. The three functions are never inlined, so the compiler does not move
 * memory accesses across them. */
#define QN__OWN_FLOATS                                                                             \
    __attribute__((cleanup(qn__float_state_leave), unused))                                        \
    const qn__float_state qn__floats_of_caller = qn__float_state_enter()

#endif
