#include "data/tokens/token_lengths.h"

#include "base/memory.h"
#include "data/tokens/tokenizer.h"
#include <string.h>

static qn_status fill(const qn_tokenizer *t, qn__token_lengths *out, qn_error *err) {
    const uint32_t size = qn_tokenizer_size(t);
    qn__token_ids end = {0};
    qn_status status = qn__token_end_of_text(t, &end, err);
    if (status == QN_OK)
        out->bytes = qn__alloc(size, sizeof *out->bytes, err);
    if (!out->bytes)
        status = status == QN_OK ? QN_MEMORY : status;
    for (uint32_t k = 0; status == QN_OK && k < size; k++) {
        const uint32_t twice[2] = {k, k};
        size_t bytes = 0, both = 0;
        status = qn_tokenizer_decode(t, twice, 1, NULL, 0, &bytes, err);
        if (status == QN_OK)
            status = qn_tokenizer_decode(t, twice, 2, NULL, 0, &both, err);
        out->bytes[k] = (uint32_t)(both - bytes); /* the first one may lose a space */
    }
    if (status == QN_OK && end.count)
        out->bytes[end.number[0]] = 0;
    out->count = size;
    out->unknown = qn_tokenizer_unknown(t);
    qn__token_ids_release(&end);
    return status;
}

qn_status qn__token_lengths_of(const char *json, qn__token_lengths *out, qn_error *err) {
    qn_tokenizer *t = NULL;
    *out = (qn__token_lengths){0};
    qn_status status = qn_tokenizer_from_json(json, strlen(json), &t, err);
    if (status == QN_OK && t->kind->keeps_bytes)
        status = fill(t, out, err);
    qn_tokenizer_free(t);
    return status;
}

void qn__token_lengths_release(qn__token_lengths *lengths) {
    qn__free(lengths->bytes);
    *lengths = (qn__token_lengths){0};
}
