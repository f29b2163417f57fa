/* The words of an augmentation that make new bytes (docs/exactness.md 24.52 to 24.56). */
#ifndef QN_NUM_AUGMENT_WORDS_H
#define QN_NUM_AUGMENT_WORDS_H

#include "num/augment.h"

/* What all of them need: the shape before and after, who draws, and working memory. */
typedef struct qn__augment_picture {
    qn__shape shape;
    uint32_t epoch;
    uint64_t seed, item;
    void *lines; /* of qn__augment_lines bytes, aligned for 8 */
} qn__augment_picture;

size_t qn__augment_lines(qn__shape shape);

/* r(element, count) and u(element) of 24.52; between: a number from `low` to `high`. */
int64_t qn__augment_draw(const qn__augment_picture *p, uint32_t element, int64_t count);
float qn__augment_between(const qn__augment_picture *p, uint32_t element, float low, float high);

/* Each reads a whole picture and writes another one. */
void qn__augment_resized_crop(const qn__augment_picture *p, const qn__augment_word *word,
                              const uint8_t *from, uint8_t *to);
void qn__augment_jitter(const qn__augment_picture *p, const qn__augment_word *word,
                        const uint8_t *from, uint8_t *to);
void qn__augment_rotate(const qn__augment_picture *p, const qn__augment_word *word,
                        const uint8_t *from, uint8_t *to);
void qn__augment_blur(const qn__augment_picture *p, const qn__augment_word *word,
                      const uint8_t *from, uint8_t *to);

/* The same for a mask, whose classes are not averaged (24.22). */
void qn__augment_resized_crop_mask(const qn__augment_picture *p, const qn__augment_word *word,
                                   const uint8_t *from, uint8_t *to);
void qn__augment_rotate_mask(const qn__augment_picture *p, const qn__augment_word *word,
                             const uint8_t *from, uint8_t *to);

#endif
