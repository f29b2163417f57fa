/* What a planned run costs, and the same job on fewer or more hosts. */
#ifndef QN_PLAN_PLAN_SCALE_H
#define QN_PLAN_PLAN_SCALE_H

#include "plan/plan_run.h"
#include <quern/plan.h>

/* Numbers of hosts that are tried: 1, 2, 4, ..., as a run can have. */
enum { QN__PLAN_SCALES = 11 };

/* Of all hosts during the run; NaN if the power of a host is not known. */
double qn__plan_joules(const qn__plan_team *described, const qn__plan_run *run);

/* Of all hosts for so many seconds; NaN if the price of a host is not known. */
double qn__plan_price(const qn__plan_team *described, double seconds);

/* Plans the job on 1, 2, 4, ... hosts of the described kinds, in the same proportions, without the
 * events. Fills up to QN__PLAN_SCALES elements and sets *count to their number. */
qn_status qn__plan_scale(const qn__plan_team *described, const qn__plan_job *job,
                         qn_plan_scale *out, uint32_t *count, qn_error *err);

#endif
