/* The devices of a user's kernel: those that take part, its code for them, and the team. */
#ifndef QN_USERKERNEL_RUN_USER_DEVICES_H
#define QN_USERKERNEL_RUN_USER_DEVICES_H

#include "userkernel/run/user_kernel.h"

/* Chooses the devices of kernel->job, and compiles the kernel for processors if one takes part.
 * Fails with QN_USAGE or QN_UNSUPPORTED (a device of kernel->compute that is not there, no C
 * compiler), QN_IO or QN_MEMORY. */
qn_status qn__user_devices_choose(qn_kernel *kernel, qn_error *err);

/* Makes the team of these devices. Fails as qn__team_create. */
qn_status qn__user_team_open(qn_kernel *kernel, const qn_compute *compute, qn__team **out,
                             qn_error *err);

/* Fills threads and devices of kernel->report. */
void qn__user_devices_report(qn_kernel *kernel, qn__team *team);

void qn__user_devices_free(qn_kernel *kernel);

#endif
