/* Bodies of requests for inference, version 2: the JSON, and the bytes after it. The first two
 * bytes of an input are the size of the JSON; 65535: there is none. What is accepted has as many
 * values as its shapes say, and every one of them can be read. */
#include "fuzz/fuzz.h"

#include "serve/inference/v2_message.h"

static void check_input(const qn__v2_input *in, const uint8_t *bytes, size_t size) {
    const size_t each = qn__v2_type_size(in->type);
    uint64_t count = 1;
    for (uint32_t i = 0; i < in->lengths; i++)
        count *= in->shape[i];
    FUZZ_MUST(count == in->count);
    FUZZ_MUST(in->own || (in->values >= bytes && in->values + in->bytes <= bytes + size));
    if (each > 0) {
        FUZZ_MUST(in->bytes == each * count);
        return;
    }
    size_t at = 0, length, sum = 0;
    for (uint64_t k = 0; k < count; k++) {
        const char *text = qn__v2_bytes_at(in, &at, &length);
        FUZZ_MUST(at <= in->bytes);
        for (size_t i = 0; i < length; i++)
            sum += (unsigned char)text[i]; /* read, so that the address sanitizer sees it */
    }
    FUZZ_MUST(at == in->bytes && sum <= 255 * in->bytes);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size) {
    qn__v2_ask ask;
    qn_error err = {0};
    char header[16];
    if (size < 2)
        return 0;
    const unsigned json = bytes[0] | (unsigned)bytes[1] << 8;
    snprintf(header, sizeof header, "%u", json);
    bytes += 2;
    size -= 2;
    const qn_status status =
        qn__v2_read((const char *)bytes, size, json < 65535 ? header : NULL, &ask, &err);
    if (status != QN_OK) {
        FUZZ_MUST(status == QN_INPUT || status == QN_MEMORY);
        FUZZ_MUST(err.what[0] && !ask.input && !ask.json);
        return 0;
    }
    FUZZ_MUST(ask.inputs > 0 && ask.outputs <= QN__V2_OUTPUTS);
    for (size_t i = 0; i < ask.inputs; i++)
        check_input(&ask.input[i], bytes, size);
    qn__v2_release(&ask);
    return 0;
}
