/* The energy that the machine's processors use, from Linux: the RAPL counters under
 * /sys/class/powercap, in microjoules. Each counter wraps around at its own range. Most systems let
 * only root read them, and many have none: then nothing is reported, which is not a failure. */
#ifndef QN_BASE_SYSTEM_ENERGY_H
#define QN_BASE_SYSTEM_ENERGY_H

#include <stdint.h>

enum { QN__ENERGY_DOMAINS = 32, QN__ENERGY_PATH = 160 };

typedef struct qn__energy {
    int domains;
    struct qn__energy_domain {
        char path[QN__ENERGY_PATH]; /* of its counter */
        uint64_t range;             /* the counter wraps around after this value; 0: unknown */
        uint64_t last;              /* value at the last reading */
    } domain[QN__ENERGY_DOMAINS];
    double joules; /* used since the opening, summed over the readings */
} qn__energy;

/* Finds the counters of processors and their memory in `folder` ("/sys/class/powercap"). Each is
 * counted once; parts of other counters are left out. Returns how many can be read. No file is kept
 * open. */
int qn__energy_open(qn__energy *energy, const char *folder);

/* Joules since the opening. A counter that wrapped around twice between two readings cannot be
 * detected, so read every few minutes. Returns 0 when there is no counter, or one can no longer be
 * read; *joules is then unchanged. */
int qn__energy_read(qn__energy *energy, double *joules);

#endif
