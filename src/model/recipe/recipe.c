/* Recipes: their memory, the one form of those that mean the same, and what follows from them. */
#include "model/recipe/recipe.h"

#include "base/memory.h"
#include "image/augment_text.h"
#include "model/recipe/tables.h"
#include <stddef.h>

static int copy_text(const char *from, char **to, qn_error *err) {
    *to = from ? qn__copy_text(from, err) : NULL;
    return !from || *to;
}

const qn__recipe_key qn__recipe_keys[] = {
    {"smoothing", offsetof(qn__recipe, smoothing), QN__KEY_FLOAT, 6},
    {"clip", offsetof(qn__recipe, clip), QN__KEY_FLOAT, 6},
    {"nesterov", offsetof(qn__recipe, nesterov), QN__KEY_FLAG, 6},
    {"augment", offsetof(qn__recipe, augment), QN__KEY_TEXT, 6},
    {"resize", offsetof(qn__recipe, resize), QN__KEY_TEXT, 6},
    {"l1", offsetof(qn__recipe, l1), QN__KEY_FLOAT, 6},
    {"tolerance", offsetof(qn__recipe, tolerance), QN__KEY_FLOAT, 6},
    {"no_intercept", offsetof(qn__recipe, no_intercept), QN__KEY_FLAG, 6},
    {"stages", offsetof(qn__recipe, stages), QN__KEY_TEXT, 6},
    {"rules", offsetof(qn__recipe, rules), QN__KEY_TEXT, 7},
    {"date_format", offsetof(qn__recipe, date_format), QN__KEY_TEXT, 7},
    {NULL, 0, QN__KEY_FLAG, 0},
};

const void *qn__recipe_member(const qn__recipe *r, const qn__recipe_key *key) {
    return (const char *)r + key->offset;
}

static char **text_of(qn__recipe *r, const qn__recipe_key *key) {
    return (char **)((char *)r + key->offset);
}

int qn__recipe_has(const qn__recipe *r, const qn__recipe_key *key) {
    switch (key->form) {
    case QN__KEY_FLAG:
        return *(const uint32_t *)qn__recipe_member(r, key) != 0;
    case QN__KEY_FLOAT:
        return *(const float *)qn__recipe_member(r, key) != 0.0f;
    case QN__KEY_TEXT:
        return *(char *const *)qn__recipe_member(r, key) != NULL;
    }
    return 0;
}

static int copy_key_texts(const qn__recipe *from, qn__recipe *to, qn_error *err) {
    int whole = 1;
    for (const qn__recipe_key *key = qn__recipe_keys; key->name; ++key)
        if (key->form == QN__KEY_TEXT) {
            *text_of(to, key) = NULL;
            whole = whole &&
                    copy_text(*(char *const *)qn__recipe_member(from, key), text_of(to, key), err);
        }
    return whole;
}

qn_status qn__recipe_copy(const qn__recipe *from, qn__recipe *to, qn_error *err) {
    *to = *from;
    to->weight = to->class_weight = NULL;
    const int whole = copy_key_texts(from, to, err);
    to->table = qn__schema_copy(from->table, err);
    if (whole && (to->table || !from->table) && copy_text(from->weight, &to->weight, err) &&
        copy_text(from->class_weight, &to->class_weight, err))
        return QN_OK;
    qn__recipe_release(to);
    return QN_MEMORY;
}

void qn__recipe_release(qn__recipe *recipe) {
    qn__schema_free(recipe->table);
    qn__free(recipe->weight);
    qn__free(recipe->class_weight);
    for (const qn__recipe_key *key = qn__recipe_keys; key->name; ++key)
        if (key->form == QN__KEY_TEXT)
            qn__free(*text_of(recipe, key));
    *recipe = (qn__recipe){0};
}

/* What a program that knows contract 1 only would have to ignore. */
static int uses_contract_2(const qn__recipe *r) {
    return r->task != QN__TASK_CLASSIFY || r->delta != 0.0f || r->missing != QN__MISSING_ERROR ||
           !qn__schema_is_trivial(r->table) || r->keep != QN__KEEP_LAST || r->patience > 0 ||
           r->init_from[0] != '\0' || r->loss > QN__LOSS_MSE; /* those were the first losses */
}

static int uses_contract_3(const qn__recipe *r) {
    return r->weight || r->class_weight || r->init_scale != QN__INIT_SCALE_FIT;
}

static int uses_contract_4(const qn__recipe *r) { return r->valid_data[0] != '\0'; }

static int uses_contract_5(const qn__recipe *r) { return qn__network_contract(&r->network) >= 5; }

static int has_key_of(const qn__recipe *r, uint32_t contract) {
    for (const qn__recipe_key *key = qn__recipe_keys; key->name; ++key)
        if (key->contract == contract && qn__recipe_has(r, key))
            return 1;
    return 0;
}

static int uses_contract_6(const qn__recipe *r) {
    return qn__network_contract(&r->network) >= 6 || r->scale >= QN__SCALE_CHANNEL ||
           (r->arith != QN__ARITH_F32 && qn__network_has_pixels(&r->network)) || has_key_of(r, 6);
}

/* -0 equals 0, so this is where the two become one. */
static void plain_zero(float *number) {
    if (*number == 0.0f)
        *number = 0.0f;
}

int qn__recipe_optimizer_takes(const qn__recipe *r, const char *member) {
    return qn__table_takes(&qn__optimizers, (int)r->optimizer, member);
}

int qn__recipe_schedule_takes(const qn__recipe *r, const char *member) {
    return qn__table_takes(&qn__schedules, (int)r->schedule, member);
}

