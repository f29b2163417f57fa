/* Augmentation: what happens to the values of a picture when it is fetched for training. It is a
 * function of seed, epoch and item, in integers, so that every device gets the same values.
 * docs/exactness.md 17.10, 24.22 and 24.52 to 24.56. */
#ifndef QN_NUM_AUGMENT_H
#define QN_NUM_AUGMENT_H

#include "num/program.h"
#include <stddef.h>

typedef enum qn__augment_kind {
    QN__AUGMENT_PAD,    /* zeros around the picture */
    QN__AUGMENT_CROP,   /* a window of the item's size, at a random place */
    QN__AUGMENT_FLIP,   /* left and right change places, or not */
    QN__AUGMENT_CUTOUT, /* a square around a random pixel becomes zero */
    QN__AUGMENT_VIEWS,  /* the words before show pixels as they are, those after make new bytes */
    QN__AUGMENT_RESIZED_CROP = QN__AUGMENT_VIEWS, /* a window of random size becomes the picture */
    QN__AUGMENT_JITTER,                           /* brightness, contrast, saturation, hue */
    QN__AUGMENT_ROTATE,
    QN__AUGMENT_BLUR,
    QN__AUGMENT_KINDS
} qn__augment_kind;

/* The parameters of a word, by their places in qn__augment_word.number. */
enum {
    QN__CROP_SCALE = 0, /* of RESIZED_CROP: the least and the greatest */
    QN__CROP_RATIO = 2,
    QN__JITTER_BRIGHTNESS = 0,
    QN__JITTER_CONTRAST,
    QN__JITTER_SATURATION,
    QN__JITTER_HUE,
    QN__ROTATE_DEGREES = 0,
    QN__ROTATE_BILINEAR, /* 1: bilinear */
    QN__ROTATE_FILL,
    QN__BLUR_SIGMA = 0, /* the least and the greatest */
    QN__AUGMENT_NUMBERS = 4
};

typedef struct qn__augment_word {
    qn__augment_kind kind;
    uint32_t size; /* pixels of PAD, side of CUTOUT, taps of BLUR; else 0 */
    float number[QN__AUGMENT_NUMBERS];
} qn__augment_word;

/* The words in their order, each kind once at most. A crop comes after every pad, so that a picture
 * keeps its size. */
typedef struct qn__augment {
    qn__shape shape; /* of an item; its values are in the order (c, y, x) */
    uint32_t words;  /* 0: items stay as they are */
    qn__augment_word word[QN__AUGMENT_KINDS];
} qn__augment;

/* What words that show pixels do to an item: pixel (y, x) of the result is pixel (top + y, left +
 * x) of the picture, or (top + y, left - x) if it is mirrored. It is zero outside of the picture,
 * and in the rows cut[0][0] to cut[0][1] - 1 at the columns cut[1][0] to cut[1][1] - 1. */
typedef struct qn__augment_view {
    int64_t top, left;
    int mirrored;
    uint32_t cut[2][2];
} qn__augment_view;

/* The view of an item by the words from `begin` to before `end`, which show pixels; item < 2^48. */
qn__augment_view qn__augment_view_of(const qn__augment *augment, uint32_t begin, uint32_t end,
                                     uint64_t seed, uint32_t epoch, uint64_t item);

/* Whether a word makes new bytes: items must be bytes then. */
int qn__augment_makes_bytes(const qn__augment *augment);

/* Whether a word moves pixels: where masks have a class for each, they move, too (24.22). */
int qn__augment_moves(const qn__augment *augment);

/* Bytes of working memory that qn__augment_item needs, aligned as those of qn__alloc; 0: none. */
size_t qn__augment_space(const qn__augment *augment);

/* to = the values of an item after all words, `size` bytes each, 1 or 4; 1 where a word makes new
 * bytes. Both arrays have a value for each of augment->shape and do not overlap. item < 2^48. */
void qn__augment_item(const qn__augment *augment, uint64_t seed, uint32_t epoch, uint64_t item,
                      size_t size, const void *from, void *to, void *space);

/* to = the mask of an item, a class for each pixel of augment->shape, moved as the words move the
 * item. Pixels from outside of the picture become QN__IGNORED. Else as qn__augment_item. */
void qn__augment_mask(const qn__augment *augment, uint64_t seed, uint32_t epoch, uint64_t item,
                      const uint8_t *from, uint8_t *to, void *space);

#endif
