#include "data/table/rules.h"
#include "base/system/float_state.h"
#include "data/table/data.h"
#include <stdio.h>
#include <string.h>

static const struct {
    const char *word;
    qn__rule rule;
} rows[] = {
    {"orientation", QN__RULE_ORIENTATION},
    {"exact", QN__RULE_EXACT},
    {"dates", QN__RULE_DATES},
    {"index", QN__RULE_INDEX},
    {"files", QN__RULE_FILES},
    {"none", QN__RULE_NONE},
    {"commas", QN__RULE_COMMAS},
    {"text", QN__RULE_TEXT},
};

enum { ROWS = sizeof rows / sizeof rows[0] };

void qn__rules_text(uint32_t rules, char text[QN_RULES_TEXT]) {
    text[0] = '\0';
    for (size_t i = 0; i < ROWS; ++i)
        if (rules & rows[i].rule) {
            strcat(text, *text ? " " : "");
            strcat(text, rows[i].word);
        }
}

static uint32_t rule_of(const char *word, size_t size) {
    for (size_t i = 0; i < ROWS; ++i)
        if (strlen(rows[i].word) == size && memcmp(rows[i].word, word, size) == 0)
            return rows[i].rule;
    return 0;
}

qn_status qn__rules_parse(const char *text, uint32_t *rules, qn_error *err) {
    char again[QN_RULES_TEXT];
    uint32_t found = text ? 0 : UINT32_MAX;
    for (const char *word = text; word && *word; word += strcspn(word, " "), word += *word == ' ')
        found |= rule_of(word, strcspn(word, " "));
    qn__rules_text(found, again);
    if (text && strcmp(again, text) != 0) {
        qn__fail(err, QN_USAGE, "\"%.100s\" does not name rules of reading as a recipe does", text);
        return qn__remedy(err, QN_USAGE,
                          "give the rules as qn_model_rules tells them, or use the version of "
                          "Quern that made the model");
    }
    *rules = found;
    return QN_OK;
}

void qn_data_rules(const qn_data *data, char *text, size_t size) {
    QN__OWN_FLOATS;
    char all[QN_RULES_TEXT];
    if (!text || size == 0)
        return;
    qn__rules_text(data ? data->rules : 0, all);
    snprintf(text, size, "%s", all);
}

int qn__rule_holds(const qn_data_options *options, qn__rule rule) {
    uint32_t rules = 0;
    return qn__rules_parse(options->expected_rules, &rules, NULL) == QN_OK && (rules & rule);
}
