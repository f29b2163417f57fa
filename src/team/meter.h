/* The energy that a member's device used during a run: differences of its counter (device.h), read
 * at the start, at the end and periodically, so that a wrap-around is noticed. */
#ifndef QN_TEAM_METER_H
#define QN_TEAM_METER_H

#include "device/device.h"

typedef struct qn__meter {
    double last;   /* last value of the counter */
    double joules; /* used so far */
    int running;   /* 1: `last` is of the current interval */
} qn__meter;

/* Begins an interval: energy used before it does not count. */
void qn__meter_begin(qn__meter *meter, const qn__device_table *device, uint32_t index);
/* Adds the energy used since the last call. Without a counter, or if it can no longer be read, the
 * energy is unknown from then on. */
void qn__meter_read(qn__meter *meter, const qn__device_table *device, uint32_t index);
/* Joules so far; NaN if unknown. */
double qn__meter_joules(const qn__meter *meter);

#endif
