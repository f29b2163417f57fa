#include "model/recipe/stages.h"

#include "base/memory.h"
#include "layer/tokens.h"
#include "model/recipe/tables.h"
#include <stdio.h>
#include <string.h>

static const char EXAMPLE[] = "write stages as \"epochs 5 lr 0.1; epochs 5 lr 0.01\"";
static const char SETS[] = "a stage sets epochs, lr, schedule, lr-step, lr-gamma, lr-min and "
                           "warmup; all other options are those of the whole training";

static const char LEAST_REMEDY[] = "give a number above 0, at most the lr of the stage";

typedef enum word { EPOCHS, RATE, SCHEDULE, STEP, GAMMA, LEAST, WARMUP, WORDS } word;

static const struct {
    const char *name, *other, *remedy;
} words[WORDS] = {
    [EPOCHS] = {"epochs", NULL, "give the number of epochs of the stage, such as 5"},
    [RATE] = {"lr", "learning_rate", "give a number greater than 0, such as 0.01"},
    [SCHEDULE] = {"schedule", NULL, "give a schedule: constant, step, cosine or exponential"},
    [STEP] = {"lr-step", "lr_step", "give the number of epochs between two reductions"},
    [GAMMA] = {"lr-gamma", "lr_gamma", QN__GAMMA_REMEDY},
    [LEAST] = {"lr-min", "lr_min", LEAST_REMEDY},
    [WARMUP] = {"warmup", NULL, "give a number of steps"},
};

qn__stage qn__stage_of(const qn__recipe *r) {
    return (qn__stage){.epochs = r->epochs,
                       .learning_rate = r->learning_rate,
                       .schedule = r->schedule,
                       .lr_step = r->lr_step,
                       .lr_gamma = r->lr_gamma,
                       .lr_min = r->lr_min,
                       .warmup = r->warmup};
}

/* ------------------------------------------------------------------------------------ reading */

static int is_word(const qn__tokens *t, word w) {
    return qn__tokens_is(t, words[w].name) || (words[w].other && qn__tokens_is(t, words[w].other));
}

static qn_status refuse_word(const qn__tokens *t) {
    char what[160], quote[64];
    snprintf(what, sizeof what, "\"%s\" cannot change between stages", qn__tokens_quote(t, quote));
    if (qn__tokens_ended(t))
        return qn__tokens_invalid(t, "there is no stage before", EXAMPLE);
    return qn__tokens_fail(t, t->at, what, SETS);
}

static qn_status refuse_value(const qn__tokens *t, word w) {
    char what[160], quote[64];
    if (qn__tokens_ended(t))
        snprintf(what, sizeof what, "there is no value after \"%s\"", words[w].name);
    else
        snprintf(what, sizeof what, "%s cannot be \"%s\"", words[w].name,
                 qn__tokens_quote(t, quote));
    return qn__tokens_fail(t, t->at, what, words[w].remedy);
}

static int read_count(const qn__tokens *t, uint32_t least, uint32_t *out) {
    uint64_t value;
    if (!qn__parse_u64(t->text + t->at, t->size, &value) || value < least || value > UINT32_MAX)
        return 0;
    *out = (uint32_t)value;
    return 1;
}

static int read_number(const qn__tokens *t, float most, float *out) {
    return qn__parse_float(t->text + t->at, t->size, out) && *out > 0 && *out <= most;
}

static int read_schedule(const qn__tokens *t, qn__schedule *out) {
    const qn__choice *row = qn__table_row(&qn__schedules, t->text + t->at, t->size);
    if (row)
        *out = (qn__schedule)row->value;
    return row != NULL;
}

static int read_value(const qn__tokens *t, word w, qn__stage *stage) {
    switch (w) {
    case EPOCHS:
        return read_count(t, 1, &stage->epochs);
    case RATE:
        return read_number(t, 3.4e38f, &stage->learning_rate);
    case SCHEDULE:
        return read_schedule(t, &stage->schedule);
    case STEP:
        return read_count(t, 1, &stage->lr_step);
    case GAMMA:
        return read_number(t, 10.0f, &stage->lr_gamma);
    case LEAST:
        return read_number(t, 3.4e38f, &stage->lr_min);
    case WARMUP:
        return read_count(t, 0, &stage->warmup);
    case WORDS:
        break;
    }
    return 0;
}

