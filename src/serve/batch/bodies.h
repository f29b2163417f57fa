/* Bodies of requests as tables of items for a model.
 *
 * A body is read as `quern predict` reads a file of the same bytes: the readers of src/data decide
 * what a cell is. Bodies are hostile: nothing packed, no archive and no database is taken. */
#ifndef QN_SERVE_BATCH_BODIES_H
#define QN_SERVE_BATCH_BODIES_H

#include "base/error.h"
#include "predict/generate/text_service.h"
#include <quern/data.h>
#include <quern/model.h>

/* What bodies of a model's requests are read with; made once for each model. */
typedef struct qn__body_reader qn__body_reader;

typedef enum qn__body_kind {
    QN__BODY_JSON, /* rows as JSON objects: a list of them, one, or one a line */
    QN__BODY_CSV,  /* rows with a header; without one for a model without names of columns */
    QN__BODY_IMAGE /* a file: JPEG, PNG, WebP, GIF, TIFF or BMP */
} qn__body_kind;

/* Values of items as another program gives them, row after row. */
typedef struct qn__body_tensor {
    const char *type; /* as the Open Inference Protocol names it: "FP32", "UINT8", "INT64", ... */
    const uint64_t *shape; /* items first */
    uint32_t lengths;      /* of `shape` */
    const void *values;    /* little-endian, at any address */
    size_t bytes;
} qn__body_tensor;

typedef struct qn__body_text {
    const char *text; /* UTF-8, without a NUL at its end */
    size_t size;
} qn__body_text;

/* `model` must outlive *out, which the caller owns. Fails with QN_MEMORY. */
qn_status qn__body_reader_make(const qn_model *model, qn__body_reader **out, qn_error *err);
void qn__body_reader_free(qn__body_reader *reader); /* accepts NULL */

/* Whether the model's columns have names: CSV has a header then. */
int qn__body_has_header(const qn__body_reader *reader);

/* Whether this first line of CSV is a header: always where the model's columns have names; for a
 * model of numbers without names where all its cells are texts. */
int qn__body_is_header(const qn__body_reader *reader, const char *line, size_t size);

/* The kind that a Content-Type names, whose parameters do not matter; NULL: by the first bytes of
 * the body. Fails with QN_UNSUPPORTED, with a list of the types that are taken. */
qn_status qn__body_kind_of(const char *content_type, const void *body, size_t size,
                           qn__body_kind *out, qn_error *err);

/* The items of a body; the caller closes *out. Any threads may call these at once. A row that
 * cannot be read is named with its column. Fails with QN_INPUT (malformed, or another kind), with
 * QN_MISMATCH (a tensor of another shape or type than the model's), QN_UNSUPPORTED or QN_MEMORY. */
qn_status qn__body_read(const qn__body_reader *reader, qn__body_kind kind, const void *body,
                        size_t size, qn_data **out, qn_error *err);
qn_status qn__body_of_tensor(const qn__body_reader *reader, const qn__body_tensor *tensor,
                             qn_data **out, qn_error *err);
/* An item for each text, of a model with one column of texts or with a tokenizer. */
qn_status qn__body_of_texts(const qn__body_reader *reader, const qn__body_text *text,
                            uint64_t count, qn_data **out, qn_error *err);
/* An item for each list of tokens, of a model of tokens. QN_INPUT: one has more tokens than an
 * item, or a number that is not a token. */
qn_status qn__body_of_tokens(const qn__body_reader *reader, const qn__text_prompt *list,
                             uint64_t count, qn_data **out, qn_error *err);

#endif
