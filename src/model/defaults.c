#include "model/defaults.h"

#include "base/float_state.h"
#include "base/text.h"
#include "base/timeouts.h"
#include "model/tables.h"
#include <inttypes.h>
#include <quern/defaults.h>
#include <quern/train.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* The network of a recipe without a model text; the number of classes is appended. Real targets
 * have a smaller one: their tables are mostly small, and their loss is steeper. */
static const char HIDDEN_LAYERS[] = "dense 500 tanh", HIDDEN_OF_REAL[] = "dense 100 relu";
static const char LAST_ACTIVATION[] = "softmax", LAST_OF_TWO[] = "dense 1 sigmoid";
static const char LAST_OF_REAL[] = "dense 1 none";

void qn_train_options_init(qn_train_options *options) {
    if (!options)
        return;
    memset(options, 0, sizeof *options);
    options->size = sizeof *options;
    options->compute.size = sizeof options->compute;
    options->arith = qn__arithmetics.row[0].name;
    options->init = qn__initialisations.row[0].name;
    options->schedule = qn__schedules.row[0].name;
    options->missing = qn__missing_rules.row[0].name;
    options->learning_rate = QN_BY_OPTIMIZER;
    options->momentum = QN_BY_OPTIMIZER;
    options->beta1 = 0.9f;
    options->beta2 = 0.999f;
    options->epsilon = 1e-8f;
    options->delta = 1.0f;
    options->lr_step = 10;
    options->lr_gamma = 0.1f;
    options->batch = 64;
    options->grain = 32;
    options->epochs = 10;
    options->seed = 1;
    options->gradient_scale = 44;
    options->tolerance = 1e-4f;
}

/* Of real labels one rate for all: it was the best of tables of 100 to 20,000 items, and sgd with
 * 0.1 leaves the range of numbers. */
float qn__default_learning_rate(qn__task task, qn__optimizer optimizer) {
    if (task == QN__TASK_REGRESS)
        return 0.01f;
    switch (optimizer) {
    case QN__OPT_ADAM:
    case QN__OPT_ADAMW:
        return 0.001f;
    case QN__OPT_SGD:
    case QN__OPT_MOMENTUM:
    case QN__OPT_NESTEROV:
    case QN__OPT_LBFGS:
        break;
    }
    return 0.1f;
}

float qn__default_momentum(qn__optimizer optimizer) {
    return qn__table_takes(&qn__optimizers, (int)optimizer, "momentum") ? 0.9f : 0;
}

qn__loss qn__default_loss(qn__task task) {
    return task == QN__TASK_REGRESS ? QN__LOSS_MSE : QN__LOSS_CROSS_ENTROPY;
}

/* A momentum other than 0 selects the optimiser that uses it. The slope of a squared
 * error has no bound, so real targets have the optimiser that does not depend on its size. */
qn__optimizer qn__default_optimizer(qn__task task, float momentum) {
    if (momentum != 0 && momentum != QN_BY_OPTIMIZER)
        return QN__OPT_MOMENTUM;
    return task == QN__TASK_REGRESS ? QN__OPT_ADAM : (qn__optimizer)qn__optimizers.row[0].value;
}

/* Bytes divided by 256 are exact in the integers that are wider than bytes. */
qn__scale qn__default_scale(int picture, qn__arith arith) {
    if (!picture)
        return QN__SCALE_STANDARD;
    return arith == QN__ARITH_I14 || arith == QN__ARITH_I21 ? QN__SCALE_FRACTION : QN__SCALE_UNIT;
}

/* ------------------------------------------------------------------------------------- as text */

/* A text that grows in the caller's buffer; `used` exceeds `room` if it does not fit. */
typedef struct output {
    char *text;
    size_t room, used;
} output;

__attribute__((format(printf, 2, 3))) static void put(output *out, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    const int length =
        vsnprintf(out->used < out->room ? out->text + out->used : NULL,
                  out->used < out->room ? out->room - out->used : 0, format, arguments);
    va_end(arguments);
    out->used += length > 0 ? (size_t)length : 0;
}

