/* Time for reports and schedules; never for results. */
#ifndef QN_BASE_CLOCK_H
#define QN_BASE_CLOCK_H

/* Seconds of a monotonic clock. */
double qn__now(void);

#endif
