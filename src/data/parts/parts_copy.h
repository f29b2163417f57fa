/* Copies of the parts of other ranks, for when these end (qn_parts_copies). */
#ifndef QN_DATA_PARTS_PARTS_COPY_H
#define QN_DATA_PARTS_PARTS_COPY_H

#include "cluster/items.h"
#include "data/parts/parts.h"

/* Bytes of a copy of a part whose items have so many bytes in all arrays together. */
uint64_t qn__parts_copy_bytes(const qn_parts *parts, uint32_t part, uint64_t bytes);

/* The arrays of a part: values, several targets, labels, targets and weights. */
enum { QN__PART_ARRAYS = 5 };

/* Gets all of a part that has items: a table with its arrays alone. Array k has stride[k] bytes of
 * an item; 0 says that there are none. All ranks answer requests. Fails with QN_IO where the rank
 * has ended, or QN_MEMORY. */
qn_status qn__parts_copy(qn__items *items, const qn_parts *parts, uint32_t part,
                         const uint64_t stride[QN__PART_ARRAYS], qn_data **out, qn_error *err);

#endif
