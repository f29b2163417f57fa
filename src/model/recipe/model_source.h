/* The model as a user gives it: a text of one or more lines, "@FILE" for a file of such a text, or
 * the name of a ready model.
 *
 * A line break separates layers, as ";" does. It separates nothing beside another separator, at the
 * begin and the end of the text, after "{" and "|", and before "{", "|" and "}". From "#" to the
 * end of a line is a comment. */
#ifndef QN_MODEL_RECIPE_MODEL_SOURCE_H
#define QN_MODEL_RECIPE_MODEL_SOURCE_H

#include "model/recipe/ready_text.h"

/* The largest file of a model text, in bytes. */
#define QN__MODEL_TEXT_LARGEST ((size_t)1 << 20)

typedef struct qn__model_source {
    char *text;  /* for the parser: without line breaks and comments, each byte at its old place */
    char *lines; /* as it was written, where messages name a line; else NULL */
    char *name;  /* of the file, or "model" */
    const qn__ready *ready; /* the ready model that it names, or NULL */
} qn__model_source;

/* Reads what `model` names. `labels` are for the last layer of a ready model. The caller releases
 * *out, which is empty after a failure. Fails with QN_USAGE (a NUL byte or too many bytes in the
 * file), QN_IO or QN_MEMORY. */
qn_status qn__model_source_open(const char *model, const qn__labels_like *labels,
                                qn__model_source *out, qn_error *err);
void qn__model_source_release(qn__model_source *text);

/* Parses it. Fails with QN_USAGE; `where` names file, line and layer, which counts from 0. */
qn_status qn__model_source_parse(const qn__model_source *text, qn__network *out, qn_error *err);

/* Where a message names a layer only, makes it name file and line too. */
void qn__model_source_place(const qn__model_source *text, qn_error *err);

/* Does all three: opens, parses and releases. */
qn_status qn__model_source_read(const char *model, const qn__labels_like *labels, qn__network *out,
                                qn_error *err);

#endif
