/* The tensors of another program: one safetensors file, or several with an index, as Transformers
 * writes large models (model.safetensors.index.json). */
#ifndef QN_MODEL_FORMATS_SHARDS_H
#define QN_MODEL_FORMATS_SHARDS_H

#include "model/formats/safetensors.h"

typedef struct qn__shards {
    size_t files;
    qn__tensors **file;           /* ascending by name */
    size_t tensors;               /* of all files */
    const qn__tensor_view **view; /* file after file */
} qn__shards;

/* `path` is a safetensors file, an index, or a folder that holds model.safetensors.index.json or
 * model.safetensors. Files of an index are in its folder. The caller releases *out, which is empty
 * after a failure. Fails with QN_IO, QN_MEMORY, or QN_FORMAT: a file or the index is malformed, or
 * they name different tensors. */
qn_status qn__shards_read(const char *path, qn__shards *out, qn_error *err);
void qn__shards_release(qn__shards *shards);

/* The digest of the one file, or of the digests of all files (docs/exactness.md 12.4). */
void qn__shards_digest(const qn__shards *shards, uint8_t digest[32]);

#endif
