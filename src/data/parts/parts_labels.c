/* The labels of the whole: docs/exactness.md 2.1.5 for the labels of all parts together. */
#include "base/memory.h"
#include "data/cells/labels.h"
#include "data/cells/text_set.h"
#include "data/parts/parts_heads.h"
#include "data/table/picture.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* All labels that are class numbers or names. */
typedef struct labels {
    qn__text_set set;
    uint64_t numbers, texts; /* items with a number, and with another text */
    uint64_t items;
    int whole; /* 1: all numbers are */
    double least, greatest;
} labels;

static int is_class(const qn_data *data) { return data && data->labels; }

static qn_status add_part(const qn__part_head *part, labels *l, qn_error *err) {
    for (uint64_t i = 0; i < part->labels; i++) {
        const qn__cell cell = qn__cell_of(part->label[i].text);
        double value;
        if (qn__text_set_add(&l->set, &cell, err) != QN_OK)
            return QN_MEMORY;
        if (!qn__class_value(&cell, &value)) {
            l->texts += part->label[i].items;
            continue;
        }
        l->whole &= value == floor(value);
        l->least = l->numbers == 0 || value < l->least ? value : l->least;
        l->greatest = l->numbers == 0 || value > l->greatest ? value : l->greatest;
        l->numbers += part->label[i].items;
    }
    return QN_OK;
}

static qn_status collect(const qn_parts *parts, const qn__part_heads *heads, labels *l,
                         qn_error *err) {
    l->whole = 1;
    for (uint32_t r = heads->lead; r < parts->ranks; r++)
        if (is_class(heads->part[r].data) && add_part(&heads->part[r], l, err) != QN_OK)
            return QN_MEMORY;
    l->items = l->numbers + l->texts;
    return qn__text_set_sort(&l->set, 1, err);
}

/* ------------------------------------------------------------------ what the whole has */

static int is_said(const qn_data_options *o, const char *task) {
    return o->task && strcmp(o->task, task) == 0;
}

/* Parts with real labels are not in `l`. */
static qn_status refuse_texts(const qn_parts *parts, const labels *l, qn_error *err) {
    qn__fail(err, QN_INPUT, "%llu labels are texts, and %llu are numbers",
             (unsigned long long)l->texts, (unsigned long long)(qn__parts_items(parts) - l->texts));
    return qn__remedy(err, QN_INPUT,
                      "correct the texts, or set `data.task` to classify where they are classes");
}

static qn_status check_count(const labels *l, qn_error *err) {
    if (l->set.count <= QN__TEXTS_MAX)
        return QN_OK;
    qn__fail(err, QN_INPUT, "the label has %u different values, and at most %d classes are read",
             l->set.count, QN__TEXTS_MAX);
    return qn__remedy(err, QN_INPUT,
                      "name the column of the classes with `data.label_column`; where the label is "
                      "a quantity, set `data.task` to regress");
}

/* The text of a number is not kept, as that of the folder 01 of images. */
static qn_status check_folders(const qn_parts *parts, const qn__part_heads *heads, const labels *l,
                               qn_error *err) {
    for (uint32_t r = heads->lead; l->texts > 0 && r < parts->ranks; r++) {
        const qn_data *data = heads->part[r].data;
        if (!is_class(data) || !qn__of_image_files(data) ||
            data->schema->target != QN__TARGET_INDEX)
            continue;
        qn__fail(err, QN_UNSUPPORTED,
                 "the folders of classes have numbers in one part, and other names in another");
        qn__part_heads_at(parts, r, err);
        return qn__remedy(err, QN_UNSUPPORTED, "give all folders numbers, or none");
    }
    return QN_OK;
}

/* Whether parts have to be read again, since labels of others are not whole. */
static qn_status find_again(const qn_parts *parts, const qn__part_heads *heads, const labels *l,
                            qn__parts_again *again, qn_error *err) {
    int real = 0, classes = 0;
    for (uint32_t r = heads->lead; r < parts->ranks; r++) {
        const qn_data *data = heads->part[r].data;
        real |= data && data->targets;
        classes |= is_class(data);
    }
    again->any = real && classes;
    again->real = again->any && parts->own && parts->own->labels && parts->own->items > 0;
    return again->any && l->texts > 0 ? refuse_texts(parts, l, err) : QN_OK;
}

static int are_numbers(const labels *l, const qn_data_options *o) {
    return l->texts == 0 && l->whole && l->numbers > 0 &&
           qn__labels_are_numbered((int64_t)l->least, (int64_t)l->greatest, l->set.count,
                                   o->classes);
}

/* Whether a part has class numbers, and whether it has texts that would be class numbers if they
 * were numbers. */
static qn_status look(const qn_parts *parts, const qn__part_heads *heads, const qn_data_options *o,
                      int *index, int *texts, qn_error *err) {
    qn_status status = QN_OK;
    *index = *texts = 0;
    for (uint32_t r = heads->lead; r < parts->ranks && status == QN_OK; r++) {
        const qn_data *data = heads->part[r].data;
        labels own = {.whole = 1};
        if (!is_class(data))
            continue;
        *index |= data->schema->target == QN__TARGET_INDEX;
        status = add_part(&heads->part[r], &own, err);
        *texts |= data->schema->target == QN__TARGET_CLASS && are_numbers(&own, o);
        qn__text_set_release(&own.set);
    }
    return status;
}

/* Whether labels of the whole are class numbers. A format with types may have texts that look like
 * numbers. */
