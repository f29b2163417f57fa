/* The text of a recipe (docs/exactness.md 11.1). */
#include "base/memory.h"
#include "model/recipe/recipe.h"
#include "model/recipe/tables.h"
#include <string.h>

static void add_name(qn__text *text, const char *key, const qn__table *table, int value) {
    qn__text_add(text, ",\"%s\":\"%s\"", key, qn__table_name(table, value));
}

static void add_float(qn__text *text, const char *key, float value) {
    char number[32];
    qn__float_text(value, number);
    qn__text_add(text, ",\"%s\":%s", key, number);
}

static void add_count(qn__text *text, const char *key, uint64_t value) {
    qn__text_add(text, ",\"%s\":%llu", key, (unsigned long long)value);
}

static void add_contract_2(const qn__recipe *r, qn__text *text) {
    add_name(text, "task", &qn__tasks, (int)r->task);
    add_float(text, "delta", r->delta);
    add_name(text, "missing", &qn__missing_rules, (int)r->missing);
    qn__text_add(text, ",\"table\":");
    qn__schema_add_json(qn__schema_is_trivial(r->table) ? NULL : r->table, text);
    add_name(text, "keep", &qn__keeps, (int)r->keep);
    add_count(text, "patience", r->patience);
    qn__text_add(text, ",\"init_from\":\"%s\"", r->init_from);
}

static void add_contract_3(const qn__recipe *r, qn__text *text) {
    qn__text_add(text, ",\"weight\":");
    if (r->weight)
        qn__text_add_json(text, r->weight);
    else
        qn__text_add(text, "null");
    qn__text_add(text, ",\"class_weight\":");
    qn__text_add_json(text, r->class_weight ? r->class_weight : "");
    add_name(text, "init_scale", &qn__init_scales, (int)r->init_scale);
}

static void add_contract_4(const qn__recipe *r, qn__text *text) {
    qn__text_add(text, ",\"valid_data\":\"%s\"", r->valid_data);
}

static void add_contract_5(const qn__recipe *r, qn__text *text) {
    const qn__shape *s = &r->shape;
    if (s->channels)
        qn__text_add(text, ",\"shape\":\"%ux%ux%u\"", s->channels, s->height, s->width);
    else
        qn__text_add(text, ",\"shape\":\"\"");
}

static void add_contract_6(const qn__recipe *r, qn__text *text) {
    for (const qn__recipe_key *key = qn__recipe_keys; key->name; ++key) {
        if (!qn__recipe_has(r, key))
            continue;
        if (key->form == QN__KEY_FLAG)
            add_count(text, key->name, 1);
        if (key->form == QN__KEY_FLOAT)
            add_float(text, key->name, *(const float *)qn__recipe_member(r, key));
        if (key->form == QN__KEY_TEXT) {
            qn__text_add(text, ",\"%s\":", key->name);
            qn__text_add_json(text, *(char *const *)qn__recipe_member(r, key));
        }
    }
}

/* The keys in the order of 11.1, which is the order of the struct's members. */
static void add_members(const qn__recipe *r, qn__text *text) {
    qn__text_add(text, "{\"contract\":%u", r->contract);
    add_name(text, "arith", &qn__arithmetics, (int)r->arith);
    qn__text_add(text, ",\"data\":\"%s\"", r->data);
    add_count(text, "items", r->items);
    add_count(text, "features", r->features);
    add_float(text, "valid", r->valid);
    add_name(text, "scale", &qn__scalings, (int)r->scale);
    qn__text_add(text, ",\"model\":\"");
    qn__network_text(&r->network, text);
    qn__text_add(text, "\"");
    add_name(text, "init", &qn__initialisations, (int)r->init);
    add_name(text, "loss", &qn__losses, (int)r->loss);
    add_name(text, "optimizer", &qn__optimizers, (int)r->optimizer);
    add_float(text, "momentum", r->momentum);
    add_float(text, "beta1", r->beta1);
    add_float(text, "beta2", r->beta2);
    add_float(text, "epsilon", r->epsilon);
    add_float(text, "weight_decay", r->weight_decay);
    add_float(text, "lr", r->learning_rate);
    add_name(text, "schedule", &qn__schedules, (int)r->schedule);
    add_count(text, "lr_step", r->lr_step);
    add_float(text, "lr_gamma", r->lr_gamma);
    add_count(text, "warmup", r->warmup);
    add_count(text, "batch", r->batch);
    add_count(text, "grain", r->grain);
    add_count(text, "epochs", r->epochs);
    add_count(text, "seed", r->seed);
    add_count(text, "unit", r->gradient_scale);
    if (r->contract >= 2)
        add_contract_2(r, text);
    if (r->contract >= 3)
        add_contract_3(r, text);
    if (r->contract >= 4)
        add_contract_4(r, text);
    if (r->contract >= 5)
        add_contract_5(r, text);
    if (r->contract >= 6)
        add_contract_6(r, text);
    qn__text_add(text, "}");
}

qn_status qn__recipe_json(const qn__recipe *recipe, char **out, qn_error *err) {
    qn__text text = {0};
    *out = NULL;
    add_members(recipe, &text);
    qn_status status = QN_OK;
    if (text.failed)
        status = qn__fail_memory(err, text.size + 1, 1);
    else if (text.size > QN__RECIPE_LONGEST)
        status =
            qn__recipe_refuse(err, "`data.path`", "give the columns and the classes shorter names",
                              qn__fail(err, QN_USAGE,
                                       "the names in the data take %zu bytes; at most %zu "
                                       "can be kept in a model",
                                       text.size, QN__RECIPE_LONGEST));
    else
        status = (*out = qn__copy_text(text.data, err)) != NULL ? QN_OK : QN_MEMORY;
    qn__text_release(&text);
    return status;
}
