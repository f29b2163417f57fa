/* Copies of the parts of other ranks, for when these end (qn_parts_copies). */
#ifndef QN_DATA_PARTS_PARTS_COPY_H
#define QN_DATA_PARTS_PARTS_COPY_H

#include "cluster/items.h"
#include "data/parts/parts.h"

/* The arrays of a part: values, several targets, labels, targets, weights, and windows of texts. */
enum { QN__PART_ARRAYS = 6 };

/* An array of the whole. */
typedef struct qn__part_array {
    uint64_t stride; /* bytes from one item to the next; 0: the data have no such array */
    uint64_t more;   /* bytes that an item has besides, which the next one begins with */
} qn__part_array;

/* Bytes of `rows` items that follow one another. */
static inline uint64_t qn__part_array_bytes(qn__part_array array, uint64_t rows) {
    return rows > 0 ? rows * array.stride + array.more : 0;
}

/* Bytes of a copy of a part. */
uint64_t qn__parts_copy_bytes(const qn_parts *parts, uint32_t part,
                              const qn__part_array array[QN__PART_ARRAYS]);

/* Gets all of a part that has items: a table with its arrays alone. All ranks answer requests.
 * Fails with QN_IO where the rank has ended, or QN_MEMORY. */
qn_status qn__parts_copy(qn__items *items, const qn_parts *parts, uint32_t part,
                         const qn__part_array array[QN__PART_ARRAYS], qn_data **out, qn_error *err);

#endif
