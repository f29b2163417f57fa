#include "data/cells/match_labels.h"

#include "data/cells/label_columns.h"
#include "base/memory.h"
#include <string.h>

static int has_names(const qn__schema *schema) {
    return schema && schema->target == QN__TARGET_SEVERAL && schema->classes > 0;
}

/* Whether the labels are called by the numbers of their columns, in a file without names. */
static int are_numbered(const qn__schema *schema) {
    for (uint32_t k = 0; k < schema->features; k++)
        if (schema->feature[k].name)
            return 0;
    for (uint32_t k = 0; k < schema->classes; k++)
        if (strspn(schema->class_name[k], "0123456789") != strlen(schema->class_name[k]))
            return 0;
    return 1;
}

static qn_status refuse_lacking(const qn__fitting *to, const char *name, qn_error *err) {
    qn__fail(err, QN_MISMATCH, "%s has no label \"%.80s\", which the model has", to->what, name);
    return qn__remedy(err, QN_MISMATCH,
                      "name the columns of all labels with `data.label_column`: %.200s",
                      to->schema->label ? to->schema->label : "");
}

static qn_status refuse_text(const qn__fitting *to, const char *name, const char *text,
                             char *const *known, qn_error *err) {
    qn__fail(err, QN_MISMATCH, "the label \"%.60s\" of %s has the text \"%.60s\"", name, to->what,
             text);
    if (!known || !known[0])
        return qn__remedy(err, QN_MISMATCH, "in the training data it has the numbers 0 and 1");
    return qn__remedy(err, QN_MISMATCH,
                      "in the training data \"%.60s\" is 0 and \"%.60s\" is 1; leave a value empty "
                      "that is not known",
                      known[0], known[1]);
}

/* The two texts of a label, or NULL. */
static char *const *values_of(const qn__schema *schema, uint32_t label) {
    char *const *value =
        schema->label_value ? schema->label_value + 2 * (size_t)label : schema->label_value;
    return value && value[0] ? value : NULL;
}

/* Compares the texts of a label with those that the model knows. */
static qn_status match_texts(const qn__fitting *to, const qn_data *data, uint32_t label,
                             qn__label_place *place, qn_error *err) {
    char *const *known = values_of(to->schema, label);
    char *const *has = values_of(data->schema, place->label);
    const char *name = to->schema->class_name[label];
    if (known && !known[1])
        known = NULL; /* a damaged model */
    if (!has || (!known && has[1]))
        return QN_OK; /* numbers 0 and 1, or two texts in their order */
    if (!known && qn__label_text_value(has[0]) < 0)
        return refuse_text(to, name, has[0], NULL, err);
    if (!known) {
        place->ones = qn__label_text_value(has[0]);
        return QN_OK;
    }
    if (!has[1]) { /* one text, which may be either */
        place->ones = strcmp(has[0], known[1]) == 0;
        return place->ones || strcmp(has[0], known[0]) == 0
                   ? QN_OK
                   : refuse_text(to, name, has[0], known, err);
    }
    for (int k = 0; k < 2; k++)
        if (strcmp(has[k], known[k]) != 0)
            return refuse_text(to, name, has[k], known, err);
    return QN_OK;
}

static qn_status match_label(const qn__fitting *to, const qn_data *data, uint32_t label,
                             qn__label_place *place, qn_error *err) {
    const qn__schema *has = data->schema;
    const char *name = to->schema->class_name[label];
    const int by_place = are_numbered(has) || are_numbered(to->schema);
    place->label = label; /* most likely */
    if (!by_place && (label >= has->classes || strcmp(has->class_name[label], name) != 0))
        for (place->label = 0; place->label < has->classes; place->label++)
            if (strcmp(has->class_name[place->label], name) == 0)
                break;
    return place->label < has->classes ? match_texts(to, data, label, place, err)
                                       : refuse_lacking(to, name, err);
}

qn_status qn__match_labels(const qn__fitting *to, const qn_data *data, qn__label_place **place,
                           qn_error *err) {
    *place = NULL;
    if (!data->several || data->several->height || !has_names(to->schema) ||
        !has_names(data->schema))
        return QN_OK;
    const uint32_t labels = to->schema->classes;
    qn__label_place *found = qn__alloc(labels, sizeof *found, err);
    qn_status status = found ? QN_OK : QN_MEMORY;
    int differ = labels != data->schema->classes;
    for (uint32_t k = 0; k < labels && status == QN_OK; k++) {
        status = match_label(to, data, k, &found[k], err);
        differ |= found[k].label != k || found[k].ones;
    }
    if (status == QN_OK && differ)
        *place = found;
    else
        qn__free(found);
    return status;
}

qn__several *qn__place_labels(const qn_data *data, const qn__label_place *place, uint32_t labels,
                              qn_error *err) {
    qn__several *several = qn__several_create(data->items, labels, 0, 0, err);
    for (uint64_t i = 0; several && i < data->items; i++) {
        const uint8_t *from = qn__several_of(data, i);
        uint8_t *to = several->target + (size_t)i * labels;
        for (uint32_t k = 0; k < labels; k++) {
            const uint8_t target = from[place[k].label];
            to[k] = target != QN__NO_TARGET && place[k].ones ? 1 : target;
        }
    }
    return several;
}
