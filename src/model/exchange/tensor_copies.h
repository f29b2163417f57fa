/* Tensors of a file that is written for the package transformers or peft: copies of a model's
 * numbers, with the names that these packages know. */
#ifndef QN_MODEL_EXCHANGE_TENSOR_COPIES_H
#define QN_MODEL_EXCHANGE_TENSOR_COPIES_H

#include "model/exchange/pretrained_find.h"
#include "model/formats/safetensors.h"

/* Start with {0}. */
typedef struct qn__tensor_copies {
    size_t tensors, most;
    qn__tensor *tensor;
    char (*name)[QN__PRETRAINED_TENSOR];
    float **copy; /* of each tensor */
} qn__tensor_copies;

/* Makes space for `most` tensors. */
qn_status qn__tensor_copies_open(size_t most, qn__tensor_copies *copies, qn_error *err);
void qn__tensor_copies_release(qn__tensor_copies *copies);

/* A new tensor, with memory for its numbers, whose name the caller writes to *name. `columns` 0: it
 * is a vector. NULL: there is none left. */
float *qn__tensor_copies_add(qn__tensor_copies *copies, uint64_t rows, uint64_t columns,
                             char **name, qn_error *err);

/* Writes `file` in a folder. The file says the digest of the model. Fails as qn__tensors_write. */
qn_status qn__tensor_copies_write(const qn__tensor_copies *copies, const char *folder,
                                  const char *file, const char *digest, qn_error *err);

#endif
