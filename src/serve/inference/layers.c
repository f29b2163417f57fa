#include "serve/inference/layers.h"

#include "base/memory.h"
#include "base/system/threads.h"
#include <stdio.h>
#include <string.h>

/* Layers of a model that are kept; numbers of a batch, and of an answer. */
enum { KEPT = 8, MOST_TOGETHER = 1 << 22, MOST_VALUES = 1 << 24 };

struct qn__layers {
    const qn_model *model;
    const qn_compute *compute;
    qn__batcher_options options;
    pthread_mutex_t lock; /* of all below */
    qn__layer_use *kept[KEPT];
    uint64_t clock;          /* requests so far */
    qn__batcher_counts gone; /* of those that were freed */
};

/* Whether the text can be a layer of some model: "body", or a number. */
static int can_be_layer(const char *text, size_t size) {
    const size_t sign = *text == '-', digits = strspn(text + sign, "0123456789");
    return (size == 4 && memcmp(text, "body", 4) == 0) || (digits > 0 && sign + digits == size);
}

qn_status qn__layer_name_read(const char *text, qn__layer_name *out, qn_error *err) {
    const char *pool = strchr(text, ':');
    const size_t size = pool ? (size_t)(pool - text) : strlen(text);
    *out = (qn__layer_name){.summary = QN_SUMMARY_NONE};
    if (size < sizeof out->layer && can_be_layer(text, size) &&
        (!pool || qn_summary_find(pool + 1, &out->summary))) {
        memcpy(out->layer, text, size);
        return QN_OK;
    }
    qn__fail(err, QN_USAGE, "\"%.60s\" does not name a layer", text);
    return qn__remedy(err, QN_USAGE,
                      "give its number or body, and after a colon mean, max, first or last, such "
                      "as body:mean");
}

qn__layer_name qn__layer_of_embeddings(const qn_model *model) {
    qn__layer_name name = {.summary = QN_SUMMARY_MEAN};
    const uint32_t after = qn_model_body(model) + 1;
    qn__program p;
    qn__model_program(model, &p);
    const qn__layer_kind kind = after < p.layers ? p.layer[after].kind : p.layer[0].kind;
    if (kind == QN__LAYER_POOL || kind == QN__LAYER_GLOBALPOOL) {
        name.summary = QN_SUMMARY_NONE;
        snprintf(name.layer, sizeof name.layer, "%u", after);
    } else
        snprintf(name.layer, sizeof name.layer, "body");
    return name;
}

qn_status qn__layers_make(const qn_model *model, const qn_compute *compute,
                          const qn__batcher_options *options, qn__layers **out, qn_error *err) {
    qn__layers *l = *out = qn__alloc(1, sizeof *l, err);
    if (!l)
        return QN_MEMORY;
    l->model = model;
    l->compute = compute;
    l->options = *options;
    pthread_mutex_init(&l->lock, NULL);
    return QN_OK;
}

static void free_use(qn__layer_use *use) {
    if (!use)
        return;
    qn__batcher_free(use->batcher);
    qn__layer_cut_release(&use->cut);
    qn__free(use);
}

void qn__layers_free(qn__layers *l) {
    if (!l)
        return;
    for (int k = 0; k < KEPT; k++)
        free_use(l->kept[k]);
    pthread_mutex_destroy(&l->lock);
    qn__free(l);
}

static void add_counts(qn__batcher_counts *sum, const qn__batcher_counts *c) {
    sum->requests += c->requests;
    sum->items += c->items;
    sum->batches += c->batches;
    sum->failed += c->failed;
    sum->refused += c->refused;
    sum->left += c->left;
    sum->waiting += c->waiting;
    sum->computing += c->computing;
    for (int k = 0; k < QN__BATCH_SIZES; k++)
        sum->sizes[k] += c->sizes[k];
}

/* A free place for a layer, or that of the unused layer whose last use is the oldest. NULL:
 * requests use all. */
