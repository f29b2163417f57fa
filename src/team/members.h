/* The members of a team: the list of devices in a qn_compute, parsed and checked. */
#ifndef QN_TEAM_MEMBERS_H
#define QN_TEAM_MEMBERS_H

#include "team/team.h"

/* The members that `compute` requests (include/quern/device.h has the grammar), in the order of the
 * list, devices of one kind ascending; at most `capacity`, their number in *count. Fails with
 * QN_USAGE for a malformed list. QN_UNSUPPORTED for a device that does not exist (the message lists
 * those that do) or is known to be refused. Opens nothing. */
qn_status qn__members_of(const qn_compute *compute, qn__member *members, uint32_t capacity,
                         uint32_t *count, qn_error *err);

/* Fails with QN_UNSUPPORTED: the device `name` does not support the program. The remedy names kinds
 * of devices on this machine that do. */
qn_status qn__member_lacks(const char *name, const qn__device_table *device,
                           const qn__program *program, qn_error *err);

#endif
