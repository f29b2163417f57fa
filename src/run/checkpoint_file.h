/* One checkpoint as a file: a tensor file whose metadata hold the state that is not tensors. Used
 * by run/checkpoint.c, which knows about folders. docs/formats.md describes the file. */
#ifndef QN_RUN_CHECKPOINT_FILE_H
#define QN_RUN_CHECKPOINT_FILE_H

#include "run/checkpoint.h"

/* QN_IO when `path` names a FIFO, a device or a socket, which may block whoever opens it or do
 * something else than keep bytes. QN_OK for all else, also for nothing. */
qn_status qn__checkpoint_place(const char *path, qn_error *err);

qn_status qn__checkpoint_write(const char *path, const qn__snapshot *snapshot, qn_error *err);

/* Reads the checkpoint of step `step`; `into` as in qn__checkpoints_last. Nothing is written to
 * `into` unless all is whole and of the same recipe. Fails with QN_FORMAT, QN_MISMATCH, QN_IO,
 * QN_MEMORY. */
qn_status qn__checkpoint_read(const char *path, uint64_t step, qn__snapshot *into, qn_error *err);

#endif
