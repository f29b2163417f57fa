/* The functions of a data set: check, query, close. */
#include "base/argument.h"
#include "base/files/mapped_file.h"
#include "base/memory.h"
#include "base/sized.h"
#include "base/system/float_state.h"
#include "data/table/data.h"
#include "data/table/kept.h"
#include "data/table/wide.h"
#include <math.h>
#include <stdatomic.h>
#include <stdio.h>

static void count_classes(qn_data *data) {
    int32_t greatest = -1;
    if (data->several)
        greatest = (int32_t)qn__several_classes(data->several, data->items) - 1;
    for (uint64_t i = 0; data->labels && i < data->items; i++)
        if (data->labels[i] > greatest)
            greatest = data->labels[i];
    data->classes = (uint32_t)greatest + 1;
}

void qn__data_finish(qn_data *data, qn__pool *pool) {
    count_classes(data);
    if (data->release == qn__mapped_file_close && data->memory)
        qn__mapped_file_written(data->memory); /* a change after the digest is noticed */
    if (pool)
        qn__data_digest(data, pool, data->digest);
    else
        qn__data_digest_now(data, data->digest);
}

qn_status qn__data_finish_later(qn_data *data, qn_error *err) {
    count_classes(data);
    return qn__late_digest_create(data, &data->late, err);
}

qn_status qn__data_add_note(qn_data *data, const char *line, qn_error *err) {
    qn__text text = {0};
    qn__text_add(&text, "%s%s%s", data->note ? data->note : "", data->note ? "\n" : "", line);
    char *both = qn__text_take(&text, err);
    if (!both)
        return QN_MEMORY;
    qn__free(data->note);
    data->note = both;
    return QN_OK;
}

qn_status qn__data_check_arrays(qn_data_type type, uint64_t items, uint32_t features,
                                const void *values, const int32_t *labels, qn_error *err) {
    if (!qn__element_is_type(type))
        return qn__fail(err, QN_USAGE, "%d is not a data type", (int)type);
    if (items == 0 || features == 0 || !values)
        return qn__fail(err, QN_INPUT, "a data set needs at least one item and one feature");
    if (items > QN__ITEMS_MAX || items > SIZE_MAX / sizeof(float) / features)
        return qn__fail(err, QN_INPUT, "%llu items of %u features are more than can be addressed",
                        (unsigned long long)items, (unsigned)features);
    for (uint64_t i = 0; labels && i < items; i++) {
        if (labels[i] < 0) {
            qn__fail(err, QN_INPUT, "the label %d is negative", (int)labels[i]);
            qn__at(err, "item %llu", (unsigned long long)i);
            return qn__remedy(err, QN_INPUT, "number the classes from 0");
        }
    }
    return QN_OK;
}

qn_status qn__data_check_weights(float *weights, uint64_t items, const char *place, qn_error *err) {
    float greatest = 0.0f;
    for (uint64_t i = 0; i < items; i++) {
        if (!isfinite(weights[i]) || weights[i] < 0.0f) {
            qn__fail(err, QN_INPUT, "the weight %g is not a finite number from 0",
                     (double)weights[i]);
            qn__at(err, "%s%sitem %llu", place, *place ? ", " : "", (unsigned long long)i);
            return qn__remedy(err, QN_INPUT, "weights are 0 or more; 0 leaves an item out");
        }
        weights[i] = weights[i] == 0.0f ? 0.0f : weights[i];
        greatest = weights[i] > greatest ? weights[i] : greatest;
    }
    if (greatest > 0.0f)
        return QN_OK;
    qn__fail(err, QN_INPUT, "the weight of every item is 0");
    qn__at(err, "%s", place);
    return qn__remedy(err, QN_INPUT, "give at least one item a weight above 0");
}

/* Values that one thread looks at before a second one has started, and those that a thread takes at
 * once. */
#define WORTH_THREADS ((size_t)1 << 20)
enum { PIECE = 1 << 16 };

typedef struct search {
    const qn__element *element;
    const char *values;
    size_t count;
    atomic_size_t next;
    atomic_int odd;
} search;

