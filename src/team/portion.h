/* A rank's portion of a machine that several ranks share.
 *
 * Ranks whose processes may use the very same cores divide them, neighbours in the machine staying
 * together; ranks that a launcher bound to cores of their own keep these. Devices that were not
 * named one by one ("auto", "cuda:all") are dealt round, unless the launcher shows each rank
 * others. Threads and devices that someone asked for by number are left as they are. */
#ifndef QN_TEAM_PORTION_H
#define QN_TEAM_PORTION_H

#include "team/team.h"
#include <sched.h>

enum { QN__CLAIM_CORES = 1024 };

/* What a rank says of the machine that it sees; all zero where a rank is lost. */
typedef struct qn__claim {
    uint64_t kernel;  /* the running system */
    uint64_t group;   /* the control group whose quota it lives on */
    uint64_t visible; /* the devices that the launcher lets it see */
    uint64_t mask[QN__CLAIM_CORES / 64];
} qn__claim;

/* The calling thread's cores as they were before. */
typedef struct qn__portion {
    cpu_set_t *before; /* NULL: nothing was changed */
    size_t size;
} qn__portion;

/* What `rank` gets, worked out from what all said. */
typedef struct qn__dealt {
    uint32_t same_cores, core_place;     /* ranks that may use the very same cores, and its number
                                            among them */
    uint32_t same_devices, device_place; /* that see the same devices */
    uint32_t same_quota;                 /* that live on the same quota */
} qn__dealt;

void qn__portion_deal(const qn__claim *claims, uint32_t ranks, uint32_t rank, qn__dealt *dealt);

/* The cores of the one at `place` of `same` ranks, of `cores` in a row: at least one. */
void qn__portion_cores(uint32_t cores, uint32_t same, uint32_t place, uint32_t *first,
                       uint32_t *count);

/* Leaves those of the members that are the rank's. Never nobody. */
void qn__portion_members(const qn__dealt *dealt, qn__member *members, uint32_t *count);

/* Divides the machine among the ranks of compute->cluster (a round of all): the members that are
 * this rank's stay, compute->threads becomes its number of cores, and the calling thread, with all
 * that it starts from now on, is bound to them. `members` NULL: there is nothing to be dealt.
 * Nothing happens without other ranks. */
qn_status qn__portion_take(qn_compute *compute, qn__member *members, uint32_t *count,
                           qn__portion *portion, qn_error *err);

/* Gives the calling thread its cores back. */
void qn__portion_give(qn__portion *portion);

#endif
