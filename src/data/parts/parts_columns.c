/* The columns of the whole: types, and categories in their order. */
#include "base/files/mapped_file.h"
#include "base/memory.h"
#include "data/cells/commas.h"
#include "data/cells/labels.h"
#include "data/cells/prose.h"
#include "data/cells/text_set.h"
#include "data/parts/parts_heads.h"
#include "data/parts/parts_memory.h"
#include "data/table/picture.h"
#include "data/table/rules.h"
#include "data/table/table_space.h"
#include <math.h>
#include <stdio.h>
#include <string.h>

static const qn_data *lead_of(const qn__part_heads *heads) { return heads->part[heads->lead].data; }

/* ------------------------------------------------------------------ what must be equal */

static qn_status refuse(const qn_parts *parts, uint32_t rank, uint32_t other, const char *what,
                        qn_error *err) {
    qn__fail(err, QN_MISMATCH, "the part of %s is not one table with that of %s: %s differs",
             qn_cluster_name(parts->cluster, rank), qn_cluster_name(parts->cluster, other), what);
    qn__part_heads_at(parts, rank, err);
    return qn__remedy(err, QN_MISMATCH, "give parts with the same columns, of the same types");
}

static int same_text(const char *a, const char *b) { return a && b ? strcmp(a, b) == 0 : a == b; }

/* A column of numbers that are all missing fits any other. */
static int is_open(const qn__part_head *p, uint32_t k) {
    const qn__feature *f = &p->data->schema->feature[k];
    return p->column[k].present == 0 && f->categories == 0 && f->dates == 0;
}

static int same_kind(const qn__feature *a, const qn__feature *b) {
    return (a->categories > 0) == (b->categories > 0) && a->dates == b->dates &&
           a->time == b->time && a->zone == b->zone && a->exact == b->exact;
}

/* The first part whose values tell the kind of column k. */
static uint32_t teller(const qn_parts *parts, const qn__part_heads *heads, uint32_t k) {
    for (uint32_t r = heads->lead; r < parts->ranks; r++)
        if (heads->part[r].data && !is_open(&heads->part[r], k))
            return r;
    return heads->lead;
}

static qn_status compare_columns(const qn_parts *parts, const qn__part_heads *heads, uint32_t rank,
                                 qn_error *err) {
    const qn__part_head *p = &heads->part[rank];
    for (uint32_t k = 0; k < p->data->features; k++) {
        const uint32_t t = teller(parts, heads, k);
        const qn__feature *own = &p->data->schema->feature[k];
        const qn__feature *lead = &lead_of(heads)->schema->feature[k];
        char name[160], what[260];
        qn__column_name(lead_of(heads)->schema, k, name, sizeof name);
        snprintf(what, sizeof what, "the name of %.90s, which is \"%.80s\" there,", name,
                 own->name ? own->name : "");
        if (!same_text(own->name, lead->name))
            return refuse(parts, rank, heads->lead, what, err);
        snprintf(what, sizeof what, "the type of %s", name);
        if (!is_open(p, k) && !same_kind(own, &heads->part[t].data->schema->feature[k])) {
            refuse(parts, rank, t, what, err);
            return qn__remedy(err, QN_MISMATCH,
                              "where numbers stand for categories, name the column with "
                              "`data.category`; else leave it out with `data.drop`");
        }
    }
    return QN_OK;
}

/* Several labels of an item: their names, and the texts for 0 and 1. */
static int same_several(const qn_data *a, const qn_data *b) {
    const qn__schema *s = a->schema, *t = b->schema;
    if (!a->several != !b->several)
        return 0;
    if (!a->several)
        return 1;
    int same = a->several->each == b->several->each && a->several->height == b->several->height &&
               a->several->width == b->several->width && s->classes == t->classes &&
               !s->label_value == !t->label_value;
    for (uint32_t k = 0; same && k < s->classes; k++)
        same = same_text(s->class_name[k], t->class_name[k]);
    for (uint32_t k = 0; same && s->label_value && k < 2 * s->classes; k++)
        same = same_text(s->label_value[k], t->label_value[k]);
    return same;
}

