/* Threads that drive workers: one for each member but one, asleep between its calls. Only those
 * that a call is for are woken. */
#ifndef QN_TEAM_DRIVERS_H
#define QN_TEAM_DRIVERS_H

#include "base/error.h"
#include <stdint.h>

typedef struct qn__drivers qn__drivers;

/* For members 0 .. count-1, at most 64. Member `own` is driven by the caller's thread wherever it
 * takes part, else the first that does. After a failure *out is to be destroyed. */
qn_status qn__drivers_create(uint32_t count, uint32_t own, qn__drivers **out, qn_error *err);
/* Accepts NULL. */
void qn__drivers_destroy(qn__drivers *drivers);

/* body(context, member) for every member of `set`, a bit each, at the same time; returns when all
 * have returned. */
void qn__drivers_run(qn__drivers *drivers, uint64_t set, void (*body)(void *context, int member),
                     void *context);

#endif
