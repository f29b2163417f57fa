/* What the files that write lanes share. */
#ifndef QN_USERKERNEL_COMPILER_USER_LANES_PARTS_H
#define QN_USERKERNEL_COMPILER_USER_LANES_PARTS_H

#include "userkernel/language/user_source.h"

/* Bits of a loop's `varies`: items may leave the loop after different numbers of rounds; some items
 * may `continue` while others do not. */
enum { QN__LOOP_VARIES = 1, QN__LOOP_SKIPS = 2 };

/* Most masks: a text is nested 80 deep at most, and a loop has two. */
enum { QN__LANES_WORD = 40, QN__LANES_MASKS = 168 };

typedef struct qn__lanes_writer {
    const qn__user_source *source;
    const qn__user_tree *tree;
    qn__text *out;
    uint32_t names; /* of masks, so far */
    uint32_t level; /* the number of enclosing branches and loops that only some items take */
    uint32_t masks; /* each is a part of the one before */
    uint32_t mask[QN__LANES_MASKS]; /* their names */
    uint32_t loop_mask; /* of the loop around: its first mask; 0: items take it together */
    int sure;           /* 1: some item takes part in what is written now */
    int each;           /* 1: within QV_EACH, where `now` is the mask of one vector */
    char now[QN__LANES_WORD];
} qn__lanes_writer;

#define qn__lanes_add(w, ...) qn__text_add((w)->out, __VA_ARGS__)

/* Finds for each variable `home`, the loop in which it is read, and for each loop the variable that
 * counts its rounds. */
void qn__lanes_homes(qn__user_tree *tree);
/* The sum, or difference, that the assignment of a counter assigns. */
const qn__user_node *qn__lanes_step(const qn__user_tree *tree, const qn__user_node *n);

/* Whether the body of a loop has a "continue" of its own. */
int qn__lanes_continues(const qn__user_tree *tree, uint32_t list);

uint32_t qn__lanes_index(const qn__user_tree *tree, uint32_t at);

/* Writes a value that is the same for all items. Faults in it count only if some item takes part.
 */
void qn__lanes_same(qn__lanes_writer *w, uint32_t at);
/* Writes a value as a vector of the type. */
void qn__lanes_value(qn__lanes_writer *w, uint32_t at, qn__user_type type);
/* Writes whether a value is not 0, as a mask. */
void qn__lanes_mask(qn__lanes_writer *w, uint32_t at);
/* Writes an assignment that removes from the mask `now` the lanes for which a value is 0. */
void qn__lanes_narrow(qn__lanes_writer *w, uint32_t at);
/* Writes the bin of an array of sums as a vector. */
void qn__lanes_bin(qn__lanes_writer *w, uint32_t index, uint32_t part);

#endif
