/* The energy that a member's device used while a run was at work: differences of its counter
 * (device.h), taken at the beginning and the end and now and then in between, so that a counter
 * that begins again is seen. */
#ifndef QN_TEAM_METER_H
#define QN_TEAM_METER_H

#include "device/device.h"

typedef struct qn__meter {
    double last;   /* what the counter said */
    double joules; /* used so far */
    int running;   /* 1: `last` is of this stretch of the run */
} qn__meter;

/* A stretch of the run begins: what was used before it does not count. */
void qn__meter_begin(qn__meter *meter, const qn__device_table *device, uint32_t index);
/* Adds what was used since the last call. Without a counter, or when it can no longer be read,
 * nothing is known from then on. */
void qn__meter_read(qn__meter *meter, const qn__device_table *device, uint32_t index);
/* Joules so far; NaN where they are not known. */
double qn__meter_joules(const qn__meter *meter);

#endif
