/* Time for reports and schedules; results must not depend on it. */
#ifndef QN_BASE_SYSTEM_CLOCK_H
#define QN_BASE_SYSTEM_CLOCK_H

#include <time.h>

/* Seconds of a monotonic clock. */
double qn__now(void);

/* When so many seconds from now have passed, for pthread_cond_timedwait by CLOCK_MONOTONIC. */
struct timespec qn__after(double seconds);

/* Processor time that all threads of this process have had. */
double qn__processor_seconds(void);

/* A wait with a time limit in which the thread polls. Begin it with qn__wait_begin. */
typedef struct qn__wait {
    double looked, seconds;
} qn__wait;

qn__wait qn__wait_begin(void);

/* Seconds waited until this poll. Of the time since the last poll at most a quarter of a second
 * counts: a process that was stopped, by Ctrl-Z or to be moved, has not waited meanwhile. */
double qn__wait_seconds(qn__wait *wait);

#endif
