/* Threads that drive workers: one for each member but one, asleep between calls. A call wakes only
 * the threads of its members. */
#ifndef QN_TEAM_DRIVERS_H
#define QN_TEAM_DRIVERS_H

#include "base/error.h"
#include <stdint.h>

typedef struct qn__drivers qn__drivers;

/* For members 0 .. count-1, at most 64. The caller's thread drives member `own` if it takes part,
 * otherwise the first member that does. After a failure *out still has to be destroyed. */
qn_status qn__drivers_create(uint32_t count, uint32_t own, qn__drivers **out, qn_error *err);
/* Accepts NULL. */
void qn__drivers_destroy(qn__drivers *drivers);

/* Calls body(context, member) for every member in the bit set `set`, in parallel; returns when all
 * have returned. */
void qn__drivers_run(qn__drivers *drivers, uint64_t set, void (*body)(void *context, int member),
                     void *context);

#endif
