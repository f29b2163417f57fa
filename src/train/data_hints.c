#include "train/data_hints.h"

#include "base/memory.h"
#include "data/table/schema.h"
#include <inttypes.h>
#include <stdio.h>

/* Values of a feature that are compared with labels, items that each value has at least on average,
 * and items below which a table proves nothing. */
enum {
    MOST_VALUES = 32,
    ITEMS_OF_A_VALUE = 10,
    FEWEST_ITEMS = 20,
    MOST_CLASSES = 1000,
    MOST_FEATURES = 1 << 16
};
/* A class is small when it has so many times fewer items than its share; classes that are counted.
 */
enum { SMALL_CLASS = 25, SMALL_CLASSES = 20, MOST_TOLD = 3 };

typedef struct pair {
    float value;
    int32_t label;
} pair;

/* A feature that has told the label so far. */
typedef struct suspect {
    uint32_t feature, values;
    pair seen[MOST_VALUES];
} suspect;

/* Whether the feature still tells the label: each value has one. A missing value has none. */
static int agrees(suspect *s, float value, int32_t label) {
    uint32_t i = 0;
    if (value != value)
        return 0;
    while (i < s->values && s->seen[i].value != value)
        i++;
    if (i < s->values)
        return s->seen[i].label == label;
    if (s->values == MOST_VALUES)
        return 0;
    s->seen[s->values++] = (pair){value, label};
    return 1;
}

/* Leaves the features that tell the class in all items, and returns their number. */
static uint32_t compare_classes(const qn_data *data, suspect *suspects) {
    uint32_t left = data->features;
    for (uint64_t i = 0; i < data->items && left > 0; i++) {
        uint32_t kept = 0;
        for (uint32_t k = 0; k < left; k++)
            if (agrees(&suspects[k], (float)qn__data_number(data, i, suspects[k].feature),
                       data->labels[i])) {
                if (kept != k)
                    suspects[kept] = suspects[k];
                kept++;
            }
        left = kept;
    }
    return left;
}

/* The same for real labels: the feature is the label. */
static uint32_t compare_targets(const qn_data *data, suspect *suspects) {
    uint32_t left = data->features;
    for (uint64_t i = 0; i < data->items && left > 0; i++) {
        uint32_t kept = 0;
        for (uint32_t k = 0; k < left; k++)
            if ((float)qn__data_number(data, i, suspects[k].feature) == data->targets[i])
                suspects[kept++].feature = suspects[k].feature;
        left = kept;
    }
    return left;
}

typedef struct teller {
    void (*tell)(void *user, const char *text);
    void *user;
} teller;

static void tell_column(const qn_data *data, uint32_t feature, const char *what, const teller *to) {
    char name[160], text[400];
    snprintf(text, sizeof text, "%s %s", qn__column_name(data->schema, feature, name, sizeof name),
             what);
    to->tell(to->user, text);
}

/* A table of one class, or of a value for few items, would have such features by chance. */
static int tells_much(const qn_data *data, const suspect *s) {
    int differ = 0;
    for (uint32_t i = 1; i < s->values; i++)
        differ = differ || s->seen[i].label != s->seen[0].label;
    return differ && data->items / ITEMS_OF_A_VALUE >= s->values;
}

static qn_status tell_labels(const qn_data *data, const teller *to, qn_error *err) {
    static const char what[] =
        "tells the label by itself in all items: if it is known only when the "
        "label is, leave it out with `data.drop`";
    suspect *suspects = qn__alloc(data->features, sizeof *suspects, err);
    if (!suspects)
        return QN_MEMORY;
    for (uint32_t k = 0; k < data->features; k++)
        suspects[k].feature = k, suspects[k].values = 0;
    const uint32_t left =
        data->targets ? compare_targets(data, suspects) : compare_classes(data, suspects);
    for (uint32_t k = 0, told = 0; k < left && told < MOST_TOLD; k++)
        if (data->targets || tells_much(data, &suspects[k])) {
            tell_column(data, suspects[k].feature, what, to);
            told++;
        }
    qn__free(suspects);
    return QN_OK;
}

/* A category with a text for each item: a name. */
static void tell_names(const qn_data *data, const teller *to) {
    for (uint32_t k = 0; data->schema && k < data->features; k++)
        if (data->schema->feature[k].categories == data->items && !data->schema->feature[k].text)
            tell_column(
                data, k,
                "has another text in each item, so it says nothing about other items: leave "
                "it out with `data.drop`",
                to);
}

static void tell_small(const qn_data *data, const uint64_t *count, uint32_t classes,
                       const teller *to) {
    const qn__schema *schema = data->schema;
    uint32_t least = 0;
    char name[96], text[400];
    for (uint32_t c = 1; c < classes; c++)
        least = count[c] > 0 && count[c] < count[least] ? c : least;
    if (count[least] == 0 || count[least] * classes * SMALL_CLASS >= data->items)
        return;
    if (schema && schema->target == QN__TARGET_CLASS && least < schema->classes)
        snprintf(name, sizeof name, "\"%.80s\"", schema->class_name[least]);
    else
        snprintf(name, sizeof name, "%" PRIu32, least);
    snprintf(text, sizeof text,
             "class %s has %" PRIu64 " of %" PRIu64
             " items, so a network may never predict it: with "
             "`train.class_weight` balanced all classes weigh the same",
             name, count[least], data->items);
    to->tell(to->user, text);
}

static void tell_imbalance(const qn_data *data, const teller *to) {
    uint64_t count[SMALL_CLASSES] = {0};
    const uint32_t classes = qn_data_classes(data);
    if (classes < 2 || classes > SMALL_CLASSES)
        return;
    for (uint64_t i = 0; i < data->items; i++)
        count[data->labels[i]]++;
    tell_small(data, count, classes, to);
}

qn_status qn__data_hints(const qn_data *data, int balanced,
                         void (*tell)(void *user, const char *text), void *user, qn_error *err) {
    const teller to = {tell, user};
    if (data->items < FEWEST_ITEMS || (!data->labels && !data->targets))
        return QN_OK;
    tell_names(data, &to);
    if (data->labels && !balanced && !data->weights)
        tell_imbalance(data, &to);
    const int few = data->features <= MOST_FEATURES;
    return few && (data->targets || qn_data_classes(data) <= MOST_CLASSES)
               ? tell_labels(data, &to, err)
               : QN_OK;
}