/* All are images, or none are. */
static qn_status compare_shapes(const qn_parts *parts, const qn__part_heads *heads, uint32_t rank,
                                qn_error *err) {
    const qn_data *lead = lead_of(heads), *own = heads->part[rank].data;
    if (own->channels == lead->channels && own->rows == lead->rows && own->columns == lead->columns)
        return QN_OK;
    refuse(parts, rank, heads->lead, "the shape of the items", err);
    return qn__of_image_files(own)
               ? qn__remedy(err, QN_MISMATCH,
                            "bring all to one size, height x width, as with `data.resize` 32x32")
               : QN_MISMATCH;
}

static qn_status compare(const qn_parts *parts, const qn__part_heads *heads, uint32_t rank,
                         qn_error *err) {
    const qn_data *lead = lead_of(heads), *own = heads->part[rank].data;
    const char *what = NULL;
    if (compare_shapes(parts, heads, rank, err) != QN_OK)
        return QN_MISMATCH;
    if (qn__element_is_token(own->type) + qn__element_is_token(lead->type) > 0 &&
        (own->type != lead->type || strcmp(own->tokens, lead->tokens) != 0))
        what = "how tokens are made";
    else if (own->features != lead->features)
        what = "the number of columns";
    else if (qn__of_image_files(own) != qn__of_image_files(lead))
        what = "the format";
    else if (memcmp(&own->resize, &lead->resize, sizeof own->resize) != 0)
        what = "how images are resized";
    else if (!own->weights != !lead->weights || !same_text(own->weight_name, lead->weight_name))
        what = "the column of weights";
    else if (!same_text(own->schema->label, lead->schema->label) ||
             qn__data_labelled(own) != qn__data_labelled(lead))
        what = "the column of labels";
    else if (!same_several(own, lead))
        what = "which labels there are, or the texts for 0 and 1,";
    return what ? refuse(parts, rank, heads->lead, what, err)
                : compare_columns(parts, heads, rank, err);
}

void qn__parts_colours(const qn_parts *parts, const qn__part_heads *heads, qn__parts_again *out) {
    int grey = 0, colours = 0;
    for (uint32_t r = heads->lead; r < parts->ranks; r++) {
        const qn_data *data = heads->part[r].data;
        grey |= data && qn__of_image_files(data) && data->channels == 1;
        colours |= data && qn__of_image_files(data) && data->channels == 3;
    }
    out->any = grey && colours;
    out->colours = out->any && parts->own && parts->own->items > 0 && parts->own->channels == 1;
}

/* ------------------------------------------------------------------ values of this rank */

/* Memory or a file for the values of this rank. */
static qn__table_space space_of(const qn_parts *parts, const qn_data_options *o) {
    return (qn__table_space){.no_file = o->no_cache == 1,
                             .path = parts->name[parts->rank],
                             .entry = "",
                             .ranks = qn__parts_beside(parts)};
}

/* Values that may be written to: those of a caller are copied. A file that is used in its place has
 * no categories. */
static qn_status make_own(qn_data *data, const qn__table_space *space, qn_error *err) {
    qn_data old = *data;
    if (!qn__parts_is_lent(data))
        return QN_OK;
    data->release = NULL;
    data->in_file = NULL;
    data->buffer = space;
    const qn_status status = qn__table_space_make(data, err);
    data->buffer = NULL;
    if (status != QN_OK) {
        *data = old;
        return status;
    }
    memcpy(qn__table_space_values(data), old.values, qn__data_bytes_of(data, data->items));
    old.release(old.memory);
    return QN_OK;
}

qn_status qn__parts_own_values(qn_parts *parts, const qn_data_options *options, qn_error *err) {
    const qn__table_space space = space_of(parts, options);
    return make_own(parts->own, &space, err);
}

