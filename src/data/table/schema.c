#include "data/table/schema.h"
#include "base/memory.h"
#include "data/table/date_parts.h"
#include <stdio.h>
#include <string.h>

qn__schema *qn__schema_create(uint32_t features, qn_error *err) {
    qn__schema *schema = qn__alloc(1, sizeof *schema, err);
    if (!schema)
        return NULL;
    schema->feature = qn__alloc(features, sizeof *schema->feature, err);
    if (!schema->feature) {
        qn__free(schema);
        return NULL;
    }
    schema->features = features;
    return schema;
}

static void free_texts(char **text, uint32_t count) {
    for (uint32_t i = 0; text && i < count; ++i)
        qn__free(text[i]);
    qn__free(text);
}

void qn__feature_release(qn__feature *feature) {
    qn__free(feature->name);
    qn__feature_drop_categories(feature);
}

void qn__feature_drop_categories(qn__feature *feature) {
    free_texts(feature->category, feature->texts ? 0 : feature->categories);
    qn__depot_release(feature->texts);
    feature->texts = NULL;
    feature->category = NULL;
    feature->categories = 0;
}

void qn__schema_drop_classes(qn__schema *schema) {
    free_texts(schema->class_name, schema->classes);
    schema->class_name = NULL;
    schema->classes = 0;
}

void qn__schema_free(qn__schema *schema) {
    if (!schema)
        return;
    for (uint32_t i = 0; i < schema->features; ++i)
        qn__feature_release(&schema->feature[i]);
    free_texts(schema->class_name, schema->classes);
    free_texts(schema->label_value, 2 * schema->classes);
    qn__free(schema->feature);
    qn__free(schema->label);
    qn__free(schema);
}

/* 1 on success; NULL is copied as NULL. */
static int copy_text(char **to, const char *from, qn_error *err) {
    *to = from ? qn__copy_text(from, err) : NULL;
    return !from || *to;
}

static int copy_texts(char ***to, char *const *from, uint32_t count, qn_error *err) {
    *to = count ? qn__alloc(count, sizeof **to, err) : NULL;
    for (uint32_t i = 0; *to && i < count; ++i)
        if (!copy_text(&(*to)[i], from[i], err))
            return 0;
    return count == 0 || *to;
}

/* Texts of a depot are shared. */
static int copy_categories(qn__feature *to, const qn__feature *from, qn_error *err) {
    to->categories = from->categories;
    if (!from->texts)
        return copy_texts(&to->category, from->category, from->categories, err);
    to->category = (char **)qn__alloc(from->categories, sizeof *to->category, err);
    if (!to->category)
        return 0;
    memcpy((void *)to->category, (const void *)from->category,
           from->categories * sizeof *to->category);
    to->texts = qn__depot_share(from->texts);
    return 1;
}

static int copy_feature(qn__feature *to, const qn__feature *from, qn_error *err) {
    to->bytes = from->bytes;
    to->exact = from->exact;
    to->dates = from->dates;
    to->time = from->time;
    to->zone = from->zone;
    to->text = from->text;
    memcpy(to->grams, from->grams, sizeof to->grams);
    to->said = from->said;
    return copy_text(&to->name, from->name, err) && copy_categories(to, from, err);
}

static int copy_labels(qn__schema *to, const qn__schema *from, qn_error *err) {
    to->target = from->target;
    to->classes = from->classes;
    return copy_text(&to->label, from->label, err) &&
           copy_texts(&to->class_name, from->class_name, from->classes, err) &&
           (!from->label_value ||
            copy_texts(&to->label_value, from->label_value, 2 * from->classes, err));
}

qn__schema *qn__schema_join(const qn__schema *labels, const qn__schema *columns,
                            const uint32_t *column, uint32_t features, qn_error *err) {
    qn__schema *joined = qn__schema_create(features, err);
    if (!joined)
        return NULL;
    joined->target = QN__TARGET_INDEX;
    int done = !labels || copy_labels(joined, labels, err);
    for (uint32_t k = 0; done && columns && k < features; ++k)
        done = copy_feature(&joined->feature[k], &columns->feature[column ? column[k] : k], err);
    if (done)
        return joined;
    qn__schema_free(joined);
    return NULL;
}

qn__schema *qn__schema_copy(const qn__schema *schema, qn_error *err) {
    return schema ? qn__schema_join(schema, schema, NULL, schema->features, err) : NULL;
}

