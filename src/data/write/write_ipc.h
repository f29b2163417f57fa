/* What Arrow IPC and Parquet files share: the description of the columns. */
#ifndef QN_DATA_WRITE_WRITE_IPC_H
#define QN_DATA_WRITE_WRITE_IPC_H

#include "data/write/flat_write.h"
#include "data/write/write_columns.h"

/* Adds the message that describes the columns, as a stream has it: its size, the message, padding.
 * Texts are dictionaries, each with the number of its column. */
void qn__ipc_schema_message(const qn__written_columns *columns, qn__flat_out *out);

#endif
