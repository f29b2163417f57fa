#include "job/token_check.h"

#include <inttypes.h>
#include <math.h>

/* The first of the values of an item that is not the number of a token; their number: all are. */
static size_t find_wrong(const qn_data *data, const void *item, uint32_t tokens) {
    const qn__element *element = qn__element_of(data->type);
    size_t k = 0;
    if (element->fetch == QN__FETCH_TOKENS16 || element->fetch == QN__FETCH_TOKENS32)
        return element->wrong(item, data->features, tokens, NULL);
    if (element->values && element->values <= tokens)
        return data->features;
    for (; k < data->features; ++k) {
        const double value = qn__element_number(data->type, item, k);
        if (!(value >= 0 && value < tokens) || value != trunc(value))
            break;
    }
    return k;
}

static qn_status refuse(const qn_data *data, uint64_t item, size_t k, uint32_t tokens,
                        const char *what, qn_error *err) {
    const double value = qn__element_number(data->type, qn__data_item(data, item), k);
    qn__fail(err, QN_INPUT, "%s: %g is not the number of a token below %" PRIu32, what, value,
             tokens);
    qn__at(err, "item %" PRIu64 ", value %zu", item, k);
    return qn__remedy(err, QN_INPUT,
                      "an embedding of %" PRIu32 " tokens takes whole numbers from 0 to %" PRIu32
                      ": tokenise with the vocabulary of the model, or give the embedding a larger "
                      "one",
                      tokens, tokens - 1);
}

qn_status qn__check_tokens(const qn_data *data, uint32_t tokens, const char *what, qn_error *err) {
    for (uint64_t i = 0; i < data->items; ++i) {
        const size_t k = find_wrong(data, qn__data_item(data, i), tokens);
        if (k < data->features)
            return refuse(data, i, k, tokens, what, err);
    }
    return QN_OK;
}