static int finish(const output *out) {
    if (out->used > 0 && out->used < out->room)
        return 1;
    if (out->room > 0)
        out->text[0] = '\0';
    return 0;
}

static void put_float(output *out, float value) {
    char text[32];
    qn__float_text(value, text);
    put(out, "%s", text);
}

/* The value of the first optimiser, then those with another value; those with another share one. */
static void put_by_optimizer(output *out, float (*value)(qn__optimizer)) {
    const qn__table *t = &qn__optimizers;
    const float usual = value((qn__optimizer)t->row[0].value);
    float other = usual;
    put_float(out, usual);
    for (size_t i = 0; i < t->count; ++i) {
        const float own = value((qn__optimizer)t->row[i].value);
        if (own == usual)
            continue;
        put(out, "%s%s", other == usual ? "; `train.optimizer` " : ", ", t->row[i].name);
        other = own;
    }
    if (other != usual) {
        put(out, ": ");
        put_float(out, other);
    }
}

static float rate_of_classes(qn__optimizer optimizer) {
    return qn__default_learning_rate(QN__TASK_CLASSIFY, optimizer);
}

static void put_learning_rate(output *out) {
    put_by_optimizer(out, rate_of_classes);
    put(out, "; real labels: ");
    put_float(out, qn__default_learning_rate(QN__TASK_REGRESS, QN__OPT_ADAM));
}

static void put_momentum(output *out) { put_by_optimizer(out, qn__default_momentum); }

static void put_optimizer(output *out) {
    put(out, "%s; real labels: %s",
        qn__table_name(&qn__optimizers, (int)qn__default_optimizer(QN__TASK_CLASSIFY, 0)),
        qn__table_name(&qn__optimizers, (int)qn__default_optimizer(QN__TASK_REGRESS, 0)));
}

static void put_loss(output *out) {
    put(out, "%s; real labels: %s",
        qn__table_name(&qn__losses, (int)qn__default_loss(QN__TASK_CLASSIFY)),
        qn__table_name(&qn__losses, (int)qn__default_loss(QN__TASK_REGRESS)));
}

static void put_scale(output *out) {
    const qn__table *t = &qn__arithmetics;
    const qn__scale usual = qn__default_scale(1, (qn__arith)t->row[0].value);
    qn__scale other = usual;
    put(out, "images: %s", qn__table_name(&qn__scalings, (int)usual));
    for (size_t i = 0; i < t->count; ++i) {
        const qn__scale own = qn__default_scale(1, (qn__arith)t->row[i].value);
        if (own == usual)
            continue;
        put(out, "%s%s", other == usual ? ", `train.arith` " : ", ", t->row[i].name);
        other = own;
    }
    if (other != usual)
        put(out, ": %s", qn__table_name(&qn__scalings, (int)other));
    put(out, "; other data: %s",
        qn__table_name(&qn__scalings, (int)qn__default_scale(0, QN__ARITH_F32)));
}

static void put_model(output *out) {
    put(out, "%s; dense CLASSES %s; real labels: %s; %s", HIDDEN_LAYERS, LAST_ACTIVATION,
        HIDDEN_OF_REAL, LAST_OF_REAL);
}

/* The types of members with a fixed default, and those with a rule. */
typedef enum form { WORD, FLOAT, UINT32, UINT64, SECONDS, RULE } form;

