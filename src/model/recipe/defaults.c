#include "model/recipe/defaults.h"

#include "base/system/float_state.h"
#include "base/system/timeouts.h"
#include "base/text/text.h"
#include "model/recipe/option_rows.h"
#include "model/recipe/tables.h"
#include <inttypes.h>
#include <quern/defaults.h>
#include <quern/train.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* The network of a recipe without a model text; the number of classes is appended. */
static const char HIDDEN_LAYERS[] = "dense 500 tanh", HIDDEN_OF_REAL[] = "dense 100 relu";
static const char HIDDEN_OF_TABLE[] = "dense 64 relu; dense 32 relu";
static const char LAST_ACTIVATION[] = "softmax", LAST_OF_TWO[] = "dense 1 sigmoid";
static const char LAST_OF_REAL[] = "dense 1 none";
static const char HIDDEN_OF_MASK[] = "conv 16 3x3 relu; conv 16 3x3 relu";
static const char LAST_OF_MASK_OF_TWO[] = "conv 1 1x1 sigmoid";

/* Items of a step: of images; of a table at least and at most, which has at least so many batches
 * below BATCH and above it. Epochs: of images and of large tables, of small tables at most, and
 * iterations of an optimiser that has no steps. */
enum { BATCH = 64, LEAST_BATCH = 8, MOST_BATCH = 256, FEW_BATCHES = 16, MANY_BATCHES = 100 };
enum { EPOCHS = 10, MOST_EPOCHS = 200, STEPS = 1000, ITERATIONS = 100 };
/* Heights and widths of images, up to which grains have more items. */
enum { SMALL_IMAGE = 64, MEDIUM_IMAGE = 256 };
/* The decay of the weights of words, times the number of items: of two outputs, whose weights are
 * opposite, that of a C of 10 in other programs. */
#define TEXT_DECAY 0.2f
/* Items from which a table is decayed less. */
enum { MEDIUM_TABLE = 1000, LARGE_TABLE = 10000 };

void qn_train_options_init(qn_train_options *options) {
    if (!options)
        return;
    memset(options, 0, sizeof *options);
    options->size = sizeof *options;
    options->compute.size = sizeof options->compute;
    qn__options_init(options);
}

/* The rates of a table's own optimiser, and of real labels, were the best of those tried on tables
 * of 50 to 50,000 items (bench/defaults.py); sgd with 0.1 leaves the range of numbers there.
 * Networks with attention learn little at 0.01. */
