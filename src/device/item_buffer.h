/* Copies of the items that a training needs next.
 *
 * A table may be in a file that is larger than memory. A thread then reads the file in large pieces
 * and keeps the items of the next steps (data/ahead/item_scan.h). A worker that needs an item looks
 * here first. An item that is not here is read from its table: the copies have the same bytes, so
 * no result depends on which of them are here. */
#ifndef QN_DEVICE_ITEM_BUFFER_H
#define QN_DEVICE_ITEM_BUFFER_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

/* A *place* is a position in all epochs: epoch * items + position. */
typedef struct qn__item_buffer {
    const uint8_t *slots; /* items of `size` bytes each */
    size_t size;
    uint64_t items;
    atomic_uint *slot; /* slot[p % places] is 1 + the slot of the place p; 0: it is not here */
    uint64_t places;   /* that may be here: `from` and the next ones */
    uint64_t from;     /* changes only between two steps */
} qn__item_buffer;

/* The values of the item at a position of an epoch; NULL: they are not here. They stay until the
 * next step. */
static inline const void *qn__buffered_item(const qn__item_buffer *b, uint32_t epoch,
                                            uint64_t position) {
    const uint64_t place = epoch * b->items + position;
    if (place < b->from || place - b->from >= b->places)
        return NULL;
    const unsigned slot = atomic_load_explicit(&b->slot[place % b->places], memory_order_acquire);
    return slot ? b->slots + (slot - 1) * b->size : NULL;
}

#endif
