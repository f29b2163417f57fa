/* Linux's futex: sleeping until a number in memory changes. C libraries have no function for it,
 * and some do not have the kernel's header. */
#ifndef QN_BASE_SYSTEM_FUTEX_H
#define QN_BASE_SYSTEM_FUTEX_H

#include <stdatomic.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Whether the number is in memory shared between processes. */
typedef enum qn__futex_of { QN__FUTEX_SHARED = 0, QN__FUTEX_PRIVATE = 128 } qn__futex_of;

/* Sleeps while the number is `seen`, at most `seconds`, which must be below 2^31; negative: without
 * a limit. May also wake spuriously. */
static inline void qn__futex_wait(atomic_uint *number, unsigned seen, double seconds,
                                  qn__futex_of of) {
    /* The system call's own struct: two longs, even if the C library's time_t is wider than a
     * long. */
    const long whole = (long)seconds;
    const long time[2] = {whole, (long)((seconds - (double)whole) * 1e9)};
    syscall(SYS_futex, number, (int)of, seen, seconds < 0 ? NULL : time, NULL, 0);
}

static inline void qn__futex_wake(atomic_uint *number, int sleepers, qn__futex_of of) {
    enum { WAKE = 1 };
    syscall(SYS_futex, number, WAKE | (int)of, sleepers, NULL, NULL, 0);
}

#endif
