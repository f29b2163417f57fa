/* A device for tests of the levels above devices. It computes with the reference; the plan of a
 * test sets its speed, its noise and its failures. Without a plan there is no such device. */
#ifndef QN_TESTS_FAKE_DEVICE_H
#define QN_TESTS_FAKE_DEVICE_H

#include "device/device.h"

enum { QN__FAKE_DEVICES = 8 };

/* How one fake device behaves. Grains and calls are counted from 1 over the life of a worker; 0
 * means never. A grain of a host job counts as an item. After a failure every call fails. */
typedef struct qn__fake_behaviour {
    double rate;      /* items a second, simulated by sleeping; 0: as fast as it can */
    double call;      /* seconds that each call takes before its first item, like a launch */
    double start;     /* seconds that opening takes */
    double sharing;   /* seconds that collect takes, and update after it */
    double noise;     /* 0.1: each call takes up to 10 % more or less time than the rate gives */
    int idle;         /* 1: computes nothing, only takes the time; for benchmarks */
    int refuse;       /* 1: cannot be opened */
    uint64_t fail_at; /* QN_DEVICE at this grain */
    uint64_t fail_update;  /* at this update */
    uint64_t fail_collect; /* at this call of collect */
    uint64_t fail_step;  /* at this step of its own; the late device reports it with a later call */
    uint64_t fail_flush; /* at this call of flush */
    uint64_t fail_apply; /* at this call that applies */
    uint64_t fail_load, fail_save;
    uint64_t miscount; /* this call of collect counts one item too many */
    uint64_t stall_at; /* waits `stall` seconds before this grain */
    double stall;
    uint64_t change_at;  /* from this grain on the rate is `change_rate` */
    double change_after; /* or from so many seconds after the first grain; 0: never */
    double change_rate;
} qn__fake_behaviour;

typedef struct qn__fake_plan {
    uint32_t count; /* devices, at most QN__FAKE_DEVICES */
    qn__fake_behaviour device[QN__FAKE_DEVICES];
} qn__fake_plan;

/* Sets the plan for workers opened from now on, and adds the kind "fake" to the list of devices;
 * NULL: there are none. The plan is copied. Not thread-safe while a worker is being opened. */
void qn__fake_set(const qn__fake_plan *plan);

extern const qn__device_table qn__fake_device;

/* The same devices, not registered, with steps of their own (train_step): the lone device completes
 * a step within the call, the late device reports it later (flush). */
extern const qn__device_table qn__fake_lone_device, qn__fake_late_device;

#endif