/* "f12" for column 12, or "r3c4" for any. */
static int is_generic(const char *name, uint32_t column) {
    char number[16];
    snprintf(number, sizeof number, "f%u", column);
    if (strcmp(name, number) == 0)
        return 1;
    const size_t row = name[0] == 'r' ? strspn(name + 1, "0123456789") : 0;
    if (row == 0 || name[1 + row] != 'c')
        return 0;
    const size_t digits = strspn(name + row + 2, "0123456789");
    return digits > 0 && name[row + 2 + digits] == '\0';
}

int qn__schema_is_trivial(const qn__schema *schema) {
    if (!schema)
        return 1;
    if ((schema->label && strcmp(schema->label, "label") != 0) ||
        schema->target == QN__TARGET_REAL || schema->classes > 0)
        return 0;
    for (uint32_t i = 0; i < schema->features; ++i) {
        const qn__feature *feature = &schema->feature[i];
        if (feature->categories || feature->exact || feature->dates || feature->text ||
            (feature->name && !is_generic(feature->name, i)))
            return 0;
    }
    return 1;
}

uint32_t qn__feature_inputs(const qn__feature *feature) {
    return feature->text         ? qn__grams_inputs(feature->grams, feature->text)
           : feature->dates      ? qn__date_inputs(feature->dates)
           : feature->categories ? feature->categories
                                 : 1;
}

uint32_t qn__schema_texts(const qn__schema *schema) {
    uint32_t texts = 0;
    for (uint32_t k = 0; schema && k < schema->features; ++k)
        texts += schema->feature[k].text > 0;
    return texts;
}

uint64_t qn__schema_text_inputs(const qn__schema *schema) {
    uint64_t inputs = 0;
    for (uint32_t k = 0; schema && k < schema->features; ++k)
        if (schema->feature[k].text)
            inputs += qn__feature_inputs(&schema->feature[k]);
    return inputs;
}

/* As they are written in recipes; in the order of the enum. */
static const char *const targets[] = {"none", "index", "class", "real", "several"};
enum { TARGETS = sizeof targets / sizeof targets[0] };
static const char *const exacts[] = {"none", "whole", "real", "moment"};

/* --------------------------------------------------------------------------------- comparison */

static void name_it(const char *what, const char *name, char text[128]) {
    if (name)
        snprintf(text, 128, "%.40s \"%.50s\"", what, name);
    else
        snprintf(text, 128, "%.40s without a name", what);
}

/* 1, and both with what they name as texts, when two names differ. */
static int names_differ(const char *what, const char *one, const char *other, char a[128],
                        char b[128]) {
    name_it(what, one, a);
    name_it(what, other, b);
    return (one == NULL) != (other == NULL) || (one && strcmp(one, other) != 0);
}

static int counts_differ(const char *what, uint32_t one, uint32_t other, char a[128], char b[128]) {
    snprintf(a, 128, "%u %s", one, what);
    snprintf(b, 128, "%u %s", other, what);
    return one != other;
}

static int lists_differ(const char *what, const char *several, char *const *one, uint32_t ones,
                        char *const *other, uint32_t others, char a[128], char b[128]) {
    char name[64];
    for (uint32_t i = 0; i < ones && i < others; ++i) {
        snprintf(name, sizeof name, "%.40s %u", what, i);
        if (names_differ(name, one[i], other[i], a, b))
            return 1;
    }
    return counts_differ(several, ones, others, a, b);
}

/* The texts of columns that are labels; `one` and `other` have the same labels. */
static int values_differ(const qn__schema *one, const qn__schema *other, char a[128], char b[128]) {
    const int texts = one->label_value != NULL, others = other->label_value != NULL;
    if (!texts && !others)
        return 0;
    if (texts && others)
        return lists_differ("value", "values", one->label_value, 2 * one->classes,
                            other->label_value, 2 * other->classes, a, b);
    snprintf(a, 128, "%s", texts ? "labels of texts" : "labels of numbers");
    snprintf(b, 128, "%s", others ? "labels of texts" : "labels of numbers");
    return 1;
}

static int dates_differ(uint32_t column, const qn__feature *one, const qn__feature *other,
                        char a[128], char b[128]) {
    char x[QN__DATE_PARTS_TEXT], y[QN__DATE_PARTS_TEXT];
    qn__date_parts_text(one->dates, x);
    qn__date_parts_text(other->dates, y);
    snprintf(a, 128, "column %u of %s", column, *x ? x : "no dates");
    snprintf(b, 128, "column %u of %s", column, *y ? y : "no dates");
    return one->dates != other->dates;
}

