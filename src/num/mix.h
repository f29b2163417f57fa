/* Mixing of two items of training, mixup and cutmix: docs/exactness.md 24.57, 24.58. An item's
 * partner is the one at the position before it in the epoch, so what a grain computes depends on
 * neither batches nor workers. */
#ifndef QN_NUM_MIX_H
#define QN_NUM_MIX_H

#include "num/permutation.h"
#include "num/program.h"
#include <stddef.h>

/* How items are mixed. */
typedef struct qn__mix {
    float alpha;     /* of the beta distribution */
    int cut;         /* 1: cutmix, 0: mixup */
    qn__shape shape; /* of an item; its values are in the order (c, y, x) */
} qn__mix;

/* How one item is mixed with its partner. */
typedef struct qn__mixing {
    uint32_t share;     /* mixup: of the item's own values, in units of 2^-16 */
    uint32_t box[2][2]; /* cutmix: first and end of the partner's rows, and columns */
    float own, other;   /* shares of the two labels; their sum is 1 */
} qn__mixing;

/* What an item draws; item < 2^48. */
qn__mixing qn__mix_of(const qn__mix *mix, uint64_t seed, uint32_t epoch, uint64_t item);

/* Mixes the partner's values into those of an item, `size` bytes each, 1 or 4. */
void qn__mix_values(const qn__mix *mix, const qn__mixing *mixing, size_t size, void *own,
                    const void *other);

/* The position of the partner among `items`. */
static inline uint64_t qn__mix_position(uint64_t position, uint64_t items) {
    return (position > 0 ? position : items) - 1;
}

/* RN(RN(own * a) + RN(other * b)): of two losses, or two targets. */
static inline float qn__mix_two(const qn__mixing *mixing, float a, float b) {
    const float first = mixing->own * a, second = mixing->other * b;
    return first + second;
}

#endif