#define MEMBER(name, kind)                                                                         \
    { "train." #name, kind, offsetof(qn_train_options, name), 0, NULL }
#define BY_RULE(name, function)                                                                    \
    { "train." #name, RULE, 0, 0, function }
static const struct {
    const char *field;
    form form;
    size_t offset;  /* of the member in qn_train_options */
    double seconds; /* of SECONDS */
    void (*rule)(output *);
} fields[] = {
    BY_RULE(model, put_model),
    BY_RULE(optimizer, put_optimizer),
    BY_RULE(learning_rate, put_learning_rate),
    BY_RULE(momentum, put_momentum),
    BY_RULE(scale, put_scale),
    MEMBER(arith, WORD),
    BY_RULE(loss, put_loss),
    MEMBER(delta, FLOAT),
    MEMBER(smoothing, FLOAT),
    MEMBER(init, WORD),
    MEMBER(schedule, WORD),
    MEMBER(missing, WORD),
    MEMBER(beta1, FLOAT),
    MEMBER(beta2, FLOAT),
    MEMBER(epsilon, FLOAT),
    MEMBER(weight_decay, FLOAT),
    MEMBER(l1, FLOAT),
    MEMBER(tolerance, FLOAT),
    MEMBER(lr_step, UINT32),
    MEMBER(lr_gamma, FLOAT),
    MEMBER(warmup, UINT32),
    MEMBER(valid_fraction, FLOAT),
    MEMBER(batch, UINT32),
    MEMBER(grain, UINT32),
    MEMBER(epochs, UINT32),
    MEMBER(seed, UINT64),
    MEMBER(gradient_scale, UINT32),
    {"compute.device_timeout", SECONDS, 0, QN__DEVICE_TIMEOUT, NULL},
    {"cluster.rendezvous_timeout", SECONDS, 0, QN__RENDEZVOUS_TIMEOUT, NULL},
    {"cluster.rank_timeout", SECONDS, 0, QN__RANK_TIMEOUT, NULL},
};

static void put_member(output *out, form kind, const void *member) {
    if (kind == WORD)
        put(out, "%s", *(const char *const *)member);
    else if (kind == FLOAT)
        put_float(out, *(const float *)member);
    else if (kind == UINT32)
        put(out, "%" PRIu32, *(const uint32_t *)member);
    else
        put(out, "%" PRIu64, *(const uint64_t *)member);
}

int qn_default_text(const char *field, char *text, size_t room) {
    QN__OWN_FLOATS;
    output out = {text, text ? room : 0, 0};
    qn_train_options options;
    qn_train_options_init(&options);
    for (size_t i = 0; field && i < sizeof fields / sizeof *fields; ++i) {
        if (strcmp(fields[i].field, field) != 0)
            continue;
        if (fields[i].form == RULE)
            fields[i].rule(&out);
        else if (fields[i].form == SECONDS)
            put(&out, "%g", fields[i].seconds);
        else
            put_member(&out, fields[i].form, (const char *)&options + fields[i].offset);
    }
    return finish(&out);
}

void qn__default_last(qn__task task, qn__loss loss, uint32_t classes, char *text) {
    *text = '\0';
    if (task == QN__TASK_REGRESS)
        snprintf(text, QN__DEFAULT_LAST_ROOM, "%s", LAST_OF_REAL);
    else if (loss == QN__LOSS_BINARY)
        snprintf(text, QN__DEFAULT_LAST_ROOM, "%s", LAST_OF_TWO);
    else if (classes > 0)
        snprintf(text, QN__DEFAULT_LAST_ROOM, "dense %" PRIu32 " %s", classes, LAST_ACTIVATION);
}

void qn__default_model(qn__task task, qn__loss loss, uint32_t classes, char *text) {
    char last[QN__DEFAULT_LAST_ROOM];
    qn__default_last(task, loss, classes, last);
    snprintf(text, QN__DEFAULT_MODEL_ROOM, "%s%s%s",
             !*last                     ? ""
             : task == QN__TASK_REGRESS ? HIDDEN_OF_REAL
                                        : HIDDEN_LAYERS,
             *last ? "; " : "", last);
}

int qn_default_model(uint32_t classes, char *text, size_t room) {
    QN__OWN_FLOATS;
    output out = {text, text ? room : 0, 0};
    if (classes > 0)
        put(&out, "%s; dense %" PRIu32 " %s", HIDDEN_LAYERS, classes, LAST_ACTIVATION);
    return finish(&out);
}