/* Numbers of categories become those of the whole. */
static qn_status renumber(qn_data *data, uint32_t k, const qn__text_set *texts,
                          const qn__table_space *space, qn_error *err) {
    qn__feature *f = &data->schema->feature[k];
    float *number = qn__alloc(f->categories, sizeof *number, err);
    int same = 1;
    if (!number)
        return QN_MEMORY;
    for (uint32_t i = 0; i < f->categories; i++) {
        const qn__cell cell = qn__cell_of(f->category[i]);
        const uint32_t at = qn__text_set_find(texts, &cell);
        number[i] = (float)at;
        same &= at == i;
    }
    const qn_status status = same ? QN_OK : make_own(data, space, err);
    float *value = qn__table_space_values(data);
    for (uint64_t i = 0; !same && status == QN_OK && i < data->items; i++) {
        float *to = &value[i * data->features + k];
        if (!isnan(*to))
            *to = number[(uint32_t)*to];
    }
    if (!same && data->in_file)
        qn__mapped_file_written(data->memory);
    qn__free(number);
    return status;
}

/* ------------------------------------------------------------------ categories */

static qn_status collect(const qn_parts *parts, const qn__part_heads *heads, uint32_t k,
                         qn__text_set *texts, qn_error *err) {
    for (uint32_t r = heads->lead; r < parts->ranks; r++) {
        const qn_data *data = heads->part[r].data;
        const qn__feature *f = data ? &data->schema->feature[k] : NULL;
        for (uint32_t i = 0; f && i < f->categories; i++) {
            const qn__cell cell = qn__cell_of(f->category[i]);
            if (qn__text_set_add(texts, &cell, err) != QN_OK)
                return QN_MEMORY;
        }
    }
    return qn__text_set_sort(texts, 0, err);
}

/* A column may look like texts in the whole alone, or in a part alone. */
static qn_status find_texts(qn_parts *parts, const qn__part_heads *heads, uint32_t k,
                            const qn_data_options *o, qn_error *err) {
    uint64_t present = 0;
    for (uint32_t r = heads->lead; r < parts->ranks; r++)
        present += heads->part[r].data ? heads->part[r].column[k].present : 0;
    return qn__prose_find_column(parts->own, k, present, qn__prose_wanted(o), o->text_features,
                                 parts->name[heads->lead], err);
}

static void take_texts(qn__text_set *texts, qn__feature *f) {
    qn__feature_drop_categories(f);
    f->category = texts->text;
    f->categories = texts->count;
    texts->text = NULL;
    texts->count = 0;
}

/* The kind of column k in the whole, in the schema of this rank's rows. */
static qn_status settle(qn_parts *parts, const qn__part_heads *heads, uint32_t k,
                        const qn_data_options *options, qn_error *err) {
    const qn__table_space space = space_of(parts, options);
    qn_data *own = parts->own;
    const qn__feature *tells = &heads->part[teller(parts, heads, k)].data->schema->feature[k];
    qn__feature *f = &own->schema->feature[k];
    qn__text_set texts = {0};
    int bytes = own->type == QN_F32;
    qn_status status = QN_OK;
    for (uint32_t r = heads->lead; r < parts->ranks; r++)
        if (heads->part[r].data)
            bytes &=
                heads->part[r].data->type == QN_U8 || heads->part[r].data->schema->feature[k].bytes;
    f->bytes = bytes;
    f->dates = tells->dates;
    f->time = tells->time;
    f->zone = tells->zone;
    if (tells->categories > 0)
        status = collect(parts, heads, k, &texts, err);
    if (status == QN_OK && f->categories > 0)
        status = renumber(own, k, &texts, &space, err);
    if (status == QN_OK && tells->categories > 0)
        take_texts(&texts, f);
    qn__text_set_release(&texts);
    return status == QN_OK && f->categories > 0 ? find_texts(parts, heads, k, options, err)
                                                : status;
}

/* ------------------------------------------------------------------ all columns */

