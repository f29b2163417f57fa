/* Memory that a process may still use. */
#ifndef QN_BASE_SYSTEM_AVAILABLE_H
#define QN_BASE_SYSTEM_AVAILABLE_H

#include <stdint.h>

/* Bytes, the least of what the system has, what the control group leaves and what the limits of
 * address space and private memory leave; UINT64_MAX where none of them is known. An estimate:
 * other processes take and release memory at any moment. What it says of them may be 20 ms old. */
uint64_t qn__available_memory(void);

/* The least that a control group of this process leaves, of its own and those around it;
 * UINT64_MAX: none has a limit. `list` is a file like /proc/self/cgroup, `root` where the groups'
 * files are. */
uint64_t qn__available_in_groups(const char *list, const char *root);

/* 1: this process has a limit of its address space or of its private memory (ulimit -v, -d). */
int qn__memory_is_limited(void);

#endif
