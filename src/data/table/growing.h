/* Bytes of which nobody knows before how many there will be. */
#ifndef QN_DATA_TABLE_GROWING_H
#define QN_DATA_TABLE_GROWING_H

#include "base/files/mapped_file.h"

/* Bytes that are added one after the other; they move to a file of the cache folder where memory
 * may not hold them. Begins as {0}, released in any case. */
typedef struct qn__growing {
    uint8_t *bytes;
    size_t size, capacity;
    qn__mapped_file *file; /* that has them; NULL: memory */
} qn__growing;

/* Space for `more` bytes after those that are there, which may move. Fails with QN_MEMORY. */
qn_status qn__growing_reserve(qn__growing *growing, size_t more, qn_error *err);
/* Adds bytes. Fails with QN_MEMORY. */
qn_status qn__growing_add(qn__growing *growing, const void *bytes, size_t size, qn_error *err);
void qn__growing_release(qn__growing *growing);

#endif
