/* A token is a byte (docs/exactness.md 25.51). */

#include "data/tokens/models/token_kind.h"

enum { BYTES = 256 };

static qn_status read(const qn__json_node *root, void **state, qn_error *err) {
    if (qn__json_count(root) != 1)
        return qn__token_json_wrong(err, "\"bytes\" has members that it does not need");
    (void)state;
    return QN_OK;
}

static void write(const void *state, const qn__token_frame *frame, qn__text *json) {
    (void)frame, (void)state;
    qn__text_add(json, "{\"kind\": \"bytes\"}");
}

static uint32_t size_of(const void *state) {
    (void)state;
    return BYTES;
}

static size_t cut(const void *state, const uint8_t *text, size_t size, size_t at) {
    (void)state, (void)text, (void)size;
    return at;
}

static qn_status encode(const void *state, void *worker, const uint8_t *text, size_t size,
                        int goes_on, qn__token_ids *ids, qn_error *err) {
    (void)goes_on;
    (void)state, (void)worker;
    const qn_status status = qn__token_ids_reserve(ids, size, err);
    for (size_t k = 0; status == QN_OK && k < size; k++)
        qn__token_ids_add(ids, text[k]);
    return status;
}

static void decode(const void *state, const uint32_t *tokens, uint64_t count,
                   qn__token_output *output) {
    (void)state;
    for (uint64_t k = 0; k < count; k++) {
        const char byte = (char)tokens[k];
        qn__token_write(output, &byte, 1);
    }
}

const qn__token_kind qn__token_bytes_kind = {.name = "bytes",
                                             .keeps_bytes = 1,
                                             .read = read,
                                             .write = write,
                                             .size = size_of,
                                             .unknown = size_of,
                                             .cut = cut,
                                             .encode = encode,
                                             .decode = decode};
