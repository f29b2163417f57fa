/* A device for tests of what stands above devices: it computes with the reference, and it is as
 * slow, as uneven and as mortal as a test asks. Without a plan there is no such device. */
#ifndef QN_DEVICE_FAKE_FAKE_H
#define QN_DEVICE_FAKE_FAKE_H

#include "device/device.h"

enum { QN__FAKE_DEVICES = 8 };

/* How one fake device behaves. Grains and calls are counted from 1 over the life of a worker; 0
 * means never. A device that failed fails at every call from then on. */
typedef struct qn__fake_behaviour {
    double rate;          /* items a second that it pretends to compute; 0: as fast as it can */
    double call;          /* seconds that each call takes before its first item, as a launch does */
    double start;         /* seconds that opening takes */
    double sharing;       /* seconds that collect takes, and update after it */
    double noise;         /* 0.1: each call's time lies up to 10 % beside what the rate says */
    int idle;             /* 1: computes nothing, only takes its time; for benchmarks */
    int refuse;           /* 1: cannot be opened */
    uint64_t fail_at;     /* QN_DEVICE at this grain */
    uint64_t fail_update; /* at this update */
    uint64_t fail_collect; /* when sums are fetched for this time */
    uint64_t fail_step;    /* at this step of its own; the late device tells with a later call */
    uint64_t fail_flush;   /* when it is waited for this time */
    uint64_t fail_apply;   /* at this call of apply */
    uint64_t fail_load, fail_save;
    uint64_t miscount; /* one item too many is told when sums are fetched for this time */
    uint64_t stall_at; /* waits `stall` seconds before this grain */
    double stall;
    uint64_t change_at;  /* from this grain on the rate is `change_rate` */
    double change_after; /* or from so many seconds after the first grain on; 0: never */
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

/* The same devices, not registered: with steps of their own (train_step), which are over when the
 * call is back, or which are told of late (flush). */
extern const qn__device_table qn__fake_lone_device, qn__fake_late_device;

#endif
