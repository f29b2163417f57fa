#include "model/network/choice_table.h"

#include "base/text/text.h"
#include "num/program.h"
#include <stdio.h>
#include <string.h>

static const qn__choice activations[] = {
    {"none", QN__ACT_NONE, "the sums unchanged", "linear identity"},
    {"relu", QN__ACT_RELU, "negative sums become 0", "| elu selu celu crelu softplus squaredrelu"},
    {"tanh", QN__ACT_TANH, "hyperbolic tangent, -1 to 1", "| hardtanh softsign tanhshrink"},
    {"sigmoid", QN__ACT_SIGMOID, "logistic function, 0 to 1", "logistic expit | logsigmoid"},
    {"softmax", QN__ACT_SOFTMAX, "class probabilities; only for the last layer",
     "| logsoftmax sparsemax"},
    {"leaky_relu", QN__ACT_LEAKY_RELU, "negative sums are multiplied by 0.01",
     "leaky lrelu | prelu rrelu"},
    {"gelu", QN__ACT_GELU, "the sum times the normal distribution function of it; not last",
     "geluexact"},
    {"gelu-tanh", QN__ACT_GELU_TANH, "gelu approximated by a tanh, as GPT-2 has it; not last",
     "gelunew gelufast gelupytorchtanh | quickgelu"},
    {"silu", QN__ACT_SILU, "the sum times its sigmoid; not last", "swish swish1 | mish"},
    {"relu6", QN__ACT_RELU6, "negative sums become 0, and those above 6 become 6", NULL},
    {"hardswish", QN__ACT_HARDSWISH, "the sum times its hardsigmoid; not last", "hswish hardsilu"},
    {"hardsigmoid", QN__ACT_HARDSIGMOID, "(sum + 3) / 6, from 0 to 1", "hsigmoid"},
};
const qn__table qn__activations = {"activation", NULL, sizeof activations / sizeof *activations,
                                   activations};

static char lower(char c) { return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c; }

const qn__choice *qn__table_row(const qn__table *table, const char *word, size_t size) {
    for (size_t i = 0; i < table->count; ++i)
        if (qn__same_word(table->row[i].name, word, size))
            return &table->row[i];
    return NULL;
}

const char *qn__table_name(const qn__table *table, int value) {
    for (size_t i = 0; i < table->count; ++i)
        if (table->row[i].value == value)
            return table->row[i].name;
    return "?";
}

/* The letters and digits of `word` in lower case: "Cross_Entropy" becomes "crossentropy". 0 if it
 * is longer than any name. */
static int bare_word(const char *word, char *text, size_t size) {
    size_t used = 0;
    for (; *word != '\0'; ++word) {
        const char c = lower(*word);
        if (!(c >= 'a' && c <= 'z') && !(c >= '0' && c <= '9'))
            continue;
        if (used + 1 >= size)
            return 0;
        text[used++] = c;
    }
    text[used] = '\0';
    return used > 0;
}

int qn__word_listed(const char *list, const char *word) {
    const size_t size = strlen(word);
    while (list != NULL && *list != '\0') {
        const size_t length = strcspn(list, " ");
        if (length == size && memcmp(list, word, size) == 0)
            return 1;
        list += length + (list[length] == ' ');
    }
    return 0;
}

const char *qn__table_near(const qn__table *table, const char *word) {
    const char *names[16] = {NULL};
    char text[40], name[40];
    /* A word longer than the buffer is not similar to any name: all are short. */
    if (!bare_word(word, text, sizeof text))
        return NULL;
    for (size_t i = 0; i < table->count && i + 1 < sizeof names / sizeof names[0]; ++i) {
        names[i] = table->row[i].name;
        if (bare_word(names[i], name, sizeof name) && strcmp(name, text) == 0)
            return names[i];
    }
    for (size_t i = 0; i < table->count; ++i)
        if (qn__word_listed(table->row[i].also, text))
            return table->row[i].name;
    size_t size = 0; /* signs count again: "cross_entropi" */
    for (; word[size] != '\0' && size + 1 < sizeof text; ++size)
        text[size] = lower(word[size]);
    text[size] = '\0';
    return qn__nearest(text, names);
}

/* The names after the bar. */
static const char *lacking(const qn__choice *row) {
    return row->also ? strchr(row->also, '|') : NULL;
}

int qn__table_lacks(const qn__table *table, const char *word) {
    char text[40];
    for (size_t i = 0; bare_word(word, text, sizeof text) && i < table->count; ++i)
        if (qn__word_listed(lacking(&table->row[i]), text))
            return 1;
    return 0;
}

void qn__table_advise(const qn__table *table, const char *word, char *text, size_t size) {
    const char *near = qn__table_near(table, word);
    size_t used = 0;
    text[0] = '\0';
    if (near != NULL)
        used = (size_t)snprintf(text, size,
                                qn__table_lacks(table, word)
                                    ? "Quern does not have it, and \"%s\" is nearest; "
                                    : "did you mean \"%s\"? ",
                                near);
    for (size_t i = 0; i < table->count && used < size; ++i)
        used += (size_t)snprintf(text + used, size - used, "%s%s", i == 0 ? "there are: " : ", ",
                                 table->row[i].name);
}

qn_status qn__table_find(const qn__table *table, const char *word, int *value, qn_error *err) {
    const char *given = word != NULL ? word : "";
    const qn__choice *row = qn__table_row(table, given, strlen(given));
    if (row != NULL) {
        *value = row->value;
        return QN_OK;
    }
    char advice[256];
    qn__table_advise(table, given, advice, sizeof advice);
    qn__fail(err, QN_USAGE, "unknown %s \"%.100s\"", table->what, given);
    if (table->field != NULL)
        qn__at(err, "%s", table->field);
    return qn__remedy(err, QN_USAGE, "%s", advice);
}
