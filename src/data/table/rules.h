/* Rules of reading that a version of the contract added (docs/exactness.md 23).
 *
 * A file is read by all rules, unless it is read for a model: then by those that its recipe names
 * (qn_data_options.expected_rules). A table remembers the rules that changed something in it. A
 * recipe names these and no others, so a table that no rule changes keeps its recipe and model. A
 * recipe without the key was made without any of these rules. */
#ifndef QN_DATA_TABLE_RULES_H
#define QN_DATA_TABLE_RULES_H

#include <quern/data.h>
#include <stdint.h>

/* A bit each, in the order in which a recipe names them. */
typedef enum qn__rule {
    QN__RULE_ORIENTATION = 1 << 0, /* images are turned as their EXIF says */
    QN__RULE_EXACT = 1 << 1,       /* wide columns are kept exactly: data/table/wide.h */
    QN__RULE_DATES = 1 << 2,       /* columns of dates are not categories */
    QN__RULE_INDEX = 1 << 3,       /* the index of pandas is left out: data/arrow/pandas_index.h */
    QN__RULE_FILES = 1 << 4,       /* which files are images, and which count for classes */
    QN__RULE_NONE = 1 << 5,        /* more marks mean a missing value: qn__cell_is_mark */
    QN__RULE_COMMAS = 1 << 6,      /* numbers have a decimal comma: data/cells/commas.h */
    QN__RULE_TEXT = 1 << 7         /* columns of texts are not categories: data/cells/prose.h */
} qn__rule;

/* The rules of a text as qn__rules_text writes it: words separated by a space, in their order. NULL
 * means all. Fails with QN_USAGE for any other text. */
qn_status qn__rules_parse(const char *text, uint32_t *rules, qn_error *err);

/* "" where there are none. */
void qn__rules_text(uint32_t rules, char text[QN_RULES_TEXT]);

/* Whether a file is read by this rule; `options` are those that qn__data_options_take has checked.
 */
int qn__rule_holds(const qn_data_options *options, qn__rule rule);

#endif