/* A word and its value. `seen` has a bit for each word of the stage so far. */
static qn_status read_pair(qn__tokens *t, uint32_t *seen, qn__stage *stage) {
    word w = EPOCHS;
    char what[96];
    while (w < WORDS && !is_word(t, w))
        w = (word)(w + 1);
    if (w == WORDS)
        return refuse_word(t);
    snprintf(what, sizeof what, "\"%s\" stands twice in a stage", words[w].name);
    if (*seen >> w & 1)
        return qn__tokens_fail(t, t->at, what, "write each word once");
    *seen |= 1u << w;
    qn__tokens_next(t);
    if (qn__tokens_ended(t) || !read_value(t, w, stage))
        return refuse_value(t, w);
    qn__tokens_next(t);
    return QN_OK;
}

/* What the schedule does not take is 0, as in a recipe. */
static qn_status read_stage(qn__tokens *t, qn__stage *stage) {
    const size_t at = t->at;
    uint32_t seen = 0;
    qn_status status = QN_OK;
    do
        status = read_pair(t, &seen, stage);
    while (status == QN_OK && !qn__tokens_ended(t));
    const int steps = qn__table_takes(&qn__schedules, (int)stage->schedule, "lr_step");
    const int factor = qn__table_takes(&qn__schedules, (int)stage->schedule, "lr_gamma");
    if (status == QN_OK && !(seen >> EPOCHS & 1))
        return qn__tokens_fail(t, at, "a stage does not say its epochs", EXAMPLE);
    if (status == QN_OK && ((!steps && seen >> STEP & 1) || (!factor && seen >> GAMMA & 1)))
        return qn__tokens_fail(t, at, "lr-step and lr-gamma belong to the schedule \"step\"",
                               "write \"schedule step\" in the stage, or leave them out");
    if (status == QN_OK && factor && !qn__gamma_fits((int)stage->schedule, stage->lr_gamma))
        return qn__tokens_fail(t, at, "lr-gamma does not fit the schedule of the stage",
                               QN__GAMMA_REMEDY);
    const int least = qn__table_takes(&qn__schedules, (int)stage->schedule, "lr_min");
    if (status == QN_OK && !least && seen >> LEAST & 1)
        return qn__tokens_fail(t, at, "lr-min belongs to the schedule \"cosine\"",
                               "write \"schedule cosine\" in the stage, or leave it out");
    if (status == QN_OK && least && stage->lr_min > stage->learning_rate)
        return qn__tokens_fail(t, at, "lr-min is greater than the lr of the stage", LEAST_REMEDY);
    if (!least)
        stage->lr_min = 0;
    if (!steps)
        stage->lr_step = 0;
    if (!factor)
        stage->lr_gamma = 0;
    return status;
}

qn_status qn__stages_parse(const char *text, const qn__stage *usual, qn__stages *out,
                           qn_error *err) {
    qn__tokens t = {text, 0, 0, err, "stages", NULL};
    out->count = 0;
    qn__tokens_next(&t);
    do {
        if (out->count == QN__MOST_STAGES)
            return qn__tokens_fail(&t, t.at, "there are more than 64 stages",
                                   "use a schedule of the learning rate");
        out->stage[out->count] = *usual;
        const qn_status status = read_stage(&t, &out->stage[out->count++]);
        if (status != QN_OK)
            return status;
        if (t.size > 0)
            qn__tokens_next(&t);
    } while (t.size > 0);
    if (qn__stages_epochs(out) > UINT32_MAX)
        return qn__tokens_fail(&t, 0, "the stages have too many epochs", words[EPOCHS].remedy);
    return QN_OK;
}

/* ------------------------------------------------------------------------------------ writing */

static void add_number(qn__text *text, const char *name, float value) {
    char number[32];
    qn__float_text(value, number);
    qn__text_add(text, " %s %s", name, number);
}

