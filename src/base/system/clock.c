#include "base/system/clock.h"

#include <time.h>

double qn__now(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
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
