#include "data/tokens/item_tokens.h"

#include "base/memory.h"
#include "data/table/table_space.h"
#include "data/table/token_row.h"
#include "data/tokens/data_tokenizer.h"
#include "data/tokens/models/token_ids.h"
#include "data/tokens/tokenizer.h"
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* The tokens of an item: those of a corpus with this context, or of the model's items. */
static qn_status choose_features(const qn_data_options *o, qn_data *data, qn_error *err) {
    const uint32_t context = qn__token_row_context(o);
    data->features = context ? context + 1 : o->expected_features;
    if (data->features > 0)
        return QN_OK;
    qn__fail(err, QN_USAGE, "the options do not say how many tokens an item has");
    return qn__remedy(err, QN_USAGE, "say with `data.context` how many the model reads");
}

/* A table that grows. */
typedef struct rows {
    qn_data *data;
    uint64_t capacity;
    uint64_t cut; /* texts that have several items */
} rows;

static qn_status reserve(rows *r, uint64_t capacity, qn_error *err) {
    qn_data *data = r->data;
    const uint64_t kept = data->items;
    data->items = capacity;
    qn_status status = qn__table_space_grow(data, kept, err);
    data->items = kept;
    r->capacity = capacity;
    if (status != QN_OK || !data->window)
        return status;
    qn__text_window *window = qn__alloc(capacity, sizeof *window, err);
    if (!window)
        return QN_MEMORY;
    memcpy(window, data->window, (size_t)kept * sizeof *window);
    qn__free(data->window);
    data->window = window;
    return QN_OK;
}

/* From the first text on that needs them. */
static qn_status begin_windows(rows *r, qn_error *err) {
    qn_data *data = r->data;
    data->window = qn__alloc((size_t)r->capacity, sizeof *data->window, err);
    for (uint64_t i = 0; data->window && i < data->items; ++i)
        data->window[i] = (qn__text_window){i, 0};
    return data->window ? QN_OK : QN_MEMORY;
}

static qn_status encode(const qn_tokenizer *t, qn__token_text text, qn__token_ids *ids,
                        qn_error *err) {
    ids->count = 0;
    if (!text.bytes || text.size == 0)
        return QN_OK;
    qn_status status = qn__token_frame_add(&t->frame, 0, ids, err);
    if (status == QN_OK)
        status = qn__token_encode(t, text.bytes, text.size, 1, ids, err);
    return status == QN_OK ? qn__token_frame_add(&t->frame, 1, ids, err) : status;
}

/* The items of a text. */
static qn_status add_text(rows *r, uint64_t text, const qn__token_ids *ids, qn_error *err) {
    qn_data *data = r->data;
    const uint64_t step = qn__window_step(data->features);
    const uint64_t more =
        ids->count > data->features ? (ids->count - data->features + step - 1) / step : 0;
    const uint64_t needed = data->items + more + 1;
    qn_status status = needed > r->capacity ? reserve(r, needed + needed / 2, err) : QN_OK;
    if (status == QN_OK && more > 0 && !data->window)
        status = begin_windows(r, err);
    r->cut += more > 0;
    for (uint64_t k = 0; k <= more && status == QN_OK; ++k) {
        const qn__token_ids own = {.number = ids->number + k * step,
                                   .count = ids->count - k * step};
        if (data->window)
            data->window[data->items] = (qn__text_window){text, k};
        qn__token_ids_put(k > 0 ? &own : ids, data->type, qn__table_space_values(data), data->items,
                          data->features);
        qn__table_space_wrote(data, ++data->items);
    }
    return status;
}

static qn_status note_cut(const rows *r, uint64_t texts, const char *item, qn_error *err) {
    char note[200];
    if (r->cut == 0)
        return QN_OK;
    snprintf(note, sizeof note,
             "%" PRIu64 " of %" PRIu64 " %ss %s more than %" PRIu32
             " tokens: the model reads windows of them, of which each begins %" PRIu64
             " tokens after the one before",
             r->cut, texts, item, r->cut == 1 ? "has" : "have", r->data->features,
             qn__window_step(r->data->features));
    return qn__data_add_note(r->data, note, err);
}

qn_status qn__item_tokens(const qn__corpus *texts, const qn_data_options *options, qn_data *data,
                          qn_error *err) {
    qn_tokenizer *t = NULL;
    qn__token_ids ids = {0};
    rows r = {.data = data};
    const qn__learned_from from = {.text = texts->text, .count = texts->count};
    qn_status status = choose_features(options, data, err);
    if (status == QN_OK)
        status = qn__data_tokenizer(&from, options, data, &t, err);
    if (status == QN_OK)
        status = reserve(&r, texts->count, err);
    for (uint64_t i = 0; status == QN_OK && i < texts->count; i++) {
        status = encode(t, texts->text[i], &ids, err);
        if (status == QN_OK)
            status = add_text(&r, i, &ids, err);
    }
    if (status == QN_OK)
        status = note_cut(&r, texts->count, options->item, err);
    qn__token_ids_release(&ids);
    qn_tokenizer_free(t);
    return status;
}
