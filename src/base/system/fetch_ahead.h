/* Begins to fetch a line of memory that will be written. */
#ifndef QN_BASE_SYSTEM_FETCH_AHEAD_H
#define QN_BASE_SYSTEM_FETCH_AHEAD_H

/* `at` may lie outside of any memory. A line that another core has read or written since is taken
 * from its cache, which is what storing to it would wait for. The instruction is written out,
 * because compilers omit it for the oldest processors; these ignore it. */
static inline void qn__fetch_to_write(const void *at) {
#if defined(__x86_64__)
    __asm__ volatile("prefetchw %0" ::"m"(*(const char *)at));
#else
    __builtin_prefetch(at, 1);
#endif
}

#endif
