/* One checkpoint as a file: a tensor file whose metadata hold the state other than tensors. Used by
 * train/checkpoint.c, which handles folders. docs/formats.md describes the file. */
#ifndef QN_TRAIN_CHECKPOINT_FILE_H
#define QN_TRAIN_CHECKPOINT_FILE_H

#include "train/checkpoint.h"

/* `lock` protects the file: QN_BUSY, and nothing is changed, where it is lost. */
qn_status qn__checkpoint_write(const char *path, const qn__snapshot *snapshot, qn__lock *lock,
                               qn_error *err);

/* Reads the checkpoint of step `step`; `into` as in qn__checkpoints_last. `into` is written only if
 * the file is complete and of the same recipe. Fails with QN_FORMAT, QN_MISMATCH, QN_IO,
 * QN_MEMORY. */
qn_status qn__checkpoint_read(const char *path, uint64_t step, qn__snapshot *into, qn_error *err);

#endif
