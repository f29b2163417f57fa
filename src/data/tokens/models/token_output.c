#include "data/tokens/models/token_kind.h"

#include <string.h>

void qn__token_write(qn__token_output *output, const char *bytes, size_t size) {
    if (output->size < output->capacity) {
        const size_t room = output->capacity - output->size;
        memcpy(output->text + output->size, bytes, size < room ? size : room);
    }
    output->size += size;
}

qn_status qn__token_json_wrong(qn_error *err, const char *what) {
    qn__fail(err, QN_FORMAT, "%s", what);
    return qn__remedy(err, QN_FORMAT, "use the text that the tokenizer gave, unchanged");
}
