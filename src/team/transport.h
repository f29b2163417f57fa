/* How ranks meet: one table for each way, chosen once at the start. A job over one process uses
 * `alone`.
 *
 * Ranks are interchangeable. They meet once a step, to add up integers, which have no order. */
#ifndef QN_TEAM_TRANSPORT_H
#define QN_TEAM_TRANSPORT_H

#include "base/error.h"
#include "num/program.h"

enum { QN__TRANSPORT_VERSION = 1 };

typedef struct qn__transport {
    uint32_t version; /* QN__TRANSPORT_VERSION */
    const char *name;
    /* Ranks of the run and this one's number. */
    int (*ranks)(void);
    int (*rank)(void);
    /* Replaces sums[count] and *tally by the sums over all ranks. */
    qn_status (*add_up)(int64_t *sums, uint64_t count, qn__tally *tally, qn_error *err);
} qn__transport;

/* One process, nobody to meet. */
extern const qn__transport qn__transport_alone;

#endif
