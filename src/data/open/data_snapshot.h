/* A snapshot: a data set as one contiguous block of bytes, so that processes can share it or send
 * it. */
#ifndef QN_DATA_OPEN_DATA_SNAPSHOT_H
#define QN_DATA_OPEN_DATA_SNAPSHOT_H

#include "data/table/data.h"

/* Bytes of the serialised table; 0 if they cannot be addressed. */
uint64_t qn__data_snapshot_bytes(const qn_data *table);

/* Where the values of any snapshot begin: a multiple of 64 bytes. */
uint64_t qn__data_snapshot_values(void);

/* Bytes of the texts in a snapshot, of which qn__data_snapshot_map makes copies; 0: it is
 * malformed.
 */
uint64_t qn__data_snapshot_texts(const void *snapshot, uint64_t bytes);

/* Writes qn__data_snapshot_bytes bytes; the address is a multiple of 64. Values that are in their
 * place already stay there. */
void qn__data_snapshot_write(const qn_data *table, void *snapshot);

/* A table whose values and labels are inside the snapshot, which stays the caller's and must
 * outlive it. The snapshot may be untrusted: QN_FORMAT if it is malformed. The digest is not
 * checked against the values: the caller has compared the bytes with those that were sent. */
qn_status qn__data_snapshot_map(const void *snapshot, uint64_t bytes, qn_data **out, qn_error *err);

#endif
