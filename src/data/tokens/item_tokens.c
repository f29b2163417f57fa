#include "data/tokens/item_tokens.h"

#include "base/memory.h"
#include "data/table/token_row.h"
#include "data/tokens/data_tokenizer.h"
#include "data/tokens/models/token_ids.h"
#include "data/tokens/tokenizer.h"
#include <inttypes.h>

/* The tokens of an item: those of a corpus with this context, or of the model's items. */
static qn_status choose_features(const qn_data_options *o, qn_data *data, qn_error *err) {
    const uint32_t context = qn__token_row_context(o);
    data->features = context ? context + 1 : o->expected_features;
    if (data->features > 0)
        return QN_OK;
    qn__fail(err, QN_USAGE, "the options do not say how many tokens an item has");
    return qn__remedy(err, QN_USAGE, "say with `data.context` how many the model reads");
}

static qn_status reserve(uint64_t items, qn_data *data, qn_error *err) {
    const size_t size = qn__element_of(data->type)->size;
    data->items = items;
    data->memory = items <= SIZE_MAX / size / data->features
                       ? qn__alloc((size_t)items * data->features, size, err)
                       : NULL;
    data->values = data->memory;
    data->release = qn__free;
    return data->memory ? QN_OK : qn__fail_memory(err, SIZE_MAX, 1);
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

static qn_status refuse_long(uint64_t tokens, const qn_data_options *o, const qn_data *data,
                             qn_error *err) {
    qn__fail(err, QN_INPUT,
             "the %s has %" PRIu64 " tokens, and the model reads %" PRIu32 " at most", o->item,
             tokens, data->features);
    return qn__remedy(err, QN_INPUT,
                      "make two of it, or leave `data.item` out: then items are cut from all texts "
                      "as one row of tokens");
}

qn_status qn__item_tokens(const qn__corpus *texts, const qn_data_options *options, qn_data *data,
                          uint64_t *long_one, qn_error *err) {
    qn_tokenizer *t = NULL;
    qn__token_ids ids = {0};
    const qn__learned_from from = {.text = texts->text, .count = texts->count};
    qn_status status = choose_features(options, data, err);
    if (status == QN_OK)
        status = qn__data_tokenizer(&from, options, data, &t, err);
    if (status == QN_OK)
        status = reserve(texts->count, data, err);
    for (uint64_t i = 0; status == QN_OK && i < data->items; i++) {
        status = encode(t, texts->text[i], &ids, err);
        if (status == QN_OK && ids.count > data->features) {
            *long_one = i;
            status = refuse_long(ids.count, options, data, err);
        } else if (status == QN_OK) {
            qn__token_ids_put(&ids, data->type, data->memory, i, data->features);
        }
    }
    qn__token_ids_release(&ids);
    qn_tokenizer_free(t);
    return status;
}
