/* What timm's config.json says about a network: docs/formats.md. */
#ifndef QN_MODEL_EXCHANGE_IMPORT_CONFIG_H
#define QN_MODEL_EXCHANGE_IMPORT_CONFIG_H

#include "image/resize.h"
#include "model/exchange/class_labels.h"
#include "model/recipe/scale_numbers.h"
#include <quern/import.h>

struct qn_import_config {
    char shape[32], tested[32]; /* "3x224x224"; "" where the file does not say it */
    char scale[QN__SCALE_NUMBERS_TEXT], resize[QN__RESIZE_TEXT];
    uint32_t classes;
    qn__class_labels labels;
};

/* Reads the text of such a file into *out, whose bytes are zeros. `shape` as in
 * qn_import_config_open. The caller releases the labels and sets `where`. Fails with QN_INPUT, with
 * QN_FORMAT (not JSON) or with QN_MEMORY. */
qn_status qn__import_config_parse(const char *text, size_t size, const char *shape,
                                  qn_import_config *out, qn_error *err);

#endif
