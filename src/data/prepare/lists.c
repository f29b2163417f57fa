#include "data/prepare/lists.h"

#include "base/memory.h"
#include "base/system/float_state.h"
#include "base/system/threads.h"
#include "data/cells/ngrams.h"
#include "data/table/depot.h"
#include "data/table/wide.h"
#include "num/elementary.h"
#include <inttypes.h>
#include <math.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

/* Items that a thread takes at once, and items from which a second thread is worth its start. */
enum { PIECE = 128, WORTH_THREADS = 512 };

/* Pieces of one kind of a column of texts. */
typedef struct texts {
    uint32_t feature, at; /* at: their first input among those of all texts */
    const qn__grams *which;
} texts;

/* ------------------------------------------------------------------------------------ the texts */

/* The pieces of the columns of texts of a table, in the order of their inputs; NULL if out of
 * memory.
 */
static texts *texts_of(const qn__schema *table, uint32_t *count, qn_error *err) {
    texts *all = qn__alloc((size_t)qn__schema_texts(table) * QN__GRAM_KINDS, sizeof *all, err);
    uint32_t at = 0;
    *count = 0;
    for (uint32_t k = 0; all && k < table->features; ++k) {
        const qn__feature *f = &table->feature[k];
        for (uint32_t i = 0; i < f->text; ++i) {
            all[(*count)++] = (texts){k, at, &f->grams[i]};
            at += qn__grams_inputs(&f->grams[i], 1);
        }
    }
    return all;
}

/* The text of an item, or NULL where it is missing. A column of numbers has their texts. */
static const char *text_of(const qn_data *data, uint64_t item, uint32_t k, char number[40]) {
    const double value = qn__data_number(data, item, k);
    const qn__feature *feature = data->schema ? &data->schema->feature[k] : NULL;
    if (isnan(value))
        return NULL;
    if (feature && feature->categories)
        return value >= 0 && value < feature->categories ? feature->category[(uint32_t)value]
                                                         : NULL;
    qn__float_text((float)value, number);
    return number;
}

/* ------------------------------------------------------------------------------ work of threads */

typedef struct work work;
struct work {
    uint64_t items;
    atomic_uint_fast64_t next;
    atomic_int failed; /* memory is short */
    void *context;
    /* Does the items from `first` to before `end`; 0: memory is short. */
    int (*piece)(void *context, qn__ngrams *space, uint64_t first, uint64_t end);
};

static void take_pieces(void *context, int thread) {
    work *w = context;
    qn__ngrams space = {0};
    (void)thread;
    for (uint64_t first;
         !atomic_load(&w->failed) && (first = atomic_fetch_add(&w->next, PIECE)) < w->items;) {
        const uint64_t end = w->items - first < PIECE ? w->items : first + PIECE;
        if (!w->piece(w->context, &space, first, end))
            atomic_store(&w->failed, 1);
    }
    qn__ngrams_release(&space);
}

static qn_status do_all(work *w, qn_error *err) {
    qn__pool *pool = NULL;
    if (w->items < WORTH_THREADS || qn__pool_create(qn__cores(), 0, &pool, NULL) != QN_OK)
        take_pieces(w, 0);
    else
        qn__pool_run(pool, take_pieces, w);
    qn__pool_destroy(pool);
    return atomic_load(&w->failed) ? qn__fail_memory(err, w->items, sizeof(qn__listed)) : QN_OK;
}

/* ---------------------------------------------------------------------------------- fitting idf */

typedef struct counting {
    const qn_data *data;
    const texts *column;
    uint32_t columns;
    _Atomic uint64_t *count; /* of each input of texts: items that have it */
} counting;

static int count_piece(void *context, qn__ngrams *space, uint64_t first, uint64_t end) {
    const counting *c = context;
    char number[40];
    for (uint64_t i = first; i < end; ++i)
        for (uint32_t j = 0; j < c->columns; ++j) {
            const texts *t = &c->column[j];
            const char *text = text_of(c->data, i, t->feature, number);
            if (!text)
                continue;
            if (qn__ngrams_find(space, text, t->which, NULL) != QN_OK)
                return 0;
            for (uint32_t g = 0; g < space->count; ++g)
                atomic_fetch_add_explicit(&c->count[t->at + space->gram[g].bucket], 1,
                                          memory_order_relaxed);
        }
    return 1;
}