static qn_status make_empty(qn_parts *parts, const qn_data *lead, qn_error *err) {
    qn_data *own = qn__alloc(1, sizeof *own, err);
    if (!own)
        return QN_MEMORY;
    parts->own = own;
    own->type = lead->type;
    own->features = lead->features;
    own->context = lead->context;
    own->format = lead->format;
    own->channels = lead->channels;
    own->rows = lead->rows;
    own->columns = lead->columns;
    own->resize = lead->resize;
    memcpy(own->date_format, lead->date_format, sizeof own->date_format);
    memcpy(own->tokens, lead->tokens, sizeof own->tokens);
    own->memory = qn__alloc(1, 1, err);
    own->release = qn__free;
    own->values = own->memory;
    own->labels = lead->labels ? qn__alloc(1, sizeof *own->labels, err) : NULL;
    own->targets = lead->targets ? qn__alloc(1, sizeof *own->targets, err) : NULL;
    own->weights = lead->weights ? qn__alloc(1, sizeof *own->weights, err) : NULL;
    if (lead->several)
        own->several = qn__several_create(1, lead->several->each, lead->several->height,
                                          lead->several->width, err);
    own->weight_name = lead->weight_name ? qn__copy_text(lead->weight_name, err) : NULL;
    own->schema = qn__schema_copy(lead->schema, err);
    own->tokenizer = lead->tokenizer ? qn__copy_text(lead->tokenizer, err) : NULL;
    if (!lead->tokenizer != !own->tokenizer)
        return QN_MEMORY;
    return own->schema && own->values && !lead->labels == !own->labels &&
                   !lead->targets == !own->targets && !lead->weights == !own->weights &&
                   !lead->several == !own->several && !lead->weight_name == !own->weight_name
               ? QN_OK
               : QN_MEMORY;
}

/* The type of the values, and what is the same for all columns. */
static qn_status settle_table(qn_parts *parts, const qn__part_heads *heads,
                              const qn_data_options *options, qn_error *err) {
    qn_data *own = parts->own;
    int floats = 0;
    for (uint32_t r = heads->lead; r < parts->ranks; r++) {
        const qn_data *data = heads->part[r].data;
        floats |= data && data->type == QN_F32;
        own->missing |= data && data->missing;
        own->rules |= data ? data->rules : 0;
        own->comma |= data && data->comma > 0;
        if (data && data->several && heads->part[r].classes > own->classes)
            own->classes = heads->part[r].classes;
    }
    own->rules &= ~(uint32_t)QN__RULE_TEXT; /* whether the whole has texts is found below */
    if (!floats || own->type != QN_U8)
        return QN_OK;
    const qn__table_space space = space_of(parts, options);
    qn_status status = QN_OK;
    own->buffer = &space;
    if (own->items > 0)
        status = qn__table_space_widen(own, own->items, err);
    if (status == QN_OK && own->in_file)
        qn__mapped_file_written(own->memory);
    own->buffer = NULL;
    own->type = QN_F32;
    return status;
}

/* Where a text of any part has several windows, each item of all parts has its own. */
static qn_status settle_windows(qn_parts *parts, const qn__part_heads *heads, qn_error *err) {
    qn_data *own = parts->own;
    int any = 0;
    for (uint32_t r = heads->lead; r < parts->ranks; r++)
        any |= heads->part[r].data && heads->part[r].data->window;
    if (!any || own->window)
        return QN_OK;
    own->window = qn__alloc(own->items + 1, sizeof *own->window, err);
    for (uint64_t i = 0; own->window && i < own->items; i++)
        own->window[i] = (qn__text_window){i, 0};
    return own->window ? QN_OK : QN_MEMORY;
}

qn_status qn__parts_columns(qn_parts *parts, const qn__part_heads *heads,
                            const qn_data_options *options, qn_error *err) {
    qn_status status = QN_OK;
    for (uint32_t r = heads->lead + 1; r < parts->ranks && status == QN_OK; r++)
        if (heads->part[r].data)
            status = compare(parts, heads, r, err);
    if (status == QN_OK && !parts->own)
        status = make_empty(parts, lead_of(heads), err);
    if (status == QN_OK)
        status = settle_table(parts, heads, options, err);
    if (status == QN_OK)
        status = settle_windows(parts, heads, err);
    uint32_t texts = 0;
    for (uint32_t k = 0; status == QN_OK && k < parts->own->features; k++) {
        status = settle(parts, heads, k, options, err);
        texts += status == QN_OK && parts->own->schema->feature[k].text > 0;
    }
    if (status == QN_OK && options->text_features && texts == 0 &&
        !qn__element_is_token(parts->own->type))
        status = qn__prose_refuse_none(parts->name[heads->lead], err);
    if (status == QN_OK && parts->own->comma > 0)
        parts->own->comma = qn__comma_column(parts->own->schema);
    return status;
}
