/* Who adds up which words of a reduction, and who sends what to whom.
 *
 * The machines share the words of a reduction evenly, and the ranks of a machine share its segment.
 * For each rank's segment of another machine, one rank of this machine adds up what the ranks here
 * have and sends it to the segment's owner; the owner sends the total back to that rank. Segments
 * are sent in pieces, so that adding and sending continue at the same time. */
#ifndef QN_CLUSTER_REDUCTION_LAYOUT_H
#define QN_CLUSTER_REDUCTION_LAYOUT_H

#include "base/error.h"
#include "cluster/transport/ranks.h"

typedef struct qn__layout {
    uint32_t members, machines;
    uint32_t *order;    /* the members, machine by machine */
    uint32_t *start;    /* of machines + 1: where each begins in `order` */
    uint32_t *position; /* of each rank, in `order` */
    uint32_t *home;     /* of each rank: number of its machine among those of the members */
    uint64_t words;
    uint32_t cuts; /* pieces of a segment */
} qn__layout;

/* Some words that have one owner. */
typedef struct qn__piece {
    uint64_t first, count;
    uint32_t number; /* position of the owner * cuts + number within the segment */
    uint32_t owner;  /* the rank */
    uint32_t state;
    uint32_t parts; /* from other machines, that were added */
    uint64_t holds; /* contributions in what was added so far */
} qn__piece;

/* Memory for `ranks` ranks. */
qn_status qn__layout_open(qn__layout *layout, uint32_t ranks, qn_error *err);
void qn__layout_close(qn__layout *layout);

/* For these members; machine[r] is the same for ranks that share memory. */
void qn__layout_members(qn__layout *layout, const qn__ranks *members, const uint32_t *machine);
void qn__layout_words(qn__layout *layout, uint64_t words);

/* The words of a piece; 0 when there is no piece of that number. */
int qn__layout_piece(const qn__layout *layout, uint32_t number, qn__piece *piece);
/* The rank of machine `home` that adds up, sends and receives the segment of `owner`; of the
 * owner's own machine, the owner. */
uint32_t qn__layout_delegate(const qn__layout *layout, uint32_t home, uint32_t owner);
/* The most pieces that one rank may have to do with, whatever the words. */
uint32_t qn__layout_most_pieces(uint32_t ranks);
/* Fills those that `rank` has to do with, other machines' first. Returns how many. */
uint32_t qn__layout_pieces(const qn__layout *layout, uint32_t rank, qn__piece *piece);

#endif
