#include "model/exchange/class_labels.h"

#include "base/memory.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A class as a file has it. Texts belong to the file. */
typedef struct label {
    const char *name, *id; /* id: NULL: it has none */
    uint32_t number;
    int repeated;
} label;

typedef struct label_list {
    uint32_t count;
    label *label;
    qn_error *err;
} label_list;

static qn_status refuse(qn_error *err) {
    return qn__remedy(err, QN_INPUT,
                      "give a list of names, [\"cat\", \"dog\"]; an object of numbers and names, "
                      "{\"0\": \"cat\", \"1\": \"dog\"}; or a text with one name a line");
}

static qn_status start(label_list *list, size_t count) {
    if (count == 0 || count > QN__LABELS_MOST) {
        qn__fail(list->err, QN_INPUT, "it has %zu names of classes, not 1 to %d", count,
                 QN__LABELS_MOST);
        return refuse(list->err);
    }
    list->count = (uint32_t)count;
    list->label = qn__alloc(count, sizeof *list->label, list->err);
    return list->label ? QN_OK : QN_MEMORY;
}

/* Keys and texts as a file has them, by what they are, then by their places. */
static int by_key(const void *one, const void *other) {
    return strcmp(qn__json_key(*(const qn__json_node *const *)one),
                  qn__json_key(*(const qn__json_node *const *)other));
}

static int by_name(const void *one, const void *other) {
    const label *a = *(const label *const *)one, *b = *(const label *const *)other;
    const int order = strcmp(a->name, b->name);
    return order ? order : (a->number > b->number) - (a->number < b->number);
}

/* "tench", or ["n01440764", "tench"]. */
static int take_name(const qn__json_node *node, label *out) {
    const size_t count = qn__json_is_array(node) ? qn__json_count(node) : 0;
    out->name = qn__json_string(count ? qn__json_at(node, count - 1) : node);
    out->id = count > 1 ? qn__json_string(qn__json_at(node, 0)) : NULL;
    return out->name != NULL;
}

static qn_status take_list(label_list *list, const qn__json_node *node) {
    const qn_status status = start(list, qn__json_count(node));
    for (uint32_t i = 0; status == QN_OK && i < list->count; ++i) {
        if (take_name(qn__json_at(node, i), &list->label[i]))
            continue;
        qn__fail(list->err, QN_INPUT, "element %u is not the name of a class", i);
        return refuse(list->err);
    }
    return status;
}

/* The number of a class, as text without leading zeros. */
static int read_key(const char *key, uint64_t *number) {
    char again[24];
    char *end;
    if (*key < '0' || *key > '9' || strlen(key) > 9)
        return 0;
    *number = strtoul(key, &end, 10);
    snprintf(again, sizeof again, "%lu", (unsigned long)*number);
    return strcmp(again, key) == 0;
}

static qn_status take_member(label_list *list, const qn__json_node *member) {
    label own = {.name = NULL};
    uint64_t number = 0;
    const char *key = qn__json_key(member);
    const int of_number = read_key(key, &number) && take_name(member, &own);
    if (!of_number && qn__json_u64(member, &number))
        own.name = key;
    if (!own.name)
        qn__fail(list->err, QN_INPUT, "\"%.80s\" has no name of a class", key);
    else if (number >= list->count)
        qn__fail(list->err, QN_INPUT, "class %llu is named, and there are %u names",
                 (unsigned long long)number, list->count);
    else if (list->label[number].name)
        qn__fail(list->err, QN_INPUT, "class %llu has two names", (unsigned long long)number);
    else {
        list->label[number] = own;
        return QN_OK;
    }
    return refuse(list->err);
}

static qn_status take_object(label_list *list, const qn__json_node *node) {
    qn_status status = start(list, qn__json_count(node));
    for (uint32_t i = 0; status == QN_OK && i < list->count; ++i)
        status = take_member(list, qn__json_at(node, i));
    return status;
}

/* Sorted: looking for each name in turn would let a small file cost minutes. */
static qn_status describe_by_key(label_list *list, const qn__json_node *about) {
    const size_t count = qn__json_count(about);
    const qn__json_node **sorted = count ? qn__alloc(count, sizeof *sorted, list->err) : NULL;
    if (count && !sorted)
        return QN_MEMORY;
    for (size_t i = 0; i < count; ++i)
        sorted[i] = qn__json_at(about, i);
    if (count)
        qsort(sorted, count, sizeof *sorted, by_key);
    for (uint32_t i = 0; i < list->count; ++i) {
        label *own = &list->label[i];
        size_t low = 0, high = count;
        while (low < high) {
            const size_t middle = low + (high - low) / 2;
            const int order = strcmp(qn__json_key(sorted[middle]), own->name);
            low = order < 0 ? middle + 1 : low;
            high = order < 0 ? high : middle;
        }
        const int found = low < count && strcmp(qn__json_key(sorted[low]), own->name) == 0;
        const char *name = found ? qn__json_string(sorted[low]) : NULL;
        own->id = name ? own->name : own->id;
        own->name = name ? name : own->name;
    }
    qn__free(sorted);
    return QN_OK;
}

static qn_status describe(label_list *list, const qn__json_node *about) {
    if (qn__json_is_object(about))
        return describe_by_key(list, about);
    if (!qn__json_is_array(about) || qn__json_count(about) != list->count)
        return QN_OK;
    for (uint32_t i = 0; i < list->count; ++i) {
        const char *name = qn__json_string(qn__json_at(about, i));
        list->label[i].id = name ? list->label[i].name : NULL;
        list->label[i].name = name ? name : list->label[i].name;
    }
    return QN_OK;
}

