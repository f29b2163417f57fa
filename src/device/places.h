/* Arrays of a batch that take turns in memory, on CPUs and GPUs.
 *
 * A pass of training has windows, which follow one another: what runs between two barriers, or the
 * kernels of a layer. An array is used from its first window to its last one. Two arrays whose
 * windows differ may have the same memory. */
#ifndef QN_DEVICE_PLACES_H
#define QN_DEVICE_PLACES_H

#include "num/program.h"
#include <stddef.h>

/* An array: its bytes, where it is in the memory that is shared, and the first and the last window
 * that use it. What is computed again in the backward pass is used from window `again` on, and
 * before that up to `gone`; again 0: it is not. */
typedef struct qn__place {
    size_t bytes, at;
    uint32_t first, last, gone, again;
    struct qn__place *next; /* of a list */
} qn__place;

/* Forgets the windows, and where it is: `at` is SIZE_MAX. */
void qn__place_forget(qn__place *place);
/* A pass uses its windows in order. */
void qn__place_use(qn__place *place, uint32_t window);
/* It is computed again from this window on, and not needed between. Does nothing for an array
 * without bytes, or one that is computed again already. */
void qn__place_again(qn__place *place, uint32_t window);
/* Whether a window uses both; 0 if `b` has no bytes. */
int qn__places_meet(const qn__place *a, const qn__place *b);

/* Places the arrays of a list in one memory: the larger ones first, of two of one size the earlier
 * one in the list, each as low as those before it let it. With `apart` 1 none shares memory.
 * Returns the bytes of that memory, SIZE_MAX where they are more. The list is in another order
 * then. */
size_t qn__places_pack(qn__place *list, int apart);

/* For qn__find_segments: the layers, and the bytes that each leaves for the backward pass. */
typedef struct qn__segments {
    const qn__program *program;
    const size_t *bytes;
    /* Places the arrays of a pass that computes the outputs of again[l] layers before layer l once
     * more, before the backward pass of that layer. Returns the bytes of all arrays. */
    size_t (*place)(void *context, const uint32_t *again);
    void *context;
} qn__segments;

/* Chooses which outputs are computed again instead of being kept. The last call of `place` is that
 * of the choice. The last layers are never computed again. */
void qn__find_segments(const qn__segments *segments);

#endif
