#include "data/cells/match.h"

#include "base/memory.h"
#include "base/text/text.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A message names this many of many. */
enum { NAMED = 5 };

/* ------------------------------------------------------------------------------------ an index */

/* A name and its place; lists of these are sorted by name, so that wide tables are matched fast. */
typedef struct entry {
    const char *name;
    uint32_t place;
} entry;

static int by_name(const void *a, const void *b) {
    const entry *x = a, *y = b;
    const int order = strcmp(x->name, y->name);
    return order ? order : (x->place > y->place) - (x->place < y->place);
}

/* The first of `count` sorted entries with this name, or NULL. */
static const entry *find(const entry *sorted, uint32_t count, const char *name) {
    uint32_t low = 0, high = count;
    while (low < high) {
        const uint32_t middle = low + (high - low) / 2;
        if (strcmp(sorted[middle].name, name) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low < count && strcmp(sorted[low].name, name) == 0 ? &sorted[low] : NULL;
}

static int is_double(const entry *sorted, uint32_t count, const entry *found) {
    const size_t next = (size_t)(found - sorted) + 1;
    return next < count && strcmp(sorted[next].name, found->name) == 0;
}

/* No name sorts and is found as an empty one, which no column of a file has. */
static const char *name_at(const qn__schema *schema, uint32_t k) {
    return schema->feature[k].name ? schema->feature[k].name : "";
}

static entry *index_columns(const qn__schema *schema, qn_error *err) {
    entry *list = qn__alloc(schema->features, sizeof *list, err);
    for (uint32_t k = 0; list && k < schema->features; ++k)
        list[k] = (entry){name_at(schema, k), k};
    if (list)
        qsort(list, schema->features, sizeof *list, by_name);
    return list;
}

static entry *index_texts(char *const *text, uint32_t count, qn_error *err) {
    entry *list = qn__alloc(count, sizeof *list, err);
    for (uint32_t i = 0; list && i < count; ++i)
        list[i] = (entry){text[i], i};
    if (list)
        qsort(list, count, sizeof *list, by_name);
    return list;
}

/* ------------------------------------------------------------------------------- lists in texts */

/* A list of names for a message: the first few, and how many there are. */
typedef struct list {
    char text[320];
    uint32_t count;
} list;

static void add(list *l, const char *name) {
    const size_t used = strlen(l->text);
    if (l->count < NAMED)
        snprintf(l->text + used, sizeof l->text - used,
                 *name ? "%s\"%.48s\"" : "%sone without a name", l->count ? ", " : "", name);
    l->count++;
}

static const char *finish(list *l) {
    const size_t used = strlen(l->text);
    if (l->count > NAMED)
        snprintf(l->text + used, sizeof l->text - used, " and %u more", l->count - NAMED);
    return l->text;
}

/* -------------------------------------------------------------------------------------- columns */

static int has_names(const qn__schema *schema) {
    for (uint32_t k = 0; schema && k < schema->features; ++k)
        if (schema->feature[k].name)
            return 1;
    return 0;
}

static int has_name(const qn__schema *schema, const char *name) {
    for (uint32_t k = 0; k < schema->features; ++k)
        if (schema->feature[k].name && strcmp(schema->feature[k].name, name) == 0)
            return 1;
    return 0;
}

/* No name of one stands in another place of the other. */
static int same_columns(const qn__schema *a, const qn__schema *b) {
    if (a->features != b->features)
        return 0;
    for (uint32_t k = 0; k < a->features; ++k) {
        const char *x = a->feature[k].name, *y = b->feature[k].name;
        if ((x && y && strcmp(x, y) != 0) || (x && !y && has_name(b, x)) ||
            (y && !x && has_name(a, y)))
            return 0;
    }
    return 1;
}

/* The number in a name such as "f12"; UINT64_MAX for another name. */
static uint64_t number_in(const char *name) {
    uint64_t number;
    char text[24];
    if (!name || name[0] != 'f' || !qn__parse_u64(name + 1, strlen(name + 1), &number))
        return UINT64_MAX;
    snprintf(text, sizeof text, "f%llu", (unsigned long long)number);
    return strcmp(name, text) == 0 ? number : UINT64_MAX;
}

/* Whether a table has each of the columns "f0", "f1" and so on, and one of them in another place.
 */
static int are_numbered(const qn__schema *has, uint32_t features) {
    uint32_t found = 0;
    int displaced = 0;
    char *seen = qn__alloc(features, 1, NULL);
    for (uint32_t k = 0; seen && k < has->features; ++k) {
        const uint64_t number = number_in(has->feature[k].name);
        if (number >= features)
            continue;
        found += !seen[number];
        seen[number] = 1;
        displaced |= number != k;
    }
    qn__free(seen);
    return found == features && displaced;
}

/* A model keeps no names where its columns are "f0", "f1" and so on, or have none. Where a table
 * has all these names in other places, the model's columns are known by them: *named, for
 * qn__schema_free; else NULL. */
static qn_status number_columns(const qn__fitting *to, const qn__schema *has, qn__schema **named,
                                qn_error *err) {
    char text[16];
    *named = NULL;
    if (!has || to->schema || to->as_trained || !are_numbered(has, to->features))
        return QN_OK;
    qn__schema *made = qn__schema_create(to->features, err);
    for (uint32_t k = 0; made && k < to->features; ++k) {
        snprintf(text, sizeof text, "f%u", (unsigned)k);
        if (!(made->feature[k].name = qn__copy_text(text, err))) {
            qn__schema_free(made);
            made = NULL;
        }
    }
    *named = made;
    return made ? QN_OK : QN_MEMORY;
}

/* The columns of the table that the model does not have; its label is none of them. */
static void list_strange(const qn__fitting *to, const qn__schema *has, const entry *wanted,
                         list *strange) {
    for (uint32_t k = 0; k < has->features; ++k) {
        const char *name = name_at(has, k);
        if (!find(wanted, to->schema->features, name) &&
            !(to->schema->label && strcmp(to->schema->label, name) == 0) &&
            !(to->weight && strcmp(to->weight, name) == 0))
            add(strange, name);
    }
}

static qn_status refuse_missing(const qn__fitting *to, list *missing, list *strange,
                                qn_error *err) {
    const int one = missing->count == 1;
    qn__fail(err, QN_MISMATCH, "%s lacks the column%s %s of the model", to->what, one ? "" : "s",
             finish(missing));
    const int other = strange->count > 0;
    return qn__remedy(
        err, QN_MISMATCH,
        "%s%s%sgive all columns of the training data, in any order, with their names in "
        "the header; `data.label_column` and `data.unlabelled` say which is the label",
        other ? "it has " : "", other ? finish(strange) : "",
        other ? ", which the model does not have; " : "");
}

static void note_strange(const qn__fitting *to, list *strange) {
    char text[512];
    if (strange->count == 0 || !to->note)
        return;
    snprintf(text, sizeof text, "%s has %u column%s that the model does not use: %s", to->what,
             strange->count, strange->count == 1 ? "" : "s", finish(strange));
    to->note(to->user, text);
}

/* Looks up each column of the model among those of the table, which are indexed in `have`. */
static qn_status look_up(const qn__fitting *to, const qn__schema *has, const entry *have,
                         const entry *wanted, uint32_t *column, qn_error *err) {
    list missing = {.count = 0}, strange = {.count = 0};
    for (uint32_t k = 0; k < to->schema->features; ++k) {
        const char *name = name_at(to->schema, k);
        const entry *found = find(have, has->features, name);
        if (!found) {
            add(&missing, name);
        } else if (is_double(have, has->features, found)) {
            qn__fail(err, QN_MISMATCH,
                     *name ? "%s has several columns with the name \"%.100s\""
                           : "%s has several columns without a name, and the model has one%s",
                     to->what, name);
            return qn__remedy(err, QN_MISMATCH, "give each column a name of its own");
        } else {
            column[k] = found->place;
        }
    }
    list_strange(to, has, wanted, &strange);
    if (missing.count > 0)
        return refuse_missing(to, &missing, &strange, err);
    note_strange(to, &strange);
    return QN_OK;
}

static qn_status match_names(const qn__fitting *to, const qn_data *data, uint32_t **column,
                             qn_error *err) {
    entry *have = index_columns(data->schema, err);
    entry *wanted = have ? index_columns(to->schema, err) : NULL;
    uint32_t *found = wanted ? qn__alloc(to->schema->features, sizeof *found, err) : NULL;
    qn_status status = found ? look_up(to, data->schema, have, wanted, found, err) : QN_MEMORY;
    qn__free(wanted);
    qn__free(have);
    if (status == QN_OK)
        *column = found;
    else
        qn__free(found);
    return status;
}

qn_status qn__match_columns(const qn__fitting *to, const qn_data *data, uint32_t **column,
                            qn_error *err) {
    qn__fitting named = *to;
    qn__schema *numbered;
    *column = NULL;
    qn_status status = number_columns(to, data->schema, &numbered, err);
    if (numbered)
        named.schema = numbered;
    if (status == QN_OK && has_names(named.schema) && has_names(data->schema) &&
        !same_columns(named.schema, data->schema))
        status = match_names(&named, data, column, err);
    qn__schema_free(numbered);
    return status;
}

/* -------------------------------------------------------------------------------------- classes */

/* Those of classes of pixels or positions count, too: 25.47. */
static int has_class_names(const qn__schema *schema) {
    return schema && (schema->target == QN__TARGET_CLASS ||
                      (schema->target == QN__TARGET_SEVERAL && schema->classes > 0));
}

/* Whether its labels are classes, of items or of positions. */
static int has_classes(const qn_data *data) {
    return data->labels || (data->several && data->several->height);
}

/* The name of label i of the table, which may be put into `number`. */
static const char *name_of(const qn_data *data, uint32_t i, char number[16]) {
    if (has_class_names(data->schema))
        return i < data->schema->classes ? data->schema->class_name[i] : "";
    snprintf(number, 16, "%u", i);
    return number;
}

/* The model's number of a class by its name; `sorted` is NULL where it has none but numbers. */
static int32_t number_of(const qn__fitting *to, const entry *sorted, const char *name) {
    uint64_t number;
    if (!sorted) /* a name that is a number is written without zeros in front */
        return qn__parse_u64(name, strlen(name), &number) && number < to->outputs &&
                       number <= INT32_MAX
                   ? (int32_t)number
                   : -1;
    const entry *found = find(sorted, to->schema->classes, name);
    return found ? (int32_t)found->place : -1;
}

qn_status qn__match_classes(const qn__fitting *to, const qn_data *data, int32_t **label,
                            qn_error *err) {
    const int named = has_class_names(to->schema);
    int differ = 0;
    *label = NULL;
    if (!has_classes(data) || (!named && !has_class_names(data->schema)))
        return QN_OK;
    entry *sorted = named ? index_texts(to->schema->class_name, to->schema->classes, err) : NULL;
    int32_t *map = !named || sorted ? qn__alloc(data->classes, sizeof *map, err) : NULL;
    for (uint32_t i = 0; map && i < data->classes; ++i) {
        char number[16];
        map[i] = number_of(to, sorted, name_of(data, i, number));
        differ |= map[i] != (int32_t)i;
    }
    qn__free(sorted);
    if (map && differ)
        *label = map;
    else
        qn__free(map);
    return map ? QN_OK : QN_MEMORY;
}

uint64_t qn__unknown_classes(const qn_data *data, const int32_t *label, char *text, size_t size) {
    list names = {.count = 0};
    uint64_t items = 0;
    char *seen = qn__alloc(data->classes, 1, NULL); /* without it the items are counted only */
    for (uint32_t c = 0; data->several && c < data->classes; ++c) {
        char number[16];
        if (label[c] < 0)
            add(&names, name_of(data, c, number));
        items += label[c] < 0;
    }
    for (uint64_t i = 0; data->labels && i < data->items; ++i) {
        const int32_t own = data->labels[i];
        char number[16];
        if (label[own] >= 0)
            continue;
        items++;
        if (seen && !seen[own]) {
            seen[own] = 1;
            add(&names, name_of(data, (uint32_t)own, number));
        }
    }
    qn__free(seen);
    snprintf(text, size, "%s", finish(&names));
    return items;
}
