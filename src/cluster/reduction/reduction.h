/* What the callers of rounds say and are told; cluster.h has the calls. */
#ifndef QN_CLUSTER_REDUCTION_REDUCTION_H
#define QN_CLUSTER_REDUCTION_REDUCTION_H

#include <stdint.h>

/* What a round is about: each kind has speeds of its own. */
typedef enum qn__round_kind { QN__ROUND_STEP, QN__ROUND_APPLY, QN__ROUND_OTHER } qn__round_kind;
enum { QN__ROUND_KINDS = 3 };

typedef struct qn__round {
    qn__round_kind kind;
    uint64_t words; /* int64s that are added up */
    uint32_t units; /* 0: every rank that is alive adds something, nothing is shared out */
} qn__round;

typedef struct qn__units {
    uint32_t first, count;
} qn__units;

/* What a rank's share costs it: a round of n units takes start + n * each seconds; each 0: not
 * known. Told to all with the next total, and shares follow from it (shares.h). */
typedef struct qn__cost {
    double start, each;
} qn__cost;

typedef struct qn__rank_traffic {
    uint64_t bytes_out, bytes_in; /* over the network */
    uint64_t bytes_shared;        /* read from other ranks' memory on this machine */
    uint64_t rounds;
    double waiting;    /* seconds in qn__round_add_up, adding included */
    double recovering; /* of them in which the ranks agreed on who is left */
    uint32_t recoveries;
    double longest; /* seconds from the notice of a loss to the total of the round that it hit */
    double lost_at; /* moment of the last such notice */
} qn__rank_traffic;

#endif
