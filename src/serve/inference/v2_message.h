/* The messages of version 2: what a request for inference holds, and what an answer has. */
#ifndef QN_SERVE_INFERENCE_V2_MESSAGE_H
#define QN_SERVE_INFERENCE_V2_MESSAGE_H

#include "base/text/json.h"
#include "base/text/text.h"
#include "serve/batch/batcher.h"
#include "serve/batch/bodies.h"
#include "serve/inference/layers.h"

enum { QN__V2_LENGTHS = 8, QN__V2_OUTPUTS = 4 };

/* A tensor of a request. BYTES are lengths of four bytes, each with so many bytes after it. */
typedef struct qn__v2_input {
    const char *name, *type;
    uint64_t shape[QN__V2_LENGTHS];
    uint64_t count; /* of elements */
    uint32_t lengths;
    const uint8_t *values;
    uint8_t *own; /* made of JSON; NULL: the values are in the body */
    size_t bytes;
} qn__v2_input;

typedef struct qn__v2_wanted {
    const char *name;
    uint64_t classes; /* so many of the largest values of each item, as texts; 0: all values */
    int binary;
    const qn__layer_use *layer; /* NULL: a tensor of the predictions */
    uint32_t answer;            /* which of the answers has it */
} qn__v2_wanted;

/* A request; texts are parts of `json`, and values may be parts of the body. */
typedef struct qn__v2_ask {
    qn__json *json;
    const char *id; /* NULL: none */
    qn__v2_input *input;
    size_t inputs;
    qn__v2_wanted wanted[QN__V2_OUTPUTS];
    uint32_t outputs; /* 0: all */
    int binary;       /* where `wanted` does not say it */
} qn__v2_ask;

/* Reads the body of a request. `header` is the header Inference-Header-Content-Length, or NULL. On
 * success the caller owns what *out has, for qn__v2_release. Fails with QN_INPUT or QN_MEMORY. */
qn_status qn__v2_read(const char *body, size_t size, const char *header, qn__v2_ask *out,
                      qn_error *err);
void qn__v2_release(qn__v2_ask *ask);

/* The bytes of an element of this type; 0 for BYTES, and for what is not a type. */
size_t qn__v2_type_size(const char *type);

/* Element `k` of BYTES, which the caller has counted; `at` is its place, and moves to the next. */
const char *qn__v2_bytes_at(const qn__v2_input *input, size_t *at, size_t *size);

/* Makes the table of a request's items: one tensor of all values, or of texts or files of images;
 * or a tensor for each column. */
qn_status qn__v2_items(const qn__v2_ask *ask, const qn_model *model, const qn__body_reader *reader,
                       qn_data **out, qn_error *err);

/* A tensor that a model gives. */
typedef struct qn__v2_output {
    const char *name, *type;
    uint32_t each[3], lengths; /* of the shape after the items */
} qn__v2_output;

/* The tensors that a model gives; returns how many. */
uint32_t qn__v2_outputs_of(const qn_model *model, qn__v2_output output[QN__V2_OUTPUTS]);

/* Whether the predictions of the model have a tensor of that name. */
int qn__v2_predicts(const qn_model *model, const char *name);

/* Adds a text as JSON, or as BYTES: its size as 4 bytes, and itself. */
void qn__v2_add_text(qn__text *to, const char *text, int binary);

/* Adds the `count` largest of the `each` outputs of every item as texts "VALUE:CLASS:NAME", the
 * largest first; of equal ones the lower class. As JSON texts between commas, or as BYTES. */
void qn__v2_add_classes(qn__text *to, const qn_model *model, const qn__batch_answer *answer,
                        uint32_t each, uint32_t count, int binary);

/* The layer that the name of an output means: "layer7", "layer-1:mean", "body" and so on. Fails
 * with QN_INPUT: the model has no such output. */
qn_status qn__v2_read_layer(const char *output, qn__layer_name *out, qn_error *err);

/* The whole answer; *header is the size of its JSON where bytes follow, else 0. `answer` has those
 * that `ask->wanted` name; without wanted outputs the first is of the predictions. */
void qn__v2_write(const qn__v2_ask *ask, const char *name, const char *version,
                  const qn_model *model, const qn__batch_answer *answer, qn__text *text,
                  size_t *header);

/* The description of a model. */
void qn__v2_describe(const qn_model *model, const char *name, const char *const *version,
                     size_t versions, qn__text *text);

#endif
