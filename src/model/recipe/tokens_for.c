#include "model/recipe/tokens_for.h"

#include <quern/tokenizer.h>
#include <string.h>

static uint32_t size_of(const char *text) {
    qn_tokenizer *tokenizer;
    if (qn_tokenizer_from_json(text, strlen(text), &tokenizer, NULL) != QN_OK)
        return 0;
    const uint32_t size = qn_tokenizer_size(tokenizer);
    qn_tokenizer_free(tokenizer);
    return size;
}

/* The largest number of the type is not a token. */
static uint32_t greatest(const qn_data *data) {
    const double none = data->type == QN_TOKENS16 ? UINT16_MAX : UINT32_MAX;
    double most = -1.0;
    for (uint64_t i = 0; i < data->items; ++i)
        for (uint32_t t = 0; t < data->features; ++t) {
            const double token = qn__data_number(data, i, t);
            most = token > most && token < none ? token : most;
        }
    return (uint32_t)(most + 1.0);
}

uint32_t qn__tokens_for(const qn_data *data) {
    const char *tokenizer = qn_data_tokenizer(data);
    if (tokenizer)
        return size_of(tokenizer);
    return data->type == QN_TOKENS16 || data->type == QN_TOKENS32 ? greatest(data) : 0;
}
