/* Tensor files: a JSON header with the names of float32 tensors and texts, then the tensors.
 * docs/exactness.md section 12 defines the exact bytes; models and checkpoints are such files.
 *
 * Files are read from untrusted sources: everything is checked before use, and no allocation
 * exceeds what the file's size justifies. */
#ifndef QN_MODEL_FORMATS_SAFETENSORS_H
#define QN_MODEL_FORMATS_SAFETENSORS_H

#include "base/error.h"
#include <stddef.h>
#include <stdint.h>

/* A text in the header's __metadata__. */
typedef struct qn__tensor_note {
    const char *key, *value;
} qn__tensor_note;

/* A tensor to write: rows x columns x taps[0] x taps[1] floats; a matrix if taps are 0, a vector of
 * `rows` if columns is 0 too; three dimensions if only taps[1] is 0. */
typedef struct qn__tensor {
    const char *name;
    uint64_t rows, columns;
    const float *data;
    uint32_t taps[2];
    const double *real;   /* F64 in place of `data`; NULL: F32 */
    const int64_t *whole; /* one I64 without dimensions in place of both; `rows` is 1 */
} qn__tensor;

/* Floats of the tensor. */
uint64_t qn__tensor_count(const qn__tensor *tensor);

/* The contents of a file to write, in order. */
typedef struct qn__tensor_list {
    size_t notes;
    const qn__tensor_note *note;
    size_t tensors;
    const qn__tensor *tensor;
    /* Called before the file gets its final name, see qn__writer_ask; may be NULL. */
    int (*may)(void *user);
    void *user;
} qn__tensor_list;

/* Writes a temporary file next to `path`, syncs and renames it. `digest`, if not NULL, becomes the
 * SHA-256 of its bytes. Fails with QN_IO or QN_MEMORY and leaves the old file unchanged. */
qn_status qn__tensors_write(const char *path, const qn__tensor_list *list, uint8_t digest[32],
                            qn_error *err);

/* The digest that qn__tensors_write would return, without writing. */
qn_status qn__tensors_digest(const qn__tensor_list *list, uint8_t digest[32], qn_error *err);

/* A file that was read and checked. */
typedef struct qn__tensors qn__tensors;

/* Types of elements; those without a row in qn__tensor_float are OTHER. */
typedef enum qn__tensor_type {
    QN__TENSOR_F32,
    QN__TENSOR_F16,
    QN__TENSOR_BF16,
    QN__TENSOR_F64,
    QN__TENSOR_OTHER
} qn__tensor_type;

typedef struct qn__tensor_view {
    const char *name;
    uint64_t rows, columns; /* columns is 0 for a vector */
    uint64_t taps[2];       /* 0 but for four dimensions */
    uint64_t count;         /* elements */
    const uint8_t *bytes;   /* of the elements, unaligned: copy them */
    /* F32 (of a model F64 too) and 1, 2 or 4, but where qn__tensors_read_any read the file: it
     * takes all types, no dimensions (count is 1 then) and three. */
    qn__tensor_type type;
    const char *type_name; /* as the file has it: "F8_E4M3" */
    uint32_t dimensions;
} qn__tensor_view;

/* Reads a file; only dtype F32 and one, two or four dimensions, none of them 0, are
 * accepted. Fails with
 * QN_FORMAT (the message names the tensor or the byte), QN_IO, QN_MEMORY. */
qn_status qn__tensors_read(const char *path, qn__tensors **out, qn_error *err);
/* The same, and F64 too: models of some kinds have doubles. */
qn_status qn__tensors_read_model(const char *path, qn__tensors **out, qn_error *err);
qn_status qn__tensors_model_from_bytes(const uint8_t *bytes, size_t size, const char *name,
                                       qn__tensors **out, qn_error *err);
/* The same for a file of another program: all types of elements, and up to four dimensions. */
qn_status qn__tensors_read_any(const char *path, qn__tensors **out, qn_error *err);
qn_status qn__tensors_any_from_bytes(const uint8_t *bytes, size_t size, const char *name,
                                     qn__tensors **out, qn_error *err);
/* Element `index` of a tensor of any type but QN__TENSOR_OTHER, rounded to float32 once. */
float qn__tensor_float(const qn__tensor_view *view, uint64_t index);
/* The same from bytes that outlive *out; `name` is used in messages in place of the path. */
qn_status qn__tensors_from_bytes(const uint8_t *bytes, size_t size, const char *name,
                                 qn__tensors **out, qn_error *err);
void qn__tensors_free(qn__tensors *tensors);

/* The value of a metadata text, or NULL. */
const char *qn__tensors_note(const qn__tensors *tensors, const char *key);
size_t qn__tensors_count(const qn__tensors *tensors);
/* Tensors in the order of their bytes. */
const qn__tensor_view *qn__tensors_at(const qn__tensors *tensors, size_t index);
/* By name, or NULL. */
const qn__tensor_view *qn__tensors_find(const qn__tensors *tensors, const char *name);
/* SHA-256 of the whole file. */
void qn__tensors_file_digest(const qn__tensors *tensors, uint8_t digest[32]);

#endif
