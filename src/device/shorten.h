/* Work only up to the longest item of a batch (docs/exactness.md 25.37). */
#ifndef QN_DEVICE_SHORTEN_H
#define QN_DEVICE_SHORTEN_H

#include "device/device.h"

/* Whether positions after the last token of all items change no answer and no gradient, so that
 * passes may leave them out. */
int qn__can_shorten(const qn__program *program);

/* Whether all items of a feed fill their positions, as far as its type says. */
static inline int qn__fills_positions(const qn__feed *feed) {
    return !qn__element_is_token(feed->type) || feed->step;
}

/* The values of an item up to its last token, whose values are at `row`; all of them where each is
 * a token. Of a program whose first layer reads tokens. */
uint32_t qn__item_length(const qn__program *program, const qn__feed *feed, const void *row);

/* The positions that an item needs, whose values are at `row`: up to its last token, and up to its
 * last target that counts. At least `least`. Of a program that can shorten. */
uint32_t qn__item_positions(const qn__program *program, const qn__feed *feed, uint64_t item,
                            const void *row, uint32_t least);

/* Whether `applied` asks for numbers of every position, also of those that have neither token nor
 * target. */
int qn__needs_all_positions(const qn__program *program, const qn__applied *applied);

/* The positions that a pass over the batch has to compute: those of the longest item, at least one.
 * All of them where the program cannot shorten; where integers are learned, whose blocks have
 * values of all positions; and where `applied` needs them. `applied` is NULL in training. */
uint32_t qn__longest(const qn__program *program, const qn__batch *batch,
                     const qn__applied *applied);

#endif