static void look(void *context, int thread) {
    search *s = context;
    (void)thread;
    for (size_t i; (i = atomic_fetch_add(&s->next, PIECE)) < s->count && !atomic_load(&s->odd);) {
        const size_t count = s->count - i < PIECE ? s->count - i : PIECE;
        if (s->element->wrong(s->values + i * s->element->size, count, UINT64_MAX, NULL) < count)
            atomic_store(&s->odd, 1);
    }
}

/* 1 when all of many values are known to be right, and none to be missing. */
static int are_all_right(const qn__element *element, const void *values, size_t count) {
    search s = {.element = element, .values = values, .count = count};
    qn__pool *pool;
    if (count < WORTH_THREADS || qn__pool_create(qn__cores(), 0, &pool, NULL) != QN_OK)
        return 0;
    qn__pool_run(pool, look, &s);
    qn__pool_destroy(pool);
    return !atomic_load(&s.odd);
}

qn_status qn__data_check_values(qn_data_type type, uint64_t items, uint32_t features,
                                const void *values, int *missing, qn_error *err) {
    const qn__element *element = qn__element_of(type);
    /* Any number may be that of a token, as long as nobody says which there are. */
    const int any = !element->refused || qn__element_is_token(type);
    const size_t count = any ? 0 : (size_t)items * features;
    int found = 0;
    if (!are_all_right(element, values, count)) {
        const size_t i = element->wrong(values, count, UINT64_MAX, missing ? &found : NULL);
        if (i < count) {
            qn__fail(err, QN_INPUT, "%s", element->refused);
            qn__at(err, "item %zu, feature %zu", i / features, i % features);
            return qn__remedy(err, QN_INPUT, "%s", element->remedy[missing != NULL]);
        }
    }
    if (missing)
        *missing = found;
    return QN_OK;
}

void qn_data_close(qn_data *data) {
    if (!data)
        return;
    if (data->release)
        data->release(data->memory);
    if (data->release || data->mapped) { /* a table, no view of one */
        qn__free(data->note);
        qn__item_names_free(data->names);
        qn__free(data->weight_name);
        qn__free(data->tokenizer);
        qn__schema_free(data->schema);
        qn__late_digest_free(data->late);
        qn__wide_free(data->wide);
        qn__kept_free(data->kept);
        qn__several_free(data->several);
        qn__text_words_free(data->words);
        if (!data->mapped)
            qn__free(data->window);
    } else if (!data->index) { /* a reader failed before it had values */
        qn__free(data->note);
    }
    if (!data->mapped) {
        qn__free(data->labels);
        qn__free(data->targets);
        qn__free(data->weights);
    }
    qn__text_list_free(data->listed);
    qn__free(data->label_columns);
    qn__free(data->index);
    qn__free(data);
}

uint64_t qn_data_items(const qn_data *data) { return data ? data->items : 0; }

uint64_t qn_data_texts(const qn_data *data) { return data ? qn__data_texts(data) : 0; }

uint32_t qn_data_features(const qn_data *data) { return data ? data->features : 0; }

qn_data_type qn_data_type_of(const qn_data *data) { return data ? data->type : (qn_data_type)0; }

const void *qn_data_values(const qn_data *data) { return data ? data->values : NULL; }

const int32_t *qn_data_labels(const qn_data *data) { return data ? data->labels : NULL; }

const void *qn_data_item(const qn_data *data, uint64_t item) {
    QN__OWN_FLOATS;
    return data && item < data->items ? qn__data_item(data, item) : NULL;
}

const char *qn_data_tokenizer(const qn_data *data) {
    QN__OWN_FLOATS;
    return data ? data->tokenizer : NULL;
}

uint32_t qn_data_context(const qn_data *data) { return data ? data->context : 0; }

const char *qn_data_tokens(const qn_data *data) {
    QN__OWN_FLOATS;
    return data && *data->tokens ? data->tokens : NULL;
}

uint32_t qn_data_classes(const qn_data *data) { return data ? data->classes : 0; }

const char *qn_data_digest(const qn_data *data) {
    if (!data)
        return "";
    return data->late ? qn__late_digest_text(data->late) : data->digest;
}

