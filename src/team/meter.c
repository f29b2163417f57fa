#include "team/meter.h"

#include <math.h>

static int read_counter(const qn__device_table *device, uint32_t index, double *joules) {
    return device->energy && device->energy(index, joules);
}

void qn__meter_begin(qn__meter *m, const qn__device_table *device, uint32_t index) {
    m->running = read_counter(device, index, &m->last);
}

void qn__meter_read(qn__meter *m, const qn__device_table *device, uint32_t index) {
    double now;
    if (!m->running)
        return;
    m->running = read_counter(device, index, &now);
    if (!m->running)
        return;
    if (now > m->last)
        m->joules += now - m->last;
    m->last = now;
}

double qn__meter_joules(const qn__meter *m) { return m->running ? m->joules : (double)NAN; }