static int texts_differ(uint32_t column, const qn__feature *one, const qn__feature *other,
                        char a[128], char b[128]) {
    char x[QN__GRAMS_TEXT], y[QN__GRAMS_TEXT];
    qn__grams_text(one->grams, one->text, x);
    qn__grams_text(other->grams, other->text, y);
    snprintf(a, 128, "column %u of %s", column, one->text ? x : "no texts");
    snprintf(b, 128, "column %u of %s", column, other->text ? y : "no texts");
    if (one->text && other->text && strcmp(x, y) == 0)
        return counts_differ("inputs of a text", qn__feature_inputs(one), qn__feature_inputs(other),
                             a, b);
    return strcmp(x, y) != 0;
}

static int features_differ(const qn__schema *one, const qn__schema *other, char a[128],
                           char b[128]) {
    char name[64];
    for (uint32_t i = 0; i < one->features && i < other->features; ++i) {
        const qn__feature *x = &one->feature[i], *y = &other->feature[i];
        snprintf(name, sizeof name, "column %u", i);
        if (names_differ(name, x->name, y->name, a, b))
            return 1;
        if (dates_differ(i, x, y, a, b) || texts_differ(i, x, y, a, b))
            return 1;
        snprintf(name, sizeof name, "column %u, category", i);
        if (lists_differ(name, "categories", x->category, x->categories, y->category, y->categories,
                         a, b))
            return 1;
        snprintf(name, sizeof name, "column %u, kept as", i);
        if (!x->dates && names_differ(name, exacts[x->exact], exacts[y->exact], a, b))
            return 1;
    }
    return counts_differ("columns", one->features, other->features, a, b);
}

int qn__schema_difference(const qn__schema *one, const qn__schema *other, char a[128],
                          char b[128]) {
    int found = (one == NULL) != (other == NULL);
    if (found) {
        snprintf(a, 128, "%s", one ? "names" : "no names");
        snprintf(b, 128, "%s", other ? "names" : "no names");
    } else if (one) {
        found = names_differ("label", one->label, other->label, a, b) ||
                names_differ("labels of the kind", targets[one->target], targets[other->target], a,
                             b) ||
                lists_differ("class", "classes", one->class_name, one->classes, other->class_name,
                             other->classes, a, b) ||
                values_differ(one, other, a, b) || features_differ(one, other, a, b);
    }
    if (!found)
        a[0] = b[0] = '\0';
    return found;
}

/* ------------------------------------------------------------------------------------ as JSON */

static void add_texts(qn__text *text, char *const *list, uint32_t count) {
    qn__text_add(text, "[");
    for (uint32_t i = 0; i < count; ++i) {
        qn__text_add(text, "%s", i ? "," : "");
        qn__text_add_json(text, list[i]);
    }
    qn__text_add(text, "]");
}

static void add_dates(uint32_t dates, qn__text *text) {
    const char *between = "";
    for (int part = 0; part < QN__DATE_PARTS; ++part)
        if (dates >> part & 1) {
            qn__text_add(text, "%s\"%s\"", between, qn__date_part_name((qn__date_part)part));
            between = ",";
        }
}

/* A column of numbers is its name, a wide one and one of categories an object: tables have
 * thousands of numbers. */
static void add_feature(const qn__feature *feature, qn__text *text) {
    if (feature->categories == 0 && feature->exact == QN__EXACT_NONE && feature->dates == 0 &&
        feature->text == 0) {
        qn__text_add_json(text, feature->name);
        return;
    }
    qn__text_add(text, "{\"name\":");
    qn__text_add_json(text, feature->name);
    if (feature->dates) {
        qn__text_add(text, ",\"dates\":[");
        add_dates(feature->dates, text);
        qn__text_add(text, "]}");
        return;
    }
    if (feature->exact != QN__EXACT_NONE) {
        qn__text_add(text, ",\"exact\":\"%s\"}", exacts[feature->exact]);
        return;
    }
    if (feature->text) {
        qn__text_add(text, ",\"text\":");
        qn__grams_add_json(feature->grams, feature->text, text);
    }
    if (feature->categories || !feature->text) {
        qn__text_add(text, ",\"categories\":");
        add_texts(text, feature->category, feature->categories);
    }
    qn__text_add(text, "}");
}

/* [] for a label of numbers, else its two texts. */
static void add_label_values(const qn__schema *schema, qn__text *text) {
    qn__text_add(text, ",\"values\":[");
    for (uint32_t k = 0; k < schema->classes; ++k) {
        char *const *value = schema->label_value + 2 * (size_t)k;
        qn__text_add(text, "%s", k ? "," : "");
        add_texts(text, value, *value ? 2 : 0);
    }
    qn__text_add(text, "]");
}

