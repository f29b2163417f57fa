/* Several devices of a kind that add up the sums of a step themselves (device.h: joint_open). For
 * the files of src/team only. */
#ifndef QN_TEAM_TEAM_JOINT_H
#define QN_TEAM_TEAM_JOINT_H

#include "team/team_state.h"

/* Whether the members of the set may be able to add up their sums themselves, and were not tried.
 */
int qn__team_joint_is_new(const qn__team *team, uint64_t set);
/* Tries them: they are open if they can and are faster so. No step is under way. */
void qn__team_joint_choose(qn__team *team, uint64_t set);
int qn__team_joint_is_open(const qn__team *team, uint64_t set);

/* Adds up the sums that the workers of the set have kept. 1: each has the total, and the members'
 * parts have the tallies. 0: each has its own sums still, for the host. */
int qn__team_joint_add(qn__team *team, uint64_t set);
/* After such a failure no device was lost: the host adds up all further sums, and a note says why.
 */
void qn__team_joint_refuse(qn__team *team);

/* Before a member's worker is closed; and the end. */
void qn__team_joint_lose(qn__team *team, uint32_t member);
void qn__team_joint_close(qn__team *team);

#endif
