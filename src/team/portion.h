/* The part of a machine that a rank uses, if several ranks share the machine.
 *
 * Ranks with the same CPU affinity divide the cores, and each gets neighbouring ones. Ranks that a
 * launcher bound to different cores keep these. Devices that were not named individually ("auto",
 * "cuda:all") are distributed round-robin, unless the launcher shows each rank different ones.
 * Threads and devices given by number are unchanged. */
#ifndef QN_TEAM_PORTION_H
#define QN_TEAM_PORTION_H

#include "team/team.h"
#include <sched.h>

enum { QN__CLAIM_CORES = 1024 };

/* What a rank knows of its machine; all zero for a lost rank. */
typedef struct qn__claim {
    uint64_t kernel;  /* identifies the running system */
    uint64_t group;   /* identifies the control group whose quota applies */
    uint64_t visible; /* identifies the devices that the launcher made visible */
    uint64_t mask[QN__CLAIM_CORES / 64];
} qn__claim;

/* The calling thread's affinity before qn__portion_take. */
typedef struct qn__portion {
    cpu_set_t *before; /* NULL: nothing was changed */
    size_t size;
} qn__portion;

/* The part of `rank`, computed from all claims. */
typedef struct qn__dealt {
    uint32_t same_cores, core_place;     /* ranks with the same affinity; index among them */
    uint32_t same_devices, device_place; /* the same for visible devices */
    uint32_t same_quota;                 /* number of ranks with the same quota */
} qn__dealt;

void qn__portion_deal(const qn__claim *claims, uint32_t ranks, uint32_t rank, qn__dealt *dealt);

/* The cores of index `place` among `same` ranks, out of `cores` consecutive ones: at least one. */
void qn__portion_cores(uint32_t cores, uint32_t same, uint32_t place, uint32_t *first,
                       uint32_t *count);

/* Keeps the members that belong to the rank, at least one. */
void qn__portion_members(const qn__dealt *dealt, qn__member *members, uint32_t *count);

/* Collective: divides the machine among the ranks of compute->cluster. Keeps the members that are
 * this rank's, sets compute->threads to its number of cores, and binds the calling thread to them,
 * with all threads that it creates from now on. `members` NULL: no devices are divided. Does
 * nothing without other ranks. */
qn_status qn__portion_take(qn_compute *compute, qn__member *members, uint32_t *count,
                           qn__portion *portion, qn_error *err);

/* Restores the calling thread's affinity. */
void qn__portion_give(qn__portion *portion);

#endif
