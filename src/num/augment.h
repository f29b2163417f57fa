/* Augmentation: what happens to the values of a picture when it is fetched for training. It is a
 * function of seed, epoch and item, in integers, so that every device gets the same values.
 * docs/exactness.md 17.10. */
#ifndef QN_NUM_AUGMENT_H
#define QN_NUM_AUGMENT_H

#include "num/program.h"
#include <stddef.h>

typedef enum qn__augment_kind {
    QN__AUGMENT_PAD,    /* zeros around the picture */
    QN__AUGMENT_CROP,   /* a window of the item's size, at a random place */
    QN__AUGMENT_FLIP,   /* left and right change places, or not */
    QN__AUGMENT_CUTOUT, /* a square around a random pixel becomes zero */
    QN__AUGMENT_KINDS
} qn__augment_kind;

typedef struct qn__augment_word {
    qn__augment_kind kind;
    uint32_t size; /* pixels of PAD, side of CUTOUT; else 0 */
} qn__augment_word;

/* The words in their order, each kind once at most. A crop comes after every pad, so that a picture
 * keeps its size. */
typedef struct qn__augment {
    qn__shape shape; /* of an item; its values are in the order (c, y, x) */
    uint32_t words;  /* 0: items stay as they are */
    qn__augment_word word[QN__AUGMENT_KINDS];
} qn__augment;

/* All that is done to an item: pixel (y, x) of the result is pixel (top + y, left + x) of the
 * picture, or (top + y, left - x) if it is mirrored. It is zero outside of the picture, and in the
 * rows cut[0][0] to cut[0][1] - 1 at the columns cut[1][0] to cut[1][1] - 1. */
typedef struct qn__augment_view {
    int64_t top, left;
    int mirrored;
    uint32_t cut[2][2];
} qn__augment_view;

/* The view of an item; item < 2^48. */
qn__augment_view qn__augment_view_of(const qn__augment *augment, uint64_t seed, uint32_t epoch,
                                     uint64_t item);

/* to = the values of an item as the view shows them, `size` bytes each, 1 or 4. Both arrays have a
 * value for each of augment->shape and do not overlap. */
void qn__augment_values(const qn__augment *augment, const qn__augment_view *view, size_t size,
                        const void *from, void *to);

#endif