void qn__schema_add_json(const qn__schema *schema, qn__text *text) {
    if (!schema) {
        qn__text_add(text, "null");
        return;
    }
    qn__text_add(text, "{\"label\":");
    qn__text_add_json(text, schema->label);
    qn__text_add(text, ",\"target\":\"%s\",\"classes\":", targets[schema->target]);
    add_texts(text, schema->class_name, schema->classes);
    if (schema->label_value)
        add_label_values(schema, text);
    qn__text_add(text, ",\"features\":[");
    for (uint32_t i = 0; i < schema->features; ++i) {
        qn__text_add(text, "%s", i ? "," : "");
        add_feature(&schema->feature[i], text);
    }
    qn__text_add(text, "]}");
}

static qn_status malformed(qn_error *err, const char *what) {
    qn__fail(err, QN_FORMAT, "%s", what);
    qn__at(err, "table");
    return qn__remedy(err, QN_FORMAT,
                      "the file was changed, or made by another program: make it again with quern "
                      "train");
}

/* A text, or null. */
static qn_status read_name(const qn__json_node *node, char **out, qn_error *err) {
    const char *text = qn__json_string(node);
    if (!node || (!text && !qn__json_is_null(node)))
        return malformed(err, "a name is neither a text nor null");
    return copy_text(out, text, err) ? QN_OK : QN_MEMORY;
}

static qn_status read_texts(const qn__json_node *node, uint32_t *count, char ***out, int ascending,
                            qn_error *err) {
    const size_t size = qn__json_count(node);
    if (!qn__json_is_array(node) || size > UINT32_MAX)
        return malformed(err, "a list of texts is not an array");
    if (size > 0 && !(*out = qn__alloc(size, sizeof **out, err)))
        return QN_MEMORY;
    *count = (uint32_t)size;
    for (size_t i = 0; i < size; ++i) {
        const char *text = qn__json_string(qn__json_at(node, i));
        if (!text)
            return malformed(err, "a category or a class is not a text");
        if (ascending && i > 0 && strcmp((*out)[i - 1], text) >= 0)
            return malformed(err, "categories are not in ascending order");
        if (!copy_text(&(*out)[i], text, err))
            return QN_MEMORY;
    }
    return QN_OK;
}

static qn_status read_exact(const qn__json_node *node, qn__feature *feature, qn_error *err) {
    const char *name = qn__json_string(node);
    size_t exact = 1;
    while (exact < QN__EXACT_MOMENT && (!name || strcmp(name, exacts[exact]) != 0))
        ++exact;
    if (exact == QN__EXACT_MOMENT)
        return malformed(err, "what a column keeps of its numbers is unknown");
    feature->exact = (qn__exact)exact;
    return QN_OK;
}

/* Names of parts, in their order. */
static qn_status read_dates(const qn__json_node *node, uint32_t *dates, qn_error *err) {
    int part = 0;
    if (!qn__json_is_array(node))
        return malformed(err, "the parts of dates are not an array");
    for (size_t i = 0; i < qn__json_count(node); ++i, ++part) {
        const char *name = qn__json_string(qn__json_at(node, i));
        while (part < QN__DATE_PARTS &&
               (!name || strcmp(name, qn__date_part_name((qn__date_part)part)) != 0))
            ++part;
        if (part >= QN__DATE_PARTS)
            return malformed(err, "a part of dates is unknown or not in its place");
        *dates |= 1u << part;
    }
    return *dates ? QN_OK : malformed(err, "a column of dates has no part");
}

/* The inputs of a column of texts, whose texts a table has, and a recipe has not. */
static qn_status read_text(const qn__json_node *node, qn__feature *feature, qn_error *err) {
    if (!qn__grams_from_json(qn__json_get(node, "text"), feature->grams, &feature->text) ||
        qn__json_count(node) != (qn__json_get(node, "categories") ? 3u : 2u))
        return malformed(err, "the inputs of a column of texts are unknown");
    return qn__json_get(node, "categories")
               ? read_texts(qn__json_get(node, "categories"), &feature->categories,
                            &feature->category, 1, err)
               : QN_OK;
}

