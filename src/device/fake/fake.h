/* A device for tests of what stands above devices: it computes with the reference, and it is as
 * slow, as uneven and as mortal as a test asks. Without a plan there is no such device. */
#ifndef QN_DEVICE_FAKE_FAKE_H
#define QN_DEVICE_FAKE_FAKE_H

#include "device/device.h"

enum { QN__FAKE_DEVICES = 8 };

/* How one fake device behaves. Grains are counted from 1 over the life of a worker; 0 means never.
 */
typedef struct qn__fake_behaviour {
    double rate;           /* items a second that it pretends to compute; 0: as fast as it can */
    double start;          /* seconds that opening takes */
    double noise;          /* 0.1: each call's time lies up to 10 % beside what the rate says */
    uint64_t fail_at;      /* QN_DEVICE at this grain, and at every call from then on */
    uint64_t fail_update;  /* the same at this update */
    uint64_t fail_collect; /* the same when sums are fetched for this time */
    uint64_t stall_at;     /* waits `stall` seconds before this grain */
    double stall;
    uint64_t change_at; /* from this grain on the rate is `change_rate` */
    double change_rate;
} qn__fake_behaviour;

typedef struct qn__fake_plan {
    uint32_t count; /* devices, at most QN__FAKE_DEVICES */
    qn__fake_behaviour device[QN__FAKE_DEVICES];
} qn__fake_plan;

/* Sets the plan for workers opened from now on; NULL: no fake devices. The plan is copied. For
 * tests: not while a worker is being opened on another thread. */
void qn__fake_set(const qn__fake_plan *plan);

extern const qn__device_table qn__fake_device;

#endif