void qn_data_image_size(const qn_data *data, uint32_t *rows, uint32_t *columns) {
    if (rows)
        *rows = data ? data->rows : 0;
    if (columns)
        *columns = data ? data->columns : 0;
}

const uint32_t *qn_data_item_words(const qn_data *data, uint64_t item, uint32_t *count) {
    const qn__text_words *words = data && item < data->items ? data->words : NULL;
    if (count)
        *count = words ? words->each : 0;
    return words ? qn__text_words_of(words, data->index ? data->index[item] : item) : NULL;
}

const char *qn_data_item_name(const qn_data *data, uint64_t item) {
    if (!data || !data->names || item >= data->items)
        return NULL;
    return data->names->text + data->names->at[data->index ? data->index[item] : item];
}

uint32_t qn_data_image_channels(const qn_data *data) { return data ? data->channels : 0; }

const char *qn_data_feature_name(const qn_data *data, uint32_t k) {
    const qn__schema *schema = data ? data->schema : NULL;
    return schema && k < schema->features ? schema->feature[k].name : NULL;
}

qn_data_type qn_data_feature_type(const qn_data *data, uint32_t k) {
    const qn__schema *schema = data ? data->schema : NULL;
    if (!data || k >= data->features)
        return (qn_data_type)0;
    return schema && schema->feature[k].bytes ? QN_U8 : data->type;
}

uint32_t qn_data_categories(const qn_data *data, uint32_t k) {
    const qn__schema *schema = data ? data->schema : NULL;
    return schema && k < schema->features ? schema->feature[k].categories : 0;
}

uint32_t qn_data_text_inputs(const qn_data *data, uint32_t k) {
    QN__OWN_FLOATS;
    const qn__schema *schema = data ? data->schema : NULL;
    return schema && k < schema->features && schema->feature[k].text
               ? qn__feature_inputs(&schema->feature[k])
               : 0;
}

void qn_data_text_features(const qn_data *data, uint32_t k, char *text, size_t size) {
    QN__OWN_FLOATS;
    char own[QN__GRAMS_TEXT] = "";
    const qn__schema *schema = data ? data->schema : NULL;
    if (schema && k < schema->features)
        qn__grams_text(schema->feature[k].grams, schema->feature[k].text, own);
    if (text && size > 0)
        snprintf(text, size, "%s", own);
}

const char *qn_data_category(const qn_data *data, uint32_t k, uint32_t i) {
    return i < qn_data_categories(data, k) ? data->schema->feature[k].category[i] : NULL;
}

qn_target qn_data_target(const qn_data *data) {
    return data ? (qn_target)qn__data_target(data) : QN_TARGET_NONE;
}

const float *qn_data_targets(const qn_data *data) { return data ? data->targets : NULL; }

qn_status qn_data_several(const qn_data *data, qn_several *several, qn_error *err) {
    QN__OWN_FLOATS;
    QN__NEED(data, err);
    QN__NEED(several, err);
    const qn__sized *what = QN__SIZED("several", qn_several);
    const qn_status status = qn__sized_check(what, several, err);
    const qn__several *from = data->several;
    qn_several own = {.size = sizeof own};
    if (status != QN_OK)
        return status;
    if (from)
        own = (qn_several){sizeof own, from->each, from->height, from->width, from->target};
    qn__sized_give(what, &own, several, several->size);
    return QN_OK;
}

const float *qn_data_weights(const qn_data *data) { return data ? data->weights : NULL; }

const char *qn_data_weight_name(const qn_data *data) { return data ? data->weight_name : NULL; }

const char *qn_data_label_name(const qn_data *data) {
    return data && data->schema ? data->schema->label : NULL;
}

const char *qn_data_class_name(const qn_data *data, uint32_t k) {
    const qn__schema *schema = data ? data->schema : NULL;
    return schema && k < schema->classes ? schema->class_name[k] : NULL;
}

const char *qn_data_note(const qn_data *data) { return data ? data->note : NULL; }

const char *qn_data_format(const qn_data *data) { return data ? data->format : ""; }
