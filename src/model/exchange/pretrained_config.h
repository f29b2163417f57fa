/* The config.json of a network of the package transformers: docs/formats.md. */
#ifndef QN_MODEL_EXCHANGE_PRETRAINED_CONFIG_H
#define QN_MODEL_EXCHANGE_PRETRAINED_CONFIG_H

#include "base/error.h"
#include "model/exchange/pretrained.h"

/* Fills *row and *sizes. `path` is the file; `type`, which may be NULL, is what the network is in
 * the place of its model_type. Fails with QN_IO, QN_FORMAT (not JSON), QN_INPUT (a value is missing
 * or makes no sense), QN_UNSUPPORTED (what the network cannot do here; the key is named) or
 * QN_MEMORY. */
qn_status qn__pretrained_config_read(const char *path, const char *type, const qn__pretrained **row,
                                     qn__pretrained_sizes *sizes, qn_error *err);

/* What the file's model_type says: "" where it has none, or is one of timm, which says
 * "architecture". Fails with QN_FORMAT (not JSON), QN_MEMORY or QN_IO. */
qn_status qn__pretrained_config_type(const char *path, char type[32], qn_error *err);

#endif