qn_status qn__idf_fit(const qn_data *train, const qn__schema *table, float *idf, qn_error *err) {
    const uint64_t inputs = qn__schema_text_inputs(table);
    counting c = {.data = train};
    c.count = qn__alloc(inputs, sizeof *c.count, err);
    texts *column = c.count ? texts_of(table, &c.columns, err) : NULL;
    c.column = column;
    work w = {.items = train->items, .context = &c, .piece = count_piece};
    const qn_status status = column ? do_all(&w, err) : QN_MEMORY;
    const float all = (float)(train->items + 1);
    for (uint64_t k = 0; status == QN_OK && k < inputs; ++k)
        idf[k] = qn__log(all / (float)(atomic_load(&c.count[k]) + 1)) + 1.0f;
    qn__free(column);
    qn__free(c.count);
    return status;
}

/* ------------------------------------------------------------------------------- other columns */

/* The columns of `raw` that are not texts in the model, as a table; NULL if out of memory. */
static qn_data *other_columns(const qn_data *raw, const uint32_t *column, uint32_t features,
                              qn_error *err) {
    qn_data *made = qn__alloc(1, sizeof *made, err);
    if (!made)
        return NULL;
    made->type = raw->type;
    made->items = raw->items;
    made->features = features;
    made->format = raw->format;
    made->missing = raw->missing;
    made->release = qn__free;
    const size_t size = qn__element_of(raw->type)->size, stride = qn__data_stride(made);
    made->memory = qn__alloc(raw->items, stride, err);
    made->values = made->memory;
    made->schema = made->memory ? qn__schema_join(NULL, raw->schema, column, features, err) : NULL;
    if (!made->schema || qn__wide_copy(raw, NULL, column, made, err) != QN_OK) {
        qn_data_close(made);
        return NULL;
    }
    for (uint64_t i = 0; i < raw->items; ++i) {
        const uint8_t *from = qn__data_item(raw, i);
        for (uint32_t k = 0; k < features; ++k)
            memcpy((uint8_t *)made->memory + i * stride + k * size, from + column[k] * size, size);
    }
    return made;
}

/* What the model is without its columns of texts. */
typedef struct others {
    qn__encoding how;
    qn__schema *table;
    uint32_t *column;
    float *fill;
    uint8_t *choice; /* of each input: 1: it is left out where it is 0 */
    qn_data *data, *encoded;
    const qn_data *inputs; /* one of these */
} others;

static void release_others(others *o) {
    qn_data_close(o->encoded);
    qn_data_close(o->data);
    qn__schema_free(o->table);
    qn__free(o->column);
    qn__free(o->fill);
    qn__free(o->choice);
}

/* Inputs that no scaling changes, from those of categories. */
static qn_status find_choices(others *o, uint32_t inputs, qn_error *err) {
    float *mean = qn__alloc(inputs, sizeof *mean, err);
    float *deviation = mean ? qn__alloc(inputs, sizeof *deviation, err) : NULL;
    o->choice = deviation ? qn__alloc(inputs, 1, err) : NULL;
    for (uint32_t k = 0; o->choice && k < inputs; ++k)
        deviation[k] = 2.0f;
    if (o->choice)
        qn__keep_categories(o->table, mean, deviation);
    for (uint32_t k = 0; o->choice && k < inputs; ++k)
        o->choice[k] = deviation[k] == 1.0f;
    qn__free(mean);
    qn__free(deviation);
    return o->choice ? QN_OK : QN_MEMORY;
}

/* The inputs of all columns that are not texts. */
static qn_status make_others(const qn__encoding *how, const qn_data *raw,
                             const qn__encoding_notes *notes, others *o, qn_error *err) {
    uint32_t features = 0;
    o->column = qn__alloc(how->features, sizeof *o->column, err);
    o->fill = o->column ? qn__alloc(how->features, sizeof *o->fill, err) : NULL;
    if (!o->fill)
        return QN_MEMORY;
    for (uint32_t k = 0; k < how->features; ++k)
        if (!how->table->feature[k].text) {
            o->fill[features] = how->fill ? how->fill[k] : 0.0f;
            o->column[features++] = k;
        }
    if (features == 0)
        return QN_OK;
    o->table = qn__schema_join(NULL, how->table, o->column, features, err);
    o->data = o->table ? other_columns(raw, o->column, features, err) : NULL;
    if (!o->data)
        return QN_MEMORY;
    o->how = *how;
    o->how.table = o->table;
    o->how.features = features;
    o->how.fill = how->fill ? o->fill : NULL;
    const qn_status status = qn__make_inputs(&o->how, o->data, notes, &o->encoded, err);
    o->inputs = o->encoded ? o->encoded : o->data;
    return status == QN_OK ? find_choices(o, o->inputs->features, err) : status;
}

