/* Recipes: their memory, and what follows from them. */
#include "model/recipe/recipe.h"

#include "base/memory.h"
#include "image/augment_text.h"
#include "model/recipe/option_rows.h"
#include "model/recipe/tables.h"
#include <stddef.h>

static int copy_text(const char *from, char **to, qn_error *err) {
    *to = from ? qn__copy_text(from, err) : NULL;
    return !from || *to;
}

static int is_text(const qn__option *o) {
    return o->form == QN__FORM_TEXT || o->form == QN__FORM_MAYBE;
}

qn_status qn__recipe_copy(const qn__recipe *from, qn__recipe *to, qn_error *err) {
    int whole = 1;
    *to = *from;
    for (const qn__option *o = qn__options; o->key; ++o)
        if (is_text(o)) {
            char **text = qn__option_to(o, to);
            *text = NULL;
            whole = whole && copy_text(*(char *const *)qn__option_in(o, from), text, err);
        }
    to->tokenizer = NULL;
    whole = whole && copy_text(from->tokenizer, &to->tokenizer, err);
    to->table = qn__schema_copy(from->table, err);
    if (whole && (to->table || !from->table))
        return QN_OK;
    qn__recipe_release(to);
    return QN_MEMORY;
}

void qn__recipe_release(qn__recipe *recipe) {
    qn__schema_free(recipe->table);
    qn__free(recipe->tokenizer);
    for (const qn__option *o = qn__options; o->key; ++o)
        if (is_text(o))
            qn__free(*(char **)qn__option_to(o, recipe));
    *recipe = (qn__recipe){0};
}

int qn__recipe_optimizer_takes(const qn__recipe *r, const char *member) {
    return qn__table_takes(&qn__optimizers, (int)r->optimizer, member);
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
    return !qn__network_reads_features(&r->network) || r->augment || r->cutmix > 0.0f ||
           r->scale == QN__SCALE_CHANNEL;
}

uint32_t qn__recipe_vocabulary(const qn__recipe *recipe) {
    const qn__layer_text *first = &recipe->network.layer[0];
    return first->kind == QN__LAYER_EMBEDDING ? first->vocabulary : 0;
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
    const int pixels = !qn__network_reads_features(&recipe->network) && recipe->shape.channels;
    return pixels ? recipe->shape : (qn__shape){qn__recipe_inputs(recipe), 1, 1, QN__PICTURE};
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
                                 const qn__offset *offset, const float *idf) {
    return (qn__encoding){.table = recipe->table,
                          .features = recipe->features,
                          .missing = recipe->missing,
                          .fill = fill,
                          .offset = offset,
                          .vocabulary = qn__recipe_vocabulary(recipe),
                          .idf = idf,
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
