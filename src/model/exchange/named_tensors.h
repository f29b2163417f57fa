/* The tensors of another program's file by their names. */
#ifndef QN_MODEL_EXCHANGE_NAMED_TENSORS_H
#define QN_MODEL_EXCHANGE_NAMED_TENSORS_H

#include "model/formats/shards.h"

typedef struct qn__named_tensors {
    qn__shards shards;
    const char *path;
    const qn__tensor_view **view; /* ascending by name */
    unsigned char *taken;
    char prefix[80]; /* of most names: "transformer." */
} qn__named_tensors;

/* Reads what qn__shards_read reads. The prefix is what stands before `first`.weight; none where
 * `first` is NULL. The caller
 * releases *out, which is empty after a failure; `path` outlives it. Fails as qn__shards_read does,
 * or with QN_MISMATCH: no tensor has this name. */
qn_status qn__named_read(const char *path, const char *first, qn__named_tensors *out,
                         qn_error *err);
void qn__named_release(qn__named_tensors *tensors);

/* The tensor of this name after the prefix, or without the prefix where the name begins with '/',
 * which is not part of it. It counts as taken. NULL: there is none. */
const qn__tensor_view *qn__named_take(qn__named_tensors *tensors, const char *name);

/* Fails with QN_INPUT where an element is not a finite number, or the type is not one of floats. */
qn_status qn__named_check(const qn__named_tensors *tensors, const qn__tensor_view *view,
                          qn_error *err);

/* The first tensor that was not taken and whose name, after the prefix, is not among `ignored`,
 * where '#' stands for a number. With `others` 1 all names without the prefix are ignored. NULL:
 * there is none. */
const qn__tensor_view *qn__named_left(const qn__named_tensors *tensors, const char *const *ignored,
                                      int others);

#endif