/* -------------------------------------------------------------------------------------- making */

/* All lists of a table: the memory of a qn_data. */
typedef struct lists {
    qn__list *list;
    qn__depot *pairs;
} lists;

static void release_lists(void *memory) {
    lists *all = memory;
    qn__depot_release(all->pairs);
    qn__free(all->list);
    qn__free(all);
}

typedef struct making {
    const qn__encoding *how;
    const qn_data *raw;
    const others *others;
    const texts *column;
    uint32_t columns, begin; /* begin: the first input of texts */
    lists *all;
} making;

/* The pairs of some items while they are made. */
typedef struct pairs {
    qn__listed *pair;
    size_t count, capacity;
} pairs;

static int need(pairs *p, size_t more) {
    if (p->capacity - p->count >= more)
        return 1;
    const size_t capacity = 2 * (p->capacity + more);
    qn__listed *pair = qn__alloc(capacity, sizeof *pair, NULL);
    if (!pair)
        return 0;
    if (p->count)
        memcpy(pair, p->pair, p->count * sizeof *pair);
    qn__free(p->pair);
    p->pair = pair;
    p->capacity = capacity;
    return 1;
}

static int add_others(const making *m, uint64_t item, pairs *to) {
    const qn_data *inputs = m->others->inputs;
    if (!inputs)
        return 1;
    if (!need(to, inputs->features))
        return 0;
    for (uint32_t k = 0; k < inputs->features; ++k) {
        const float value = (float)qn__data_number(inputs, item, k);
        if (value != 0.0f || !m->others->choice[k])
            to->pair[to->count++] = (qn__listed){k, value};
    }
    return 1;
}

/* 25.63: how often a word occurs counts less the more often it does. */
static float weight_of(const qn__ngram *gram, float idf) {
    return gram->count == 1 ? idf : (qn__log((float)gram->count) + 1.0f) * idf;
}

static void add_text(const making *m, const texts *t, const qn__ngrams *grams, pairs *to) {
    const float *idf = m->how->idf + t->at;
    qn__listed *first = to->pair + to->count;
    float squares = 0.0f;
    for (uint32_t g = 0; g < grams->count; ++g) {
        const float value = weight_of(&grams->gram[g], idf[grams->gram[g].bucket]);
        squares = fmaf(value, value, squares);
        first[g] = (qn__listed){m->begin + t->at + grams->gram[g].bucket, value};
    }
    const float length = sqrtf(squares);
    for (uint32_t g = 0; g < grams->count; ++g)
        first[g].value = first[g].value / length;
    to->count += grams->count;
}

static int make_item(const making *m, qn__ngrams *space, uint64_t item, pairs *to) {
    char number[40];
    if (!add_others(m, item, to))
        return 0;
    for (uint32_t j = 0; j < m->columns; ++j) {
        const char *text = text_of(m->raw, item, m->column[j].feature, number);
        if (!text)
            continue;
        if (qn__ngrams_find(space, text, m->column[j].which, NULL) != QN_OK ||
            !need(to, space->count))
            return 0;
        add_text(m, &m->column[j], space, to);
    }
    return 1;
}

static int make_piece(void *context, qn__ngrams *space, uint64_t first, uint64_t end) {
    const making *m = context;
    pairs all = {0};
    int done = 1;
    for (uint64_t i = first; done && i < end; ++i) {
        const size_t before = all.count;
        done = make_item(m, space, i, &all);
        m->all->list[i].count = all.count - before;
    }
    const size_t bytes = all.count * sizeof *all.pair;
    qn__listed *at = done ? qn__depot_take(m->all->pairs, bytes, NULL) : NULL;
    if (at && bytes > 0)
        memcpy(at, all.pair, bytes);
    qn__free(all.pair);
    for (uint64_t i = first; at && i < end; ++i) {
        m->all->list[i].pair = at;
        at += m->all->list[i].count;
    }
    return at != NULL;
}

