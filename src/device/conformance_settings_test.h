/* What chooses other cases than the usual ones, or fewer, in the conformance suite and its like:
 * QN_TEST_SEED, QN_TEST_CASES; QN_TEST_DEVICE ("cuda:0"): only this device, in every case;
 * QN_TEST_SECONDS: the cases of a test begin for so long only; QN_TEST_TIMEOUT: seconds after which
 * a silent device counts as failed. */
#ifndef QN_DEVICE_CONFORMANCE_SETTINGS_TEST_H
#define QN_DEVICE_CONFORMANCE_SETTINGS_TEST_H

#include "base/system/clock.h"
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

static inline uint64_t setting(const char *name, uint64_t otherwise) {
    const char *text = getenv(name);
    return text ? strtoull(text, NULL, 10) : otherwise;
}

/* Whether the device of this name takes part. */
static inline int is_wanted(const char *id) {
    const char *only = getenv("QN_TEST_DEVICE");
    return !only || strcmp(only, id) == 0;
}

static double began; /* of the present test's cases */

static inline void time_begins(void) { began = qn__now(); }

static inline int time_is_over(void) {
    const uint64_t seconds = setting("QN_TEST_SECONDS", 0);
    return seconds != 0 && qn__now() - began > (double)seconds;
}

#endif