static qn_status mark_repeated(label_list *list) {
    label **sorted = qn__alloc(list->count, sizeof *sorted, list->err);
    if (!sorted)
        return QN_MEMORY;
    for (uint32_t i = 0; i < list->count; ++i) {
        list->label[i].number = i;
        list->label[i].repeated = 0;
        sorted[i] = &list->label[i];
    }
    qsort(sorted, list->count, sizeof *sorted, by_name);
    for (uint32_t i = 1; i < list->count; ++i)
        if (strcmp(sorted[i - 1]->name, sorted[i]->name) == 0)
            sorted[i - 1]->repeated = sorted[i]->repeated = 1;
    qn__free(sorted);
    return QN_OK;
}

/* An identifier may be that of two classes, too. */
static qn_status refuse_repeated(label_list *list) {
    const qn_status status = mark_repeated(list);
    for (uint32_t i = 0; status == QN_OK && i < list->count; ++i) {
        if (!list->label[i].repeated)
            continue;
        qn__fail(list->err, QN_INPUT, "two classes have the name \"%.80s\"", list->label[i].name);
        return qn__remedy(list->err, QN_INPUT, "give each class a name of its own");
    }
    return status;
}

static char *copy_name(const label *from, qn_error *err) {
    char number[16];
    snprintf(number, sizeof number, "%u", from->number);
    const char *id = from->id && strcmp(from->id, from->name) != 0 ? from->id : number;
    const size_t size = strlen(from->name) + (from->repeated ? strlen(id) + 3 : 0) + 1;
    char *out = qn__alloc(size, 1, err);
    if (out)
        snprintf(out, size, from->repeated ? "%s (%s)" : "%s", from->name, id);
    return out;
}

/* Names that differ and are not empty. */
static qn_status finish(label_list *list, qn__class_labels *out) {
    for (uint32_t i = 0; i < list->count; ++i) {
        if (*list->label[i].name)
            continue;
        qn__fail(list->err, QN_INPUT, "the name of class %u is an empty name", i);
        return refuse(list->err);
    }
    if (mark_repeated(list) != QN_OK)
        return QN_MEMORY;
    out->name = qn__alloc(list->count, sizeof *out->name, list->err);
    for (uint32_t i = 0; out->name && i < list->count; ++i) {
        out->name[i] = copy_name(&list->label[i], list->err);
        if (!out->name[i])
            return QN_MEMORY;
        list->label[i].name = out->name[i];
        out->count = i + 1;
    }
    return out->name ? refuse_repeated(list) : QN_MEMORY;
}

static qn_status end(label_list *list, qn__class_labels *out, qn_status status) {
    *out = (qn__class_labels){.count = 0};
    if (status == QN_OK)
        status = finish(list, out);
    if (status != QN_OK)
        qn__class_labels_release(out);
    qn__free(list->label);
    return status;
}

qn_status qn__class_labels_of_json(const qn__json_node *node, const qn__json_node *about,
                                   qn__class_labels *out, qn_error *err) {
    label_list list = {.err = err};
    qn_status status;
    if (qn__json_is_array(node))
        status = take_list(&list, node);
    else if (qn__json_is_object(node))
        status = take_object(&list, node);
    else {
        qn__fail(err, QN_INPUT, "the JSON text is not a list or an object of names of classes");
        status = refuse(err);
    }
    if (status == QN_OK)
        status = describe(&list, about);
    return end(&list, out, status);
}

/* Cuts a copy of the text into its lines. */
static qn_status take_lines(label_list *list, char *text, size_t lines) {
    const qn_status status = start(list, lines);
    for (uint32_t i = 0; status == QN_OK && i < list->count; ++i) {
        char *stop = text + strcspn(text, "\n");
        list->label[i].name = text;
        text = *stop ? stop + 1 : stop;
        *stop = '\0';
        if (stop > list->label[i].name && stop[-1] == '\r')
            stop[-1] = '\0';
    }
    return status;
}

qn_status qn__class_labels_of_lines(const char *text, size_t size, qn__class_labels *out,
                                    qn_error *err) {
    label_list list = {.err = err};
    *out = (qn__class_labels){.count = 0};
    if (memchr(text, '\0', size)) {
        qn__fail(err, QN_INPUT, "this is not a text with a name of a class in each line");
        return refuse(err);
    }
    size -= size > 0 && text[size - 1] == '\n';
    char *copy = qn__alloc(size + 1, 1, err);
    if (!copy)
        return QN_MEMORY;
    memcpy(copy, text, size);
    size_t lines = 1;
    for (size_t i = 0; i < size; ++i)
        lines += copy[i] == '\n';
    const qn_status status = end(&list, out, take_lines(&list, copy, lines));
    qn__free(copy);
    return status;
}

void qn__class_label_usual(uint32_t number, char text[QN__LABEL_USUAL]) {
    snprintf(text, QN__LABEL_USUAL, "LABEL_%u", number);
}

void qn__class_labels_release(qn__class_labels *labels) {
    for (uint32_t i = 0; i < labels->count; ++i)
        qn__free(labels->name[i]);
    qn__free(labels->name);
    *labels = (qn__class_labels){.count = 0};
}
