/* The types of reductions that callers use; cluster.h has the calls. */
#ifndef QN_CLUSTER_REDUCTION_REDUCTION_H
#define QN_CLUSTER_REDUCTION_REDUCTION_H

#include <stdint.h>

/* The subject of a reduction: each kind has its own measured costs. */
typedef enum qn__reduction_kind {
    QN__REDUCTION_STEP,
    QN__REDUCTION_APPLY,
    QN__REDUCTION_OTHER
} qn__reduction_kind;
enum { QN__REDUCTION_KINDS = 3 };

typedef struct qn__reduction {
    qn__reduction_kind kind;
    uint64_t words;  /* int64s that are summed */
    uint32_t chunks; /* 0: every live rank adds something; nothing is divided */
    /* The last so many words of a total are used only as the nearest float (qn__from_units), so
     * some ranks may get them rounded to it. */
    uint64_t floats;
} qn__reduction;

typedef struct qn__chunk_range {
    uint32_t first, count;
} qn__chunk_range;

/* The cost of a share: n chunks take start + n * each seconds; each 0: unknown. It is sent with the
 * next total, and shares follow from it (shares.h). */
typedef struct qn__cost {
    double start, each;
} qn__cost;

typedef struct qn__rank_traffic {
    uint64_t bytes_out, bytes_in; /* over the network */
    uint64_t bytes_early;         /* of bytes_out: while this rank was computing its part */
    uint64_t bytes_shared;        /* read from other ranks' memory on this machine */
    uint64_t reductions;
    double waiting;    /* seconds in qn__reduction_finish, including the additions */
    double recovering; /* of them in changes of the view */
    uint32_t recoveries;
    double
        longest; /* seconds from the notice of a loss to the total of the interrupted reduction */
    double lost_at; /* time of the last such notice */
} qn__rank_traffic;

#endif
