/* What the callers of reductions say and are told; cluster.h has the calls. */
#ifndef QN_CLUSTER_REDUCTION_REDUCTION_H
#define QN_CLUSTER_REDUCTION_REDUCTION_H

#include <stdint.h>

/* What a reduction is about: each kind has speeds of its own. */
typedef enum qn__reduction_kind {
    QN__REDUCTION_STEP,
    QN__REDUCTION_APPLY,
    QN__REDUCTION_OTHER
} qn__reduction_kind;
enum { QN__REDUCTION_KINDS = 3 };

typedef struct qn__reduction {
    qn__reduction_kind kind;
    uint64_t words;  /* int64s that are added up */
    uint32_t chunks; /* 0: every rank that is alive adds something, nothing is shared out */
} qn__reduction;

typedef struct qn__chunk_range {
    uint32_t first, count;
} qn__chunk_range;

/* What a rank's share costs it: a reduction of n chunks takes start + n * each seconds; each 0: not
 * known. Told to all with the next total, and shares follow from it (shares.h). */
typedef struct qn__cost {
    double start, each;
} qn__cost;

typedef struct qn__rank_traffic {
    uint64_t bytes_out, bytes_in; /* over the network */
    uint64_t bytes_shared;        /* read from other ranks' memory on this machine */
    uint64_t reductions;
    double waiting;    /* seconds in qn__reduction_finish, adding included */
    double recovering; /* of them in which the ranks agreed on who is left */
    uint32_t recoveries;
    double
        longest; /* seconds from the notice of a loss to the total of the reduction that it hit */
    double lost_at; /* moment of the last such notice */
} qn__rank_traffic;

#endif
