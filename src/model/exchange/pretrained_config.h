/* The config.json of a network of the package transformers: docs/formats.md. */
#ifndef QN_MODEL_EXCHANGE_PRETRAINED_CONFIG_H
#define QN_MODEL_EXCHANGE_PRETRAINED_CONFIG_H

#include "base/error.h"
#include "model/exchange/class_labels.h"
#include "model/exchange/pretrained.h"

/* What is said about a checkpoint in the place of its config.json; each may be NULL. */
typedef struct qn__pretrained_said {
    const char *type; /* model_type */
    const char *task; /* "next", "classify" or "tags": the head that the network gets */
} qn__pretrained_said;

typedef struct qn__pretrained_config {
    const qn__pretrained *row;
    qn__pretrained_sizes sizes;
    /* 1: the checkpoint has the head of the row, and nothing else. 0: its class is another one, so
     * the head may be missing, and its own one is left out. */
    int own_head;
    qn__class_labels labels; /* names of the outputs; none where they are only numbered */
} qn__pretrained_config;

/* Reads the file `path`. The caller releases out->labels, also after a failure. Fails with QN_IO,
 * QN_FORMAT (not JSON), QN_INPUT (a value is missing or makes no sense), QN_UNSUPPORTED (what the
 * network cannot do here; the key is named), QN_USAGE (said->task is none of the words) or
 * QN_MEMORY. */
qn_status qn__pretrained_config_read(const char *path, const qn__pretrained_said *said,
                                     qn__pretrained_config *out, qn_error *err);

/* What the file's model_type says: "" where it has none, or is one of timm, which says
 * "architecture". Fails with QN_FORMAT (not JSON), QN_MEMORY or QN_IO. */
qn_status qn__pretrained_config_type(const char *path, char type[32], qn_error *err);

#endif
