/* The cores that the caller may use, and the CPU quota of control groups. Internal to the pool,
 * qn__cores and its test. */
#ifndef QN_BASE_SYSTEM_CORES_H
#define QN_BASE_SYSTEM_CORES_H

#include <sched.h>
#include <stddef.h>

/* The calling thread's affinity mask in a set that is large enough for this machine, released with
 * CPU_FREE; NULL when it cannot be read. Writes its size in bytes. */
cpu_set_t *qn__own_mask(size_t *size);

/* Cores of the CPU quota, rounded up, at least 1; 0 when there is none or it cannot be read. The
 * first argument is a file such as /proc/self/cgroup, the second the mount point of the groups,
 * such as /sys/fs/cgroup. Supports versions 1 and 2 of control groups; the smallest quota of a
 * group and its parents counts. */
int qn__quota_cores(const char *groups_file, const char *mount);

#endif