float qn__default_learning_rate(const qn__default_case *of, qn__optimizer optimizer, int given) {
    const int own = of->table && !given;
    if (own && (of->attention || of->task == QN__TASK_NEXT))
        return 0.001f;
    if (own || of->task == QN__TASK_REGRESS)
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

float qn__default_weight_decay(const qn__default_case *of, int given) {
    if (!of->table || given)
        return 0;
    if (of->text)
        return TEXT_DECAY / (float)(of->items ? of->items : 1);
    return of->items < MEDIUM_TABLE ? 1.0f : of->items < LARGE_TABLE ? 0.3f : 0.1f;
}

qn__schedule qn__default_schedule(const qn__default_case *of, int given) {
    return of->table && !of->text && !given ? QN__SCHEDULE_COSINE
                                            : (qn__schedule)qn__schedules.row[0].value;
}

/* A small table has smaller batches, so that its steps need fewer passes over it. A large one has
 * larger batches where its fewest epochs still have enough steps, because these take less time. */
uint32_t qn__default_batch(const qn__default_case *of) {
    uint32_t batch = LEAST_BATCH;
    if (!of->table)
        return BATCH;
    while (batch < MOST_BATCH &&
           of->items / (2 * batch) >= (batch < BATCH ? FEW_BATCHES : MANY_BATCHES))
        batch *= 2;
    return batch;
}

/* Positions of a grain of tokens. */
enum { POSITIONS = 1024 };

uint32_t qn__default_grain_of_tokens(uint32_t positions) {
    return positions < POSITIONS ? POSITIONS / (positions ? positions : 1) : 1;
}

/* Of large images a grain of 32 would be the whole batch, which no two devices could share. */
uint32_t qn__default_grain(uint64_t pixels) {
    return pixels <= SMALL_IMAGE * SMALL_IMAGE ? 32 : pixels <= MEDIUM_IMAGE * MEDIUM_IMAGE ? 8 : 2;
}

uint32_t qn__default_epochs(const qn__default_case *of, qn__optimizer optimizer, uint32_t batch) {
    if (optimizer == QN__OPT_LBFGS)
        return ITERATIONS;
    if (!of->table || of->items == 0 || batch == 0)
        return EPOCHS;
    const uint64_t steps = of->items / batch + (of->items % batch > 0);
    const uint64_t epochs = (STEPS + steps - 1) / steps;
    return epochs < EPOCHS ? EPOCHS : epochs > MOST_EPOCHS ? MOST_EPOCHS : (uint32_t)epochs;
}

float qn__default_momentum(qn__optimizer optimizer) {
    return qn__table_takes(&qn__optimizers, (int)optimizer, "momentum") ? 0.9f : 0;
}

qn__loss qn__default_loss(qn__task task) {
    return task == QN__TASK_REGRESS      ? QN__LOSS_MSE
           : task == QN__TASK_MULTILABEL ? QN__LOSS_BINARY
                                         : QN__LOSS_CROSS_ENTROPY;
}

/* A momentum other than 0 selects the optimiser that uses it. The slope of a squared
 * error has no bound, so real targets have the optimiser that does not depend on its size. */
qn__optimizer qn__default_optimizer(const qn__default_case *of, float momentum) {
    if (momentum != 0 && momentum != QN_BY_OPTIMIZER)
        return QN__OPT_MOMENTUM;
    if (of->text)
        return QN__OPT_LBFGS;
    if (of->table)
        return QN__OPT_ADAMW;
    return of->task == QN__TASK_REGRESS ? QN__OPT_ADAM : (qn__optimizer)qn__optimizers.row[0].value;
}

void qn__default_of_images(qn__task task, qn_train_options *options) {
    const qn__default_case of = {task, 0, 0, 0, 0};
    int optimizer = (int)qn__default_optimizer(&of, options->momentum);
    if (options->optimizer && qn__table_find(&qn__optimizers, options->optimizer, &optimizer, NULL))
        return; /* whoever makes the recipe tells the error */
    options->optimizer = qn__table_name(&qn__optimizers, optimizer);
    if (options->weight_decay == QN_BY_OPTIMIZER)
        options->weight_decay = qn__default_weight_decay(&of, 1);
    if (!options->schedule)
        options->schedule = qn__table_name(&qn__schedules, (int)qn__default_schedule(&of, 1));
    if (options->batch == QN_BY_DATA && optimizer != QN__OPT_LBFGS)
        options->batch = qn__default_batch(&of);
    if (options->epochs == QN_BY_DATA)
        options->epochs = qn__default_epochs(&of, (qn__optimizer)optimizer, options->batch);
}

/* Bytes divided by 256 are exact in the integers that are wider than bytes. */
qn__scale qn__default_scale(int picture, int texts, qn__arith arith) {
    if (texts)
        return QN__SCALE_NONE;
    if (!picture)
        return QN__SCALE_STANDARD;
    return arith == QN__ARITH_I14 || arith == QN__ARITH_I21 ? QN__SCALE_FRACTION : QN__SCALE_UNIT;
}

/* ------------------------------------------------------------------------------------- as text */

/* A text that grows in the caller's buffer; `used` exceeds `capacity` if it does not fit. */
typedef struct output {
    char *text;
    size_t capacity, used;
} output;

__attribute__((format(printf, 2, 3))) static void put(output *out, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    const int length =
        vsnprintf(out->used < out->capacity ? out->text + out->used : NULL,
                  out->used < out->capacity ? out->capacity - out->used : 0, format, arguments);
    va_end(arguments);
    out->used += length > 0 ? (size_t)length : 0;
}

static int finish(const output *out) {
    if (out->used > 0 && out->used < out->capacity)
        return 1;
    if (out->capacity > 0)
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

/* The cases that the texts of the defaults name. */
static const qn__default_case images = {QN__TASK_CLASSIFY, 0, 0, 0, 0},
                              real = {QN__TASK_REGRESS, 0, 0, 0, 0},
                              table = {QN__TASK_CLASSIFY, 1, 0, 0, 0},
                              medium_table = {QN__TASK_CLASSIFY, 1, MEDIUM_TABLE, 0, 0},
                              large_table = {QN__TASK_CLASSIFY, 1, LARGE_TABLE, 0, 0},
                              words = {QN__TASK_CLASSIFY, 1, 0, 1, 0},
                              attention = {QN__TASK_CLASSIFY, 1, 0, 0, 1};
static const char OWN_OPTIMIZER[] = "; tables without `train.optimizer`: ";

static float rate_of_classes(qn__optimizer optimizer) {
    return qn__default_learning_rate(&images, optimizer, 1);
}

static void put_learning_rate(output *out) {
    put_by_optimizer(out, rate_of_classes);
    put(out, "; real labels: ");
    put_float(out, qn__default_learning_rate(&real, QN__OPT_ADAM, 1));
    put(out, "%s", OWN_OPTIMIZER);
    put_float(out, qn__default_learning_rate(&table, QN__OPT_ADAMW, 0));
    put(out, ", with attention ");
    put_float(out, qn__default_learning_rate(&attention, QN__OPT_ADAMW, 0));
}

static void put_weight_decay(output *out) {
    put_float(out, qn__default_weight_decay(&images, 0));
    put(out, "%s", OWN_OPTIMIZER);
    put_float(out, qn__default_weight_decay(&table, 0));
    put(out, ", from %d items ", MEDIUM_TABLE);
    put_float(out, qn__default_weight_decay(&medium_table, 0));
    put(out, ", from %d ", LARGE_TABLE);
    put_float(out, qn__default_weight_decay(&large_table, 0));
    put(out, "; with texts: %g / items", (double)TEXT_DECAY);
}

static void put_schedule(output *out) {
    put(out, "%s%s%s", qn__table_name(&qn__schedules, (int)qn__default_schedule(&images, 0)),
        OWN_OPTIMIZER, qn__table_name(&qn__schedules, (int)qn__default_schedule(&table, 0)));
}

static void put_batch(output *out) {
    put(out, "%d; tables: %d to %d, by their items", BATCH, LEAST_BATCH, MOST_BATCH);
}

static void put_grain(output *out) {
    put(out, "%u; images above %dx%d pixels: %u, above %dx%d: %u", qn__default_grain(0),
        SMALL_IMAGE, SMALL_IMAGE, qn__default_grain(MEDIUM_IMAGE * MEDIUM_IMAGE), MEDIUM_IMAGE,
        MEDIUM_IMAGE, qn__default_grain(UINT64_MAX));
    put(out, "; `data.task` next: the items of %d positions", POSITIONS);
}

static void put_epochs(output *out) {
    put(out, "%d; tables: as many as give %d steps, %d to %d; `train.optimizer` lbfgs: %d", EPOCHS,
        STEPS, EPOCHS, MOST_EPOCHS, ITERATIONS);
}

static void put_momentum(output *out) { put_by_optimizer(out, qn__default_momentum); }

static void put_optimizer(output *out) {
    put(out, "%s; real labels: %s; tables: %s; with texts: %s",
        qn__table_name(&qn__optimizers, (int)qn__default_optimizer(&images, 0)),
        qn__table_name(&qn__optimizers, (int)qn__default_optimizer(&real, 0)),
        qn__table_name(&qn__optimizers, (int)qn__default_optimizer(&table, 0)),
        qn__table_name(&qn__optimizers, (int)qn__default_optimizer(&words, 0)));
}

static void put_loss(output *out) {
    put(out, "%s; real labels: %s; several labels: %s",
        qn__table_name(&qn__losses, (int)qn__default_loss(QN__TASK_CLASSIFY)),
        qn__table_name(&qn__losses, (int)qn__default_loss(QN__TASK_REGRESS)),
        qn__table_name(&qn__losses, (int)qn__default_loss(QN__TASK_MULTILABEL)));
}

static void put_scale(output *out) {
    const qn__table *t = &qn__arithmetics;
    const qn__scale usual = qn__default_scale(1, 0, (qn__arith)t->row[0].value);
    qn__scale other = usual;
    put(out, "images: %s", qn__table_name(&qn__scalings, (int)usual));
    for (size_t i = 0; i < t->count; ++i) {
        const qn__scale own = qn__default_scale(1, 0, (qn__arith)t->row[i].value);
        if (own == usual)
            continue;
        put(out, "%s%s", other == usual ? ", `train.arith` " : ", ", t->row[i].name);
        other = own;
    }
    if (other != usual)
        put(out, ": %s", qn__table_name(&qn__scalings, (int)other));
    put(out, "; other data: %s; texts alone: %s",
        qn__table_name(&qn__scalings, (int)qn__default_scale(0, 0, QN__ARITH_F32)),
        qn__table_name(&qn__scalings, (int)qn__default_scale(0, 1, QN__ARITH_F32)));
}

static void put_model(output *out) {
    put(out,
        "%s; dense CLASSES %s; real labels: %s; %s; tables: %s and the last layer; with texts: the "
        "last layer",
        HIDDEN_LAYERS, LAST_ACTIVATION, HIDDEN_OF_REAL, LAST_OF_REAL, HIDDEN_OF_TABLE);
}

/* Defaults with a rule, and those of other structs; the others are in option_rows.c. */
static const struct {
    const char *field;
    void (*rule)(output *);
    double seconds; /* without a rule */
} fields[] = {
    {"train.model", put_model, 0},
    {"train.optimizer", put_optimizer, 0},
    {"train.learning_rate", put_learning_rate, 0},
    {"train.momentum", put_momentum, 0},
    {"train.scale", put_scale, 0},
    {"train.loss", put_loss, 0},
    {"train.schedule", put_schedule, 0},
    {"train.weight_decay", put_weight_decay, 0},
    {"train.batch", put_batch, 0},
    {"train.grain", put_grain, 0},
    {"train.epochs", put_epochs, 0},
    {"compute.device_timeout", NULL, QN__DEVICE_TIMEOUT},
    {"cluster.rendezvous_timeout", NULL, QN__RENDEZVOUS_TIMEOUT},
    {"cluster.rank_timeout", NULL, QN__RANK_TIMEOUT},
};

/* Those without a rule. */
static void put_option(output *out, const qn__option *o) {
    if (o->open.fallback || o->ruled)
        return;
    if (o->first)
        put(out, "%s", o->table->row[0].name);
    else if (o->open.type == QN_OPTION_FLOAT)
        put_float(out, (float)o->usual);
    else if (o->open.type == QN_OPTION_COUNT || o->open.type == QN_OPTION_LONG)
        put(out, "%" PRIu64, (uint64_t)o->usual);
}

int qn_default_text(const char *field, char *text, size_t capacity) {
    QN__OWN_FLOATS;
    output out = {text, text ? capacity : 0, 0};
    for (size_t i = 0; field && i < sizeof fields / sizeof *fields; ++i)
        if (strcmp(fields[i].field, field) == 0 && fields[i].rule)
            fields[i].rule(&out);
        else if (strcmp(fields[i].field, field) == 0)
            put(&out, "%g", fields[i].seconds);
    for (const qn__option *o = qn__options; field && o->key; ++o)
        if (o->open.field && strcmp(o->open.field, field) == 0)
            put_option(&out, o);
    return finish(&out);
}

void qn__default_last(qn__task task, qn__loss loss, uint32_t classes, char *text) {
    *text = '\0';
    if (task == QN__TASK_REGRESS)
        snprintf(text, QN__DEFAULT_LAST_CAPACITY, "%s", LAST_OF_REAL);
    else if (task == QN__TASK_MULTILABEL)
        snprintf(text, QN__DEFAULT_LAST_CAPACITY, "dense %" PRIu32 " sigmoid", classes);
    else if (task == QN__TASK_SEGMENT && loss == QN__LOSS_BINARY)
        snprintf(text, QN__DEFAULT_LAST_CAPACITY, "%s", LAST_OF_MASK_OF_TWO);
    else if (task == QN__TASK_SEGMENT)
        snprintf(text, QN__DEFAULT_LAST_CAPACITY, "conv %" PRIu32 " 1x1 %s", classes,
                 LAST_ACTIVATION);
    else if (loss == QN__LOSS_BINARY)
        snprintf(text, QN__DEFAULT_LAST_CAPACITY, "%s", LAST_OF_TWO);
    else if (classes > 0)
        snprintf(text, QN__DEFAULT_LAST_CAPACITY, "dense %" PRIu32 " %s", classes, LAST_ACTIVATION);
}

void qn__default_model(const qn__default_case *of, qn__loss loss, uint32_t classes, char *text) {
    char last[QN__DEFAULT_LAST_CAPACITY];
    const char *hidden = of->task == QN__TASK_SEGMENT   ? HIDDEN_OF_MASK
                         : of->table                    ? HIDDEN_OF_TABLE
                         : of->task == QN__TASK_REGRESS ? HIDDEN_OF_REAL
                                                        : HIDDEN_LAYERS;
    qn__default_last(of->task, loss, classes, last);
    const int hides = *last && !of->text;
    snprintf(text, QN__DEFAULT_MODEL_CAPACITY, "%s%s%s", hides ? hidden : "", hides ? "; " : "",
             last);
}

int qn_default_model(uint32_t classes, char *text, size_t capacity) {
    QN__OWN_FLOATS;
    output out = {text, text ? capacity : 0, 0};
    if (classes > 0)
        put(&out, "%s; dense %" PRIu32 " %s", HIDDEN_LAYERS, classes, LAST_ACTIVATION);
    return finish(&out);
}
