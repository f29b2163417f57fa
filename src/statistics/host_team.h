/* The team of a computation that needs no network, such as statistics: threads, and the ranks of a
 * cluster. */
#ifndef QN_STATISTICS_HOST_TEAM_H
#define QN_STATISTICS_HOST_TEAM_H

#include "data/table/data.h"
#include "team/team.h"

/* Fills *out: the devices and ranks of `compute`, or the CPU alone where it is NULL. `threads`,
 * unless it is 0, replaces that of `compute`. `compute` may be NULL. Fails with QN_USAGE (an
 * invalid size). */
qn_status qn__host_team_compute(const char *function, const qn_compute *compute, int threads,
                                qn_compute *out, qn_error *err);

/* For jobs without a kernel: *host is `compute` without the devices that compute kernels only.
 * *kernels is 1 if `compute` has such devices. Devices that compute neither host jobs nor kernels
 * stay, so that the team refuses them. "auto" means the CPU alone, unless `large` is 1. Fails as
 * qn_compute_check. */
qn_status qn__host_team_split(const qn_compute *compute, int large, qn_compute *host, int *kernels,
                              qn_error *err);

/* Makes the team, with a kernel as qn__team_create_for does; NULL: host jobs only. Among ranks it
 * is collective: they compare their data and what they want of it
 * (`what`, one line of text, at most 1,000 bytes). `status` is the result of this rank's own
 * checks, with `err` (not NULL) filled if it is not QN_OK; all fail where one does. *out is NULL
 * then. */
qn_status qn__host_team_open(const qn_compute *compute, const qn__kernel_job *kernel,
                             const qn_data *data, const char *what, qn_status status,
                             qn__team **out, qn_error *err);

/* Destroys the team; NULL is accepted. `status` is that of the work: the other ranks fail with this
 * one, unless only its devices were lost. Returns `status`. */
qn_status qn__host_team_close(qn__team *team, const qn_compute *compute, qn_status status,
                              qn_error *err);

#endif
