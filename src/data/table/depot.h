/* Many pieces of memory that are released together: texts of a column, lists of items. What memory
 * may not hold is in files of the cache folder. Pieces never move. */
#ifndef QN_DATA_TABLE_DEPOT_H
#define QN_DATA_TABLE_DEPOT_H

#include "base/error.h"
#include <stddef.h>

typedef struct qn__depot qn__depot;

/* NULL when memory is short. */
qn__depot *qn__depot_create(qn_error *err);
/* The same depot for another owner, who releases it, too; NULL for NULL. */
qn__depot *qn__depot_share(qn__depot *depot);
/* The last owner releases all pieces. Accepts NULL. */
void qn__depot_release(qn__depot *depot);

/* A piece, aligned to 16, of any contents. Any thread may ask. Fails with QN_MEMORY, and NULL. */
void *qn__depot_take(qn__depot *depot, size_t bytes, qn_error *err);

/* 1: some pieces are in files. */
int qn__depot_is_large(qn__depot *depot);

#endif