/* The table of lists, without values, with the labels of `raw`. */
static qn_data *begin(const qn__encoding *how, const qn_data *raw, qn_error *err) {
    qn_data *made = qn__alloc(1, sizeof *made, err);
    lists *all = made ? qn__alloc(1, sizeof *all, err) : NULL;
    if (!all) {
        qn__free(made);
        return NULL;
    }
    made->type = (qn_data_type)QN__ELEMENT_LIST;
    made->items = raw->items;
    made->features = (uint32_t)qn__inputs(how->table, how->features);
    made->classes = raw->classes;
    made->format = raw->format;
    made->labels = raw->labels;
    made->targets = raw->targets;
    made->weights = raw->weights;
    made->mapped = 1; /* these belong to `raw` */
    made->release = release_lists;
    made->memory = all;
    memcpy(made->digest, qn_data_digest(raw), sizeof made->digest);
    all->list = qn__alloc(raw->items, sizeof *all->list, err);
    all->pairs = all->list ? qn__depot_create(err) : NULL;
    made->values = (const uint8_t *)all->list;
    if (all->pairs && qn__several_copy(raw, NULL, raw->items, &made->several, err) == QN_OK)
        return made;
    qn_data_close(made);
    return NULL;
}

/* What is missing is told once for each column. */
static void tell_missing(const making *m, const qn__encoding_notes *notes) {
    char name[160], text[400];
    for (uint32_t j = 0; notes->tell && j < m->columns; ++j) {
        const uint32_t k = m->column[j].feature;
        if (j > 0 && m->column[j - 1].feature == k)
            continue;
        uint64_t missing = 0;
        for (uint64_t i = 0; i < m->raw->items; ++i)
            missing += (uint64_t) !!isnan(qn__data_number(m->raw, i, k));
        if (missing == 0)
            continue;
        snprintf(text, sizeof text, "%s: %" PRIu64 " text%s of %s %s missing and count%s as empty",
                 notes->what, missing, missing == 1 ? "" : "s",
                 qn__column_name(m->how->table, k, name, sizeof name), missing == 1 ? "is" : "are",
                 missing == 1 ? "s" : "");
        notes->tell(notes->user, text);
        qn__float_state_set();
    }
}

static qn_status make(making *m, const qn__encoding_notes *notes, qn_data **out, qn_error *err) {
    texts *column = texts_of(m->how->table, &m->columns, err);
    *out = column ? begin(m->how, m->raw, err) : NULL;
    if (!*out) {
        qn__free(column);
        return QN_MEMORY;
    }
    m->column = column;
    m->all = (*out)->memory;
    work w = {.items = m->raw->items, .context = m, .piece = make_piece};
    const qn_status status = do_all(&w, err);
    if (status == QN_OK)
        tell_missing(m, notes);
    qn__free(column);
    if (status == QN_OK)
        return QN_OK;
    qn_data_close(*out);
    *out = NULL;
    return status;
}

qn_status qn__make_lists(const qn__encoding *how, const qn_data *raw,
                         const qn__encoding_notes *notes, qn_data **out, qn_error *err) {
    others o = {.data = NULL};
    if (qn__schema_texts(how->table) == 0)
        return qn__make_inputs(how, raw, notes, out, err);
    *out = NULL;
    if (how->missing == QN__MISSING_ERROR || how->missing == QN__MISSING_DROP) {
        const qn_status status = qn__refuse_missing(raw, notes->what, QN__MISSING_REMEDY, err);
        if (status != QN_OK)
            return status;
    }
    const uint64_t inputs = qn__inputs(how->table, how->features);
    if (inputs > UINT32_MAX)
        return qn__fail(err, QN_INPUT,
                        "the categories and texts of all columns give %" PRIu64
                        " inputs, which are too many",
                        inputs);
    qn_status status = make_others(how, raw, notes, &o, err);
    making m = {.how = how,
                .raw = raw,
                .others = &o,
                .begin = (uint32_t)(inputs - qn__schema_text_inputs(how->table))};
    if (status == QN_OK)
        status = make(&m, notes, out, err);
    release_others(&o);
    return status;
}

qn_data *qn__lists_begin(const qn_data *all, uint32_t inputs, qn_error *err) {
    qn_data *made = qn__alloc(1, sizeof *made, err);
    if (!made)
        return NULL;
    made->type = QN_F32;
    made->items = all->items;
    made->features = inputs;
    made->format = all->format;
    made->release = qn__free;
    made->memory = qn__alloc(all->items, inputs * sizeof(float), err);
    made->values = made->memory;
    if (!made->memory) {
        qn_data_close(made);
        return NULL;
    }
    float *to = made->memory;
    for (uint64_t i = 0; i < all->items; ++i, to += inputs) {
        const qn__list *list = qn__data_item(all, i);
        for (uint64_t k = 0; k < list->count && list->pair[k].at < inputs; ++k)
            to[list->pair[k].at] = list->pair[k].value;
    }
    return made;
}
