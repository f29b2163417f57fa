/* Time for reports and schedules; results must not depend on it. */
#ifndef QN_BASE_CLOCK_H
#define QN_BASE_CLOCK_H

/* Seconds of a monotonic clock. */
double qn__now(void);

#endif