static qn_status find_numbered(const qn_parts *parts, const qn__part_heads *heads, const labels *l,
                               const qn_data_options *o, int *numbered, qn_error *err) {
    const qn__part_head *lead = &heads->part[heads->lead];
    int index, texts;
    *numbered = lead->asks ? are_numbers(l, o) : l->texts == 0 && l->whole;
    if (!lead->typed || !*numbered)
        return QN_OK;
    if (look(parts, heads, o, &index, &texts, err) != QN_OK)
        return QN_MEMORY;
    *numbered = index;
    if (index || texts)
        return QN_OK;
    qn__fail(err, QN_UNSUPPORTED,
             "each part has few of the classes, so that it is not known whether they are numbers");
    return qn__remedy(err, QN_UNSUPPORTED, "give parts with more classes each");
}

/* ------------------------------------------------------------------ labels of this rank */

/* The new label of each old one. */
static void number(const qn_data *own, const labels *l, int numbered, int32_t *to) {
    for (uint32_t k = 0; k < own->classes; k++) {
        char digits[16];
        snprintf(digits, sizeof digits, "%u", (unsigned)k);
        const int named = k < own->schema->classes;
        const char *text = named ? own->schema->class_name[k] : digits;
        const qn__cell cell = qn__cell_of(text);
        const uint32_t at = qn__text_set_find(&l->set, &cell);
        to[k] = numbered ? (int32_t)strtol(text, NULL, 10) : at == QN__NO_TEXT ? 0 : (int32_t)at;
    }
}

static qn_status apply(qn_data *own, const labels *l, int numbered, qn_error *err) {
    int32_t *to = qn__alloc(own->classes, sizeof *to, err);
    if (!to)
        return QN_MEMORY;
    number(own, l, numbered, to);
    for (uint64_t i = 0; i < own->items; i++)
        own->labels[i] = to[own->labels[i]];
    qn__free(to);
    qn__schema_drop_classes(own->schema);
    own->schema->target = numbered ? QN__TARGET_INDEX : QN__TARGET_CLASS;
    own->classes = numbered ? (uint32_t)l->greatest + 1 : l->set.count;
    return QN_OK;
}

static qn_status give_names(qn_data *own, labels *l, qn_error *err) {
    qn__schema *schema = own->schema;
    schema->class_name = (char **)qn__alloc(l->set.count, sizeof *schema->class_name, err);
    if (!schema->class_name)
        return QN_MEMORY;
    schema->classes = l->set.count;
    for (uint32_t k = 0; k < l->set.count; k++)
        if (!(schema->class_name[k] = qn__copy_text(l->set.text[k], err)))
            return QN_MEMORY;
    return QN_OK;
}

/* Items of each class, of all parts. */
static qn_status count_classes(qn_parts *parts, const qn__part_heads *heads, const labels *l,
                               int numbered, qn_error *err) {
    parts->in_class = qn__alloc(parts->own->classes, sizeof *parts->in_class, err);
    if (!parts->in_class)
        return QN_MEMORY;
    for (uint32_t r = heads->lead; r < parts->ranks; r++)
        for (uint64_t i = 0; i < heads->part[r].labels; i++) {
            const qn__part_label *label = &heads->part[r].label[i];
            const qn__cell cell = qn__cell_of(label->text);
            const uint64_t k =
                numbered ? strtoull(label->text, NULL, 10) : qn__text_set_find(&l->set, &cell);
            if (k < parts->own->classes)
                parts->in_class[k] += label->items;
        }
    return QN_OK;
}

static void doubt(qn_data *own, const labels *l, int numbers, const qn_data_options *o, int asks) {
    own->doubt = QN__DOUBT_NONE;
    own->label_values = 0;
    if (numbers && asks)
        qn__labels_doubt_numbers(own, o, l->items, l->set.count, (int64_t)l->greatest);
    else if (!numbers)
        qn__labels_doubt_names(own, o);
    qn__labels_doubt_each(own, l->items);
}

static qn_status settle(qn_parts *parts, const qn__part_heads *heads, const qn_data_options *o,
                        labels *l, qn_error *err) {
    qn_data *own = parts->own;
    int numbered;
    qn_status status = find_numbered(parts, heads, l, o, &numbered, err);
    if (status == QN_OK && !numbered)
        status = check_count(l, err);
    if (status == QN_OK)
        status = apply(own, l, numbered, err);
    if (status == QN_OK && !numbered)
        status = give_names(own, l, err);
    if (status != QN_OK)
        return status;
    doubt(own, l, l->texts == 0 && l->whole, o, heads->part[heads->lead].asks);
    return count_classes(parts, heads, l, numbered, err);
}

qn_status qn__parts_labels(qn_parts *parts, const qn__part_heads *heads,
                           const qn_data_options *options, qn__parts_again *again, qn_error *err) {
    labels l = {.texts = 0};
    qn_data_options own = *options;
    qn_status status = collect(parts, heads, &l, err);
    if (qn__of_image_files(heads->part[heads->lead].data) && !is_said(options, "regress"))
        own.task = "classify"; /* folders are */
    if (status == QN_OK)
        status = find_again(parts, heads, &l, again, err);
    if (status == QN_OK && !again->any)
        status = check_folders(parts, heads, &l, err);
    if (status == QN_OK && !again->any && l.texts > 0 && l.texts <= l.numbers &&
        !is_said(&own, "classify"))
        status = refuse_texts(parts, &l, err);
    if (status == QN_OK && !again->any && l.items > 0)
        status = settle(parts, heads, &own, &l, err);
    qn__text_set_release(&l.set);
    return status;
}
