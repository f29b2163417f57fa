/* Names of classes that other programs keep in files, in the order of the outputs. */
#ifndef QN_MODEL_EXCHANGE_CLASS_LABELS_H
#define QN_MODEL_EXCHANGE_CLASS_LABELS_H

#include "base/text/json.h"

enum { QN__LABELS_MOST = 1 << 16 };

typedef struct qn__class_labels {
    uint32_t count;
    char **name; /* all differ, none is empty */
} qn__class_labels;

/* Reads a JSON value: a list of names; an object of numbers from 0, as text, and names; or one of
 * names and numbers. In place of a name a list may stand, whose last text is the name and whose
 * first one is an identifier, as ImageNet's {"0": ["n01440764", "tench"]}. `about` is an object of
 * identifiers and names that replace them, or a list of such names, or NULL. Names that occur more
 * than once get their identifier, else their number, in brackets: "crane (134)".
 *
 * The caller releases *out, which is empty after a failure, and sets `where`. Fails with QN_INPUT,
 * and a remedy, or QN_MEMORY. */
qn_status qn__class_labels_of_json(const qn__json_node *node, const qn__json_node *about,
                                   qn__class_labels *out, qn_error *err);

/* The same for a text with one name a line. */
qn_status qn__class_labels_of_lines(const char *text, size_t size, qn__class_labels *out,
                                    qn_error *err);

/* The name of output `number` where nobody gave one, as transformers writes it. */
enum { QN__LABEL_USUAL = 24 };
void qn__class_label_usual(uint32_t number, char text[QN__LABEL_USUAL]);

void qn__class_labels_release(qn__class_labels *labels);

#endif