void qn__stages_add_text(const qn__stages *stages, qn__text *text) {
    for (uint32_t i = 0; i < stages->count; ++i) {
        const qn__stage *s = &stages->stage[i];
        qn__text_add(text, "%sepochs %u", i > 0 ? "; " : "", s->epochs);
        add_number(text, "lr", s->learning_rate);
        if (s->schedule != QN__SCHEDULE_CONSTANT)
            qn__text_add(text, " schedule %s", qn__table_name(&qn__schedules, (int)s->schedule));
        if (s->lr_step > 0)
            qn__text_add(text, " lr-step %u", s->lr_step);
        if (s->lr_gamma > 0)
            add_number(text, "lr-gamma", s->lr_gamma);
        if (s->lr_min > 0)
            add_number(text, "lr-min", s->lr_min);
        if (s->warmup > 0)
            qn__text_add(text, " warmup %u", s->warmup);
    }
}

uint64_t qn__stages_epochs(const qn__stages *stages) {
    uint64_t sum = 0;
    for (uint32_t i = 0; i < stages->count; ++i)
        sum += stages->stage[i].epochs;
    return sum;
}

void qn__stages_of(const qn__recipe *r, qn__stages *out) {
    const qn__stage own = qn__stage_of(r);
    if (r->stages && qn__stages_parse(r->stages, &own, out, NULL) == QN_OK)
        return;
    out->count = 1;
    out->stage[0] = own;
}

uint32_t qn__stages_at(const qn__stages *stages, uint64_t epoch, uint64_t *first) {
    uint32_t i = 0;
    *first = 0;
    while (i + 1 < stages->count && epoch >= *first + stages->stage[i].epochs)
        *first += stages->stage[i++].epochs;
    return i;
}

/* ------------------------------------------------------------------------------------- recipes */

static char *canonical(const qn__stages *stages, qn_error *err) {
    qn__text text = {0};
    qn__stages_add_text(stages, &text);
    return qn__text_take(&text, err);
}

/* A single stage is the recipe without stages. */
static void become(qn__recipe *r, const qn__stages *stages) {
    const qn__stage *first = &stages->stage[0];
    const int only = stages->count == 1;
    r->epochs = (uint32_t)qn__stages_epochs(stages);
    r->learning_rate = first->learning_rate;
    r->schedule = only ? first->schedule : QN__SCHEDULE_CONSTANT;
    r->lr_step = only ? first->lr_step : 0;
    r->lr_gamma = only ? first->lr_gamma : 0;
    r->lr_min = only ? first->lr_min : 0;
    r->warmup = only ? first->warmup : 0;
}

qn_status qn__stages_take(const char *text, qn__recipe *r, qn_error *err) {
    qn__stages stages;
    const qn__stage usual = qn__stage_of(r);
    if (!text)
        return QN_OK;
    if (r->optimizer == QN__OPT_LBFGS)
        return qn__recipe_refuse(
            err, "`train.stages`", "leave them out, or take another `train.optimizer`",
            qn__fail(err, QN_USAGE, "the optimizer \"lbfgs\" takes no stages: it has no rates"));
    const qn_status status = qn__stages_parse(text, &usual, &stages, err);
    if (status != QN_OK)
        return status;
    become(r, &stages);
    if (stages.count > 1 && !(r->stages = canonical(&stages, err)))
        return QN_MEMORY;
    return QN_OK;
}

qn_status qn__recipe_check_stages(const qn__recipe *r, qn_error *err) {
    qn__stages stages;
    qn__recipe same = *r;
    if (!r->stages)
        return QN_OK;
    /* A recipe's text says everything that is not the default. */
    const qn__stage none = {.schedule = QN__SCHEDULE_CONSTANT};
    const qn_status status = qn__stages_parse(r->stages, &none, &stages, err);
    if (status != QN_OK)
        return status;
    char *form = canonical(&stages, err);
    if (!form)
        return QN_MEMORY;
    become(&same, &stages);
    int right = strcmp(form, r->stages) == 0 && stages.count > 1;
    for (uint32_t i = 0; i < stages.count; ++i)
        right = right && stages.stage[i].learning_rate > 0;
    right = right && same.epochs == r->epochs && same.learning_rate == r->learning_rate &&
            same.schedule == r->schedule && same.warmup == r->warmup && same.lr_min == r->lr_min;
    qn__free(form);
    return right ? QN_OK
                 : qn__recipe_refuse(
                       err, "`train.stages`", "make the recipe again with quern train",
                       qn__fail(err, QN_USAGE, "\"%s\" is not how a recipe writes it", r->stages));
}
