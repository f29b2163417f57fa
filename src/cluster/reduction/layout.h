/* Which rank adds up which words of a reduction, and which rank sends what to which.
 *
 * The words of a reduction are divided evenly among the machines, and the segment of a machine
 * among its ranks. For the segment of each rank on another machine, one rank of this machine is the
 * delegate. It adds the parts of this machine's ranks and sends the sum to the segment's owner; the
 * owner returns the total to it. Segments are sent in pieces, so that adding and sending
 * overlap. */
#ifndef QN_CLUSTER_REDUCTION_LAYOUT_H
#define QN_CLUSTER_REDUCTION_LAYOUT_H

#include "base/error.h"
#include "cluster/transport/ranks.h"

typedef struct qn__layout {
    uint32_t members, machines;
    uint32_t *order;    /* the members, by machine */
    uint32_t *start;    /* of machines + 1: where each begins in `order` */
    uint32_t *position; /* of each rank: index in `order` */
    uint32_t *home;     /* of each rank: index of its machine among those of the members */
    uint64_t words;
    uint32_t cuts; /* pieces per segment */
} qn__layout;

/* A range of words that has one owner. */
typedef struct qn__piece {
    uint64_t first, count;
    uint32_t number; /* position of the owner * cuts + index within the segment */
    uint32_t owner;  /* its rank */
    uint32_t state;
    uint32_t parts; /* from other machines, added so far */
    uint64_t holds; /* contributions in what was added so far */
} qn__piece;

/* Allocates for `ranks` ranks. */
qn_status qn__layout_open(qn__layout *layout, uint32_t ranks, qn_error *err);
void qn__layout_close(qn__layout *layout);

/* Sets the members; machine[r] is equal for ranks that share memory. */
void qn__layout_members(qn__layout *layout, const qn__ranks *members, const uint32_t *machine);
void qn__layout_words(qn__layout *layout, uint64_t words);
/* Pieces of a segment, where `members` ranks on several machines add up so many words. */
uint32_t qn__layout_cuts(uint64_t words, uint32_t members);

/* The words of a piece; 0 if there is no piece of that number. */
int qn__layout_piece(const qn__layout *layout, uint32_t number, qn__piece *piece);
/* The rank of machine `home` that sums, sends and receives the segment of `owner`; on the owner's
 * own machine, the owner. */
uint32_t qn__layout_delegate(const qn__layout *layout, uint32_t home, uint32_t owner);
/* The maximum number of pieces that one rank handles, for any number of words. */
uint32_t qn__layout_most_pieces(uint32_t ranks);
/* Fills the pieces that `rank` handles, those of other machines first. Returns how many. */
uint32_t qn__layout_pieces(const qn__layout *layout, uint32_t rank, qn__piece *piece);

#endif
