/* Texts of tokenizers: qn_tokenizer_from_json. What is accepted gives its text again, and encodes
 * this text with numbers in its vocabulary. */
#include "fuzz/fuzz.h"

#include <quern/tokenizer.h>

static void check_tokens(const qn_tokenizer *t, const uint8_t *bytes, size_t size) {
    qn_tokens *tokens;
    qn_error err = {0};
    size_t length;
    const qn_status status = qn_tokenizer_encode(t, bytes, size, 1, &tokens, &err);
    if (status != QN_OK) {
        FUZZ_MUST(status == QN_INPUT || status == QN_MEMORY);
        return;
    }
    const uint64_t count = qn_tokens_count(tokens);
    const uint32_t *numbers = qn_tokens_numbers(tokens);
    for (uint64_t k = 0; k < count; k++)
        FUZZ_MUST(numbers[k] < qn_tokenizer_size(t));
    FUZZ_MUST(qn_tokenizer_decode(t, numbers, count, NULL, 0, &length, &err) == QN_OK);
    qn_tokens_free(tokens);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size) {
    qn_tokenizer *t, *again;
    qn_error err = {0};
    const qn_status status = qn_tokenizer_from_json((const char *)bytes, size, &t, &err);
    if (status != QN_OK) {
        FUZZ_MUST(t == NULL && err.what[0]);
        FUZZ_MUST(status == QN_FORMAT || status == QN_UNSUPPORTED || status == QN_MEMORY);
        return 0;
    }
    size_t length;
    const char *json = qn_tokenizer_json(t, &length);
    FUZZ_MUST(qn_tokenizer_from_json(json, length, &again, &err) == QN_OK);
    FUZZ_MUST(strcmp(qn_tokenizer_json(again, NULL), json) == 0);
    check_tokens(t, bytes, size < 4096 ? size : 4096);
    qn_tokenizer_free(again);
    qn_tokenizer_free(t);
    return 0;
}