static qn_status read_feature(const qn__json_node *node, qn__feature *feature, qn_error *err) {
    if (!qn__json_is_object(node))
        return read_name(node, &feature->name, err);
    if (qn__json_get(node, "text")) {
        const qn_status status = read_name(qn__json_get(node, "name"), &feature->name, err);
        return status == QN_OK ? read_text(node, feature, err) : status;
    }
    if (qn__json_count(node) != 2)
        return malformed(err, "a column has a missing or an unknown key");
    qn_status status = read_name(qn__json_get(node, "name"), &feature->name, err);
    if (status == QN_OK && qn__json_get(node, "exact"))
        return read_exact(qn__json_get(node, "exact"), feature, err);
    if (status == QN_OK && qn__json_get(node, "dates"))
        return read_dates(qn__json_get(node, "dates"), &feature->dates, err);
    if (status == QN_OK)
        status = read_texts(qn__json_get(node, "categories"), &feature->categories,
                            &feature->category, 1, err);
    if (status == QN_OK && feature->categories == 0)
        status = malformed(err, "a column of categories has no category");
    return status;
}

static qn_status read_label_values(const qn__json_node *node, qn__schema *schema, qn_error *err) {
    if (!node)
        return QN_OK;
    if (!qn__json_is_array(node) || schema->target != QN__TARGET_SEVERAL || schema->classes == 0 ||
        qn__json_count(node) != schema->classes)
        return malformed(err, "the values of labels do not fit the labels");
    schema->label_value =
        qn__alloc(2 * (uint64_t)schema->classes, sizeof *schema->label_value, err);
    if (!schema->label_value)
        return QN_MEMORY;
    for (uint32_t k = 0; k < schema->classes; ++k) {
        const qn__json_node *pair = qn__json_at(node, k);
        char **to = schema->label_value + 2 * (size_t)k;
        const char *zero = qn__json_string(qn__json_at(pair, 0));
        const char *one = qn__json_string(qn__json_at(pair, 1));
        const int alone = qn__json_is_null(qn__json_at(pair, 1)); /* of data that a model reads */
        if (!qn__json_is_array(pair) || qn__json_count(pair) > 2 ||
            (qn__json_count(pair) > 0 && (!zero || (!alone && (!one || strcmp(zero, one) >= 0)))))
            return malformed(err, "the values of a label are not two texts in ascending order");
        if (!copy_text(&to[0], zero, err) || !copy_text(&to[1], one, err))
            return QN_MEMORY;
    }
    return QN_OK;
}

static qn_status read_target(const qn__json_node *node, qn__schema *schema, qn_error *err) {
    const char *name = qn__json_string(qn__json_get(node, "target"));
    size_t target = 0;
    while (target < TARGETS && (!name || strcmp(name, targets[target]) != 0))
        ++target;
    if (target == TARGETS)
        return malformed(err, "the kind of the labels is unknown");
    schema->target = (qn__target)target;
    qn_status status =
        read_texts(qn__json_get(node, "classes"), &schema->classes, &schema->class_name, 0, err);
    if (status == QN_OK && schema->target != QN__TARGET_SEVERAL &&
        (schema->classes > 0) != (schema->target == QN__TARGET_CLASS))
        status = malformed(err, "the classes do not fit the kind of the labels");
    return status == QN_OK ? read_label_values(qn__json_get(node, "values"), schema, err) : status;
}

static qn_status read_schema(const qn__json_node *node, qn__schema *schema, qn_error *err) {
    const qn__json_node *features = qn__json_get(node, "features");
    qn_status status = read_name(qn__json_get(node, "label"), &schema->label, err);
    if (status == QN_OK)
        status = read_target(node, schema, err);
    for (uint32_t i = 0; i < schema->features && status == QN_OK; ++i)
        status = read_feature(qn__json_at(features, i), &schema->feature[i], err);
    return status;
}

qn_status qn__schema_from_json(const qn__json_node *node, qn__schema **out, qn_error *err) {
    const qn__json_node *features = qn__json_get(node, "features");
    *out = NULL;
    if (qn__json_is_null(node))
        return QN_OK;
    const size_t keys = qn__json_get(node, "values") ? 5 : 4;
    if (!qn__json_is_object(node) || qn__json_count(node) != keys || !qn__json_is_array(features) ||
        qn__json_count(features) > UINT32_MAX)
        return malformed(err, "the table has a missing or an unknown key");
    qn__schema *schema = qn__schema_create((uint32_t)qn__json_count(features), err);
    if (!schema)
        return QN_MEMORY;
    const qn_status status = read_schema(node, schema, err);
    if (status == QN_OK)
        *out = schema;
    else
        qn__schema_free(schema);
    return status;
}

const char *qn__column_name(const qn__schema *table, uint32_t column, char *text, size_t size) {
    const char *name = table ? table->feature[column].name : NULL;
    if (name)
        snprintf(text, size, "column \"%s\"", name);
    else
        snprintf(text, size, "feature %u", column + 1); /* as quern data info counts them */
    return text;
}