int qn__recipe_loss_takes(const qn__recipe *r, const char *member) {
    return qn__table_takes(&qn__losses, (int)r->loss, member);
}

/* Sets to 0 what the names do not take (docs/exactness.md 11.3). */
static void drop_unused(qn__recipe *r) {
    const struct {
        float *number;
        int taken;
    } numbers[] = {{&r->momentum, qn__recipe_optimizer_takes(r, "momentum")},
                   {&r->beta1, qn__recipe_optimizer_takes(r, "beta1")},
                   {&r->beta2, qn__recipe_optimizer_takes(r, "beta2")},
                   {&r->epsilon, qn__recipe_optimizer_takes(r, "epsilon")},
                   {&r->lr_gamma, qn__recipe_schedule_takes(r, "lr_gamma")},
                   {&r->delta, qn__recipe_loss_takes(r, "delta")},
                   {&r->l1, qn__recipe_optimizer_takes(r, "l1")},
                   {&r->tolerance, qn__recipe_optimizer_takes(r, "tolerance")}};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; ++i)
        if (!numbers[i].taken)
            *numbers[i].number = 0.0f;
    if (!qn__recipe_schedule_takes(r, "lr_step"))
        r->lr_step = 0;
    if (r->optimizer == QN__OPT_LBFGS) {
        r->batch = 0;
        r->learning_rate = 0;
    }
}

void qn__recipe_tidy(qn__recipe *r) {
    /* sgd and momentum are one rule with and without a coefficient (docs/exactness.md 9.7). */
    if (r->optimizer == QN__OPT_SGD && r->momentum != 0.0f)
        r->optimizer = QN__OPT_MOMENTUM;
    if (r->optimizer == QN__OPT_MOMENTUM && r->momentum == 0.0f)
        r->optimizer = QN__OPT_SGD;
    drop_unused(r);
    float *const numbers[] = {&r->valid,    &r->momentum,     &r->beta1,         &r->beta2,
                              &r->epsilon,  &r->weight_decay, &r->learning_rate, &r->lr_gamma,
                              &r->delta,    &r->smoothing,    &r->clip,          &r->l1,
                              &r->tolerance};
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; ++i)
        plain_zero(numbers[i]);
    if (!qn__recipe_needs_shape(r))
        r->shape = (qn__shape){0};
    r->contract = has_key_of(r, 7)     ? 7
                  : uses_contract_6(r) ? 6
                  : uses_contract_5(r) ? 5
                  : uses_contract_4(r) ? 4
                  : uses_contract_3(r) ? 3
                  : uses_contract_2(r) ? 2
                                       : 1;
}

int qn__recipe_judges(const qn__recipe *recipe) {
    return recipe->keep == QN__KEEP_BEST || recipe->patience > 0;
}

qn__class_names qn__recipe_class_names(const qn__recipe *recipe) {
    const int named = recipe->table && recipe->table->target == QN__TARGET_CLASS;
    return (qn__class_names){.table = recipe->table,
                             .classes =
                                 named ? recipe->table->classes : qn__recipe_classes(recipe)};
}

uint32_t qn__recipe_classes(const qn__recipe *recipe) {
    return recipe->loss == QN__LOSS_BINARY ? 2
                                           : recipe->network.layer[recipe->network.layers - 1].out;
}

int qn__recipe_needs_shape(const qn__recipe *r) {
    return r->network.layer[0].kind != QN__LAYER_DENSE || r->augment ||
           r->scale == QN__SCALE_CHANNEL;
}

qn__augment qn__recipe_augment(const qn__recipe *recipe) {
    qn__augment augment;
    if (qn__augment_parse(recipe->augment, &augment, NULL) != QN_OK)
        augment.words = 0;
    augment.shape = recipe->shape;
    return augment;
}

/* A dense layer takes features, whatever shape they have. */
qn__shape qn__recipe_input(const qn__recipe *recipe) {
    const int pixels = recipe->network.layer[0].kind != QN__LAYER_DENSE && recipe->shape.channels;
    return pixels ? recipe->shape : (qn__shape){qn__recipe_inputs(recipe), 1, 1};
}

uint32_t qn__recipe_inputs(const qn__recipe *recipe) {
    return (uint32_t)qn__inputs(recipe->table, recipe->features);
}

int qn__recipe_fills(const qn__recipe *recipe) {
    return recipe->missing == QN__MISSING_MEAN || recipe->missing == QN__MISSING_MEDIAN;
}

uint32_t qn__recipe_offsets(const qn__recipe *recipe) {
    return recipe->scale == QN__SCALE_NONE ? 0 : qn__wide_features(recipe->table);
}

qn__encoding qn__recipe_encoding(const qn__recipe *recipe, const float *fill,
                                 const qn__offset *offset) {
    return (qn__encoding){.table = recipe->table,
                          .features = recipe->features,
                          .missing = recipe->missing,
                          .fill = fill,
                          .offset = offset,
                          .by_value = 1};
}

int qn__recipe_gives_probabilities(const qn__recipe *r) {
    const qn__activation act = r->network.layer[r->network.layers - 1].activation;
    return act == QN__ACT_SOFTMAX || r->loss == QN__LOSS_BINARY;
}

int qn__recipe_needs_bytes(const qn__recipe *recipe) {
    return recipe->scale == QN__SCALE_UNIT || recipe->scale == QN__SCALE_FRACTION;
}

qn_status qn__recipe_refuse(qn_error *err, const char *option, const char *remedy,
                            qn_status status) {
    qn__at(err, "%s", option);
    return qn__remedy(err, status, "%s", remedy);
}
