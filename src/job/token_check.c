#include "job/token_check.h"

#include "data/parts/parts.h"
#include "data/table/remote_rows.h"
#include <inttypes.h>
#include <math.h>

/* The number that stands where an item of tokens has none (docs/exactness.md 25.40); -1: of other
 * types. */
static double no_token(unsigned type) {
    return type == QN__ELEMENT_TOKEN16   ? 0xffffp0
           : type == QN__ELEMENT_TOKEN32 ? 0xffffffffp0
                                         : -1.0;
}

static int is_token(double value, uint32_t tokens) {
    return value >= 0 && value < tokens && value == trunc(value);
}

/* The first of the values of an item that is neither the number of a token nor says that there is
 * none; their number: there is none. */
static size_t find_wrong(const qn_data *data, const void *item, uint32_t tokens) {
    const qn__element *element = qn__element_of(data->type);
    const double none = no_token(data->type);
    size_t k = 0;
    if (element->values && element->values <= tokens)
        return data->features;
    for (; k < data->features; ++k) {
        const double value = qn__element_number(data->type, item, k);
        if (!is_token(value, tokens) && (none < 0 || value != none))
            break;
    }
    return k;
}

/* What ranks told of their parts saves reading values of others. */
static int all_are_tokens(const qn_data *data, uint32_t tokens) {
    const qn__remote_rows *remote = qn__data_remote(data);
    return remote && qn__parts_are_tokens(remote->parts, tokens);
}

uint64_t qn__next_count(const qn_data *data, uint64_t i, uint32_t tokens) {
    if (all_are_tokens(data, tokens))
        return data->features - 1;
    const void *item = qn__data_item(data, i);
    uint64_t count = 0;
    for (size_t k = 1; k < data->features; ++k)
        count += (uint64_t)is_token(qn__element_number(data->type, item, k), tokens);
    return count;
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
    if (all_are_tokens(data, tokens))
        return QN_OK;
    for (uint64_t i = 0; i < data->items; ++i) {
        const size_t k = find_wrong(data, qn__data_item(data, i), tokens);
        if (k < data->features)
            return refuse(data, i, k, tokens, what, err);
    }
    return QN_OK;
}
