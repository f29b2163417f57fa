/* The one form of recipes that mean the same, and the contract that they need. */
#include "image/resize.h"
#include "model/recipe/freeze.h"
#include "model/recipe/option_rows.h"
#include "model/recipe/recipe.h"
#include <string.h>

/* The most values of an item before or after a layer: 24.2. */
enum { VALUES_OF_CONTRACT_7 = 1 << 24 };

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
    for (const qn__option *o = qn__options; o->key; ++o)
        if (o->contract == contract && qn__option_set(o, r))
            return 1;
    return 0;
}

static int uses_contract_6(const qn__recipe *r) {
    return qn__network_contract(&r->network) >= 6 || r->scale >= QN__SCALE_CHANNEL ||
           (r->arith != QN__ARITH_F32 && qn__network_has_pixels(&r->network)) || has_key_of(r, 6);
}

/* Whether a layer has more outputs for an item than contract 7 allows. */
static int is_wide(const qn__recipe *r) {
    qn__layer layer[QN__MAX_LAYERS];
    uint64_t parameters;
    if (!r->shape.channels ||
        qn__network_program(&r->network, qn__recipe_input(r), layer, &parameters, NULL) != QN_OK)
        return 0; /* an invalid network is refused later */
    for (uint32_t l = 0; l < r->network.layers; ++l)
        if (layer[l].in > VALUES_OF_CONTRACT_7 || layer[l].out > VALUES_OF_CONTRACT_7)
            return 1;
    return 0;
}

/* As a stage, too: qn__stages_add_text writes its word. */
static int is_exponential(const qn__recipe *r) {
    return r->schedule == QN__SCHEDULE_EXPONENTIAL ||
           (r->stages && strstr(r->stages, "schedule exponential"));
}

/* As a stage; as an option it is a key of contract 9. */
static int has_least_rate(const qn__recipe *r) { return r->stages && strstr(r->stages, "lr-min"); }

/* Whether images were resized by a filter; an invalid text is refused later. */
static int has_filter(const qn__recipe *r) {
    qn__resize resize;
    return qn__resize_parse(r->resize, &resize, NULL) == QN_OK && resize.filter;
}

/* Whether a word of the augmentation is new; an invalid text is refused later. */
static int makes_bytes(const qn__recipe *r) {
    const qn__augment augment = qn__recipe_augment(r);
    return qn__augment_makes_bytes(&augment);
}

static int uses_contract_8(const qn__recipe *r) {
    return qn__network_contract(&r->network) >= 8 || is_wide(r) || has_filter(r) ||
           is_exponential(r) || makes_bytes(r) || r->task > QN__TASK_REGRESS || has_key_of(r, 8);
}

static int uses_contract_9(const qn__recipe *r) {
    return qn__network_contract(&r->network) >= 9 || r->task == QN__TASK_NEXT ||
           r->new_last == QN__NEW_LAST_BY_START || has_least_rate(r) ||
           qn__schema_texts(r->table) > 0 || qn__recipe_freezes_single(r) || has_key_of(r, 9);
}

/* Sets to 0 what the names do not take (docs/exactness.md 11.3), and -0 to 0. */
static void tidy_number(const qn__option *o, qn__recipe *r) {
    const int drop = o->dropped && !qn__option_taken(o, r);
    if (o->form == QN__FORM_FLOAT && (drop || !qn__option_set(o, r)))
        *(float *)qn__option_to(o, r) = 0.0f;
    if (o->form == QN__FORM_COUNT && drop)
        *(uint32_t *)qn__option_to(o, r) = 0;
}

void qn__recipe_tidy(qn__recipe *r) {
    /* sgd and momentum are one rule with and without a coefficient (docs/exactness.md 9.7). */
    if (r->optimizer == QN__OPT_SGD && r->momentum != 0.0f)
        r->optimizer = QN__OPT_MOMENTUM;
    if (r->optimizer == QN__OPT_MOMENTUM && r->momentum == 0.0f)
        r->optimizer = QN__OPT_SGD;
    for (const qn__option *o = qn__options; o->key; ++o)
        tidy_number(o, r);
    if (!qn__recipe_needs_shape(r))
        r->shape = (qn__shape){0};
    r->contract = uses_contract_9(r)   ? 9
                  : uses_contract_8(r) ? 8
                  : has_key_of(r, 7)   ? 7
                  : uses_contract_6(r) ? 6
                  : uses_contract_5(r) ? 5
                  : uses_contract_4(r) ? 4
                  : uses_contract_3(r) ? 3
                  : uses_contract_2(r) ? 2
                                       : 1;
}
