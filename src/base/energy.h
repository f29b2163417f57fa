/* The energy that the machine's processors use, as Linux tells it: the counters of RAPL under
 * /sys/class/powercap, in microjoules, which begin again at a range of their own. Most systems let
 * only root read them, and many have none: then there is nothing to report, which is no failure. */
#ifndef QN_BASE_ENERGY_H
#define QN_BASE_ENERGY_H

#include <stdint.h>

enum { QN__ENERGY_DOMAINS = 32, QN__ENERGY_PATH = 160 };

typedef struct qn__energy {
    int domains;
    struct qn__energy_domain {
        char path[QN__ENERGY_PATH]; /* of its counter */
        uint64_t range;             /* the counter goes from here to 0; 0: unknown */
        uint64_t last;              /* what it was at the last reading */
    } domain[QN__ENERGY_DOMAINS];
    double joules; /* used since the opening, as the readings saw it */
} qn__energy;

/* Finds the counters of processors and their memory in `folder` ("/sys/class/powercap"): each once,
 * a part of another's not at all. Returns how many can be read. Nothing is kept open. */
int qn__energy_open(qn__energy *energy, const char *folder);

/* Joules since the opening. A counter that began again once between two readings is seen, one that
 * did so twice is not, so read every few minutes. Returns 0 when there is no counter, or one can
 * no longer be read; *joules is then as before. */
int qn__energy_read(qn__energy *energy, double *joules);

#endif
