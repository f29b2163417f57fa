/* What the page has to know of a model, to show the form for its items. */
#include "serve/page/try_page.h"

#include "model/formats/model.h"

/* More names of classes or categories would make a page of megabytes. */
enum { NAMES = 4096 };

static qn__shape image_of(const qn_model *m) {
    const qn__shape none = {0};
    if (m->kind != &qn__network_kind || m->tokens)
        return none;
    const qn__shape shape = qn__recipe_input(qn__model_recipe_of(m));
    return shape.height > 1 && shape.width > 1 && (shape.channels == 1 || shape.channels == 3)
               ? shape
               : none;
}

/* A column of texts alone, or what a tokenizer makes of one. */
static int takes_text(const qn_model *m) {
    if (m->tokens)
        return m->tokenizer && *m->tokenizer;
    return m->table && m->table->features == 1 && m->table->feature[0].text;
}

/* NULL: nothing that a person can write, such as sums of a layer of another model. */
static const char *taken(const qn_model *m, qn__shape image) {
    if (m->next)
        return m->tokenizer && *m->tokenizer ? "next" : NULL;
    if (image.channels)
        return "image";
    return takes_text(m) ? "text" : m->tokens ? NULL : "rows";
}

static void add_names(qn__text *text, char *const *name, uint32_t count) {
    qn__text_add(text, "[");
    for (uint32_t k = 0; k < count && k < NAMES; k++) {
        qn__text_add(text, k ? "," : "");
        qn__text_add_json(text, name[k]);
    }
    qn__text_add(text, "]");
}

static void add_column(qn__text *text, const qn__feature *feature) {
    qn__text_add(text, "{\"name\":");
    qn__text_add_json(text, feature->name ? feature->name : "");
    if (feature->text)
        qn__text_add(text, ",\"text\":true");
    else if (feature->dates)
        qn__text_add(text, ",\"date\":true");
    else if (feature->categories) {
        qn__text_add(text, ",\"categories\":");
        add_names(text, feature->category, feature->categories);
    }
    qn__text_add(text, "}");
}

static void add_columns(qn__text *text, const qn__schema *table) {
    int named = table != NULL;
    for (uint32_t k = 0; named && k < table->features; k++)
        named = table->feature[k].name != NULL;
    qn__text_add(text, ",\"columns\":%s", named ? "[" : "null");
    for (uint32_t k = 0; named && k < table->features; k++) {
        qn__text_add(text, k ? "," : "");
        add_column(text, &table->feature[k]);
    }
    qn__text_add(text, named ? "]" : "");
}

static void add_classes(qn__text *text, const qn_model *m) {
    const int named = m->table && m->table->classes > 0;
    qn__text_add(text, ",\"classes\":");
    if (named)
        add_names(text, m->table->class_name, m->table->classes);
    else
        qn__text_add(text, "null");
}

static void add_about(qn__text *text, const qn_model *m) {
    qn__text about = {0};
    const char *label = qn_model_label_name(m), *title = qn_model_title(m);
    qn__text_add(&about, "%c%s of %llu parameters", *title == 'a' ? 'A' : *title,
                 *title ? title + 1 : "", (unsigned long long)m->parameters);
    if (m->next)
        qn__text_add(&about, " that continues texts");
    else if (label)
        qn__text_add(&about, ", for %s", label);
    qn__text_add(&about, ".");
    qn__text_add(text, ",\"about\":");
    qn__text_add_json(text, about.data);
    text->failed |= about.failed;
    qn__text_release(&about);
}

void qn__try_page_model(qn__text *text, const qn__served *served) {
    const qn_model *m = served->model;
    const qn__shape image = image_of(m);
    qn__text_add(text, "{\"name\":");
    qn__text_add_json(text, served->name);
    qn__text_add(text, ",\"version\":");
    qn__text_add_json(text, served->version);
    qn__text_add(text, ",\"digest\":\"%s\"", m->digest);
    add_about(text, m);
    qn__text_add(text, ",\"takes\":");
    qn__text_add_json(text, taken(m, image));
    if (image.channels)
        qn__text_add(text, ",\"shape\":[%u,%u,%u]", image.channels, image.height, image.width);
    else
        qn__text_add(text, ",\"shape\":null");
    qn__text_add(text, ",\"resizes\":%s,\"features\":%u", m->resize ? "true" : "false",
                 m->features);
    add_columns(text, m->table);
    add_classes(text, m);
    qn__text_add(text, "}");
}