static qn__layer_use **find_place(qn__layers *l) {
    qn__layer_use **best = NULL;
    for (int k = 0; k < KEPT; k++) {
        qn__layer_use *use = l->kept[k];
        if (!use)
            return &l->kept[k];
        if (use->references == 0 && (!best || use->used < (*best)->used))
            best = &l->kept[k];
    }
    if (best) {
        qn__batcher_counts counts;
        qn__batcher_drain((*best)->batcher); /* it counts a batch after its answers */
        qn__batcher_count((*best)->batcher, &counts);
        add_counts(&l->gone, &counts);
        free_use(*best);
        *best = NULL;
    }
    return best;
}

static qn_status refuse_more(qn_error *err) {
    qn__fail(err, QN_BUSY, "requests use %d layers of the model, and further ones wait", KEPT);
    return qn__remedy(err, QN_BUSY, "try again later");
}

static qn_status open_use(const qn__layers *l, qn__layer_use *use, qn_error *err) {
    qn__batcher_options options = l->options;
    qn_status status = qn__layer_cut_make(l->model, use->layer, use->summary, &use->cut, err);
    if (status != QN_OK)
        return status;
    qn__layer_cut_shape(&use->cut, use->shape, &use->lengths);
    use->values = qn__layer_cut_values(&use->cut);
    options.cut = &use->cut;
    options.no_outputs = 0;
    if (MOST_TOGETHER / use->values < (options.most ? options.most : UINT32_MAX))
        options.most = MOST_TOGETHER / use->values + 1;
    return qn__batcher_make(l->model, l->compute, &options, &use->batcher, err);
}

static qn_status make_use(qn__layers *l, uint32_t layer, qn_summary summary, qn__layer_use **out,
                          qn_error *err) {
    qn__layer_use **place = find_place(l);
    if (!place)
        return refuse_more(err);
    qn__layer_use *use = qn__alloc(1, sizeof *use, err);
    if (!use)
        return QN_MEMORY;
    use->layer = layer;
    use->summary = summary;
    const qn_status status = open_use(l, use, err);
    if (status == QN_OK)
        *place = *out = use;
    else
        free_use(use);
    return status;
}

qn_status qn__layers_take(qn__layers *l, const qn__layer_name *name, qn__layer_use **out,
                          qn_error *err) {
    uint32_t layer;
    *out = NULL;
    qn_status status = qn_model_find_layer(l->model, name->layer, &layer, err);
    if (status != QN_OK)
        return status;
    pthread_mutex_lock(&l->lock);
    for (int k = 0; k < KEPT && !*out; k++)
        if (l->kept[k] && l->kept[k]->layer == layer && l->kept[k]->summary == name->summary)
            *out = l->kept[k];
    if (!*out)
        status = make_use(l, layer, name->summary, out, err);
    if (status == QN_OK) {
        (*out)->references++;
        (*out)->used = ++l->clock;
    }
    pthread_mutex_unlock(&l->lock);
    return status;
}

void qn__layers_give(qn__layers *l, qn__layer_use *use) {
    if (!use)
        return;
    pthread_mutex_lock(&l->lock);
    use->references--;
    pthread_mutex_unlock(&l->lock);
}

qn_status qn__layer_check_items(const qn__layer_use *use, uint64_t items, qn_error *err) {
    if (items <= MOST_VALUES / use->values)
        return QN_OK;
    qn__fail(err, QN_INPUT,
             "the outputs of layer %u have %u numbers for each of %llu items, and an answer may "
             "have %d",
             use->layer, use->values, (unsigned long long)items, MOST_VALUES);
    return qn__remedy(err, QN_INPUT, "send fewer items at once, or ask for a pool of them");
}

void qn__layers_count(qn__layers *l, qn__batcher_counts *sum) {
    pthread_mutex_lock(&l->lock);
    add_counts(sum, &l->gone);
    for (int k = 0; k < KEPT; k++) {
        qn__batcher_counts counts;
        if (!l->kept[k])
            continue;
        qn__batcher_count(l->kept[k]->batcher, &counts);
        add_counts(sum, &counts);
    }
    pthread_mutex_unlock(&l->lock);
}
