#include "base/system/clock.h"

double qn__now(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

struct timespec qn__after(double seconds) {
    static const long second = 1000000000;
    struct timespec end;
    clock_gettime(CLOCK_MONOTONIC, &end);
    const time_t whole = (time_t)seconds;
    end.tv_sec += whole;
    end.tv_nsec += (long)((seconds - (double)whole) * 1e9);
    end.tv_sec += end.tv_nsec / second;
    end.tv_nsec %= second;
    return end;
}

double qn__processor_seconds(void) {
    struct timespec used;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
    return (double)used.tv_sec + 1e-9 * (double)used.tv_nsec;
}

qn__wait qn__wait_begin(void) { return (qn__wait){qn__now(), 0}; }

double qn__wait_seconds(qn__wait *wait) {
    const double now = qn__now(), since = now - wait->looked;
    wait->looked = now;
    wait->seconds += since < 0.25 ? since : 0.25;
    return wait->seconds;
}
