#include "model/tables.h"

#include "base/text.h"
#include "model/recipe.h"
#include <stdio.h>
#include <string.h>

#define ROWS(array) sizeof(array) / sizeof((array)[0]), array

static const qn__choice activations[] = {
    {"none", QN__ACT_NONE, "the sums as they are"},
    {"relu", QN__ACT_RELU, "zero for negative sums, others as they are"},
    {"tanh", QN__ACT_TANH, "hyperbolic tangent, -1 to 1"},
    {"sigmoid", QN__ACT_SIGMOID, "logistic function, 0 to 1"},
    {"softmax", QN__ACT_SOFTMAX, "shares of 1, one for each class; last layer only"},
};
const qn__table qn__activations = {"activation", NULL, ROWS(activations)};

static const qn__choice losses[] = {
    {"cross-entropy", QN__LOSS_CROSS_ENTROPY, "minus the logarithm of the right class's share"},
    {"mse", QN__LOSS_MSE, "squared distance from the right outputs"},
};
const qn__table qn__losses = {"loss", "--loss", ROWS(losses)};

static const qn__choice optimizers[] = {
    {"sgd", QN__OPT_SGD, "gradient descent"},
    {"momentum", QN__OPT_MOMENTUM, "gradient descent with momentum (--momentum)"},
    {"adam", QN__OPT_ADAM, "Adam (--beta1, --beta2, --epsilon)"},
    {"adamw", QN__OPT_ADAMW, "Adam with weight decay apart from the gradient"},
};
const qn__table qn__optimizers = {"optimizer", "--optimizer", ROWS(optimizers)};

static const qn__choice initialisations[] = {
    {"auto", QN__INIT_AUTO, "he for layers with relu, glorot for others"},
    {"glorot", QN__INIT_GLOROT, "uniform up to sqrt(6 / (inputs + outputs))"},
    {"he", QN__INIT_HE, "uniform up to sqrt(6 / inputs)"},
    {"lecun", QN__INIT_LECUN, "uniform up to sqrt(3 / inputs)"},
};
const qn__table qn__initialisations = {"initialisation", "--init", ROWS(initialisations)};

static const qn__choice scalings[] = {
    {"none", QN__SCALE_NONE, "values as they are"},
    {"unit", QN__SCALE_UNIT, "bytes divided by 255"},
    {"fraction", QN__SCALE_FRACTION, "bytes divided by 256, exactly"},
    {"standard", QN__SCALE_STANDARD, "each feature with mean 0 and deviation 1"},
};
const qn__table qn__scalings = {"scaling", "--scale", ROWS(scalings)};

static const qn__choice arithmetics[] = {
    {"f32", QN__ARITH_F32, "products of float32, added up in a fixed order"},
    {"i7", QN__ARITH_I7, "exact products of 7-bit integers"},
    {"i14", QN__ARITH_I14, "exact products of 14-bit integers"},
    {"i21", QN__ARITH_I21, "exact products of 21-bit integers"},
};
const qn__table qn__arithmetics = {"arithmetic", "--arith", ROWS(arithmetics)};

static const qn__choice schedules[] = {
    {"constant", QN__SCHEDULE_CONSTANT, "the same rate throughout"},
    {"step", QN__SCHEDULE_STEP, "times --lr-gamma every --lr-step epochs"},
    {"cosine", QN__SCHEDULE_COSINE, "falls to 0 along half a cosine"},
};
const qn__table qn__schedules = {"schedule", "--schedule", ROWS(schedules)};

static char lower(char c) { return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c; }

/* Whether `name`, which is in lower case, is the `size` bytes at `word` in any case. */
static int same_word(const char *name, const char *word, size_t size) {
    if (strlen(name) != size)
        return 0;
    for (size_t i = 0; i < size; ++i)
        if (lower(word[i]) != name[i])
            return 0;
    return 1;
}

const qn__choice *qn__table_row(const qn__table *table, const char *word, size_t size) {
    for (size_t i = 0; i < table->count; ++i)
        if (same_word(table->row[i].name, word, size))
            return &table->row[i];
    return NULL;
}

const char *qn__table_name(const qn__table *table, int value) {
    for (size_t i = 0; i < table->count; ++i)
        if (table->row[i].value == value)
            return table->row[i].name;
    return "?";
}

/* The name nearest to `word`, which is compared in lower case, or NULL. */
static const char *nearest_name(const qn__table *table, const char *word) {
    const char *names[16] = {NULL};
    for (size_t i = 0; i < table->count && i + 1 < sizeof names / sizeof names[0]; ++i)
        names[i] = table->row[i].name;
    char text[32];
    size_t size = 0;
    for (; word[size] != '\0' && size + 1 < sizeof text; ++size)
        text[size] = lower(word[size]);
    text[size] = '\0';
    /* A word too long for the buffer is near to none of the names, which are all short. */
    return word[size] == '\0' ? qn__nearest(text, names) : NULL;
}

void qn__table_advise(const qn__table *table, const char *word, char *text, size_t size) {
    const char *near = nearest_name(table, word);
    size_t used = 0;
    text[0] = '\0';
    if (near != NULL)
        used = (size_t)snprintf(text, size, "did you mean \"%s\"? ", near);
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
    if (table->option != NULL)
        qn__at(err, "%s", table->option);
    return qn__remedy(err, QN_USAGE, "%s", advice);
}
