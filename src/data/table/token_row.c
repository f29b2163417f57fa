#include "data/table/token_row.h"
#include "data/table/part_reading.h"
#include <inttypes.h>
#include <stdio.h>

qn_status qn__token_row_check(uint64_t tokens, uint32_t context, const char *path, qn_error *err) {
    if (context == 0) {
        qn__fail(err, QN_INPUT, "the file is one row of %" PRIu64 " tokens", tokens);
        qn__at(err, "%s", path);
        return qn__remedy(err, QN_INPUT,
                          "say how many an item has with `data.context`, such as 256");
    }
    if (context == UINT32_MAX || tokens <= context) { /* `features` is one more */
        qn__fail(err, QN_INPUT,
                 "an item of the context %" PRIu32 " has %" PRIu64
                 " tokens, and there are %" PRIu64,
                 context, (uint64_t)context + 1, tokens);
        qn__at(err, "%s", path);
        return qn__remedy(err, QN_INPUT, "give a smaller `data.context`, or a longer text");
    }
    return QN_OK;
}

qn_status qn__token_row_note(uint64_t left, uint64_t tokens, qn_data *data, qn_error *err) {
    char note[160];
    if (left == 0)
        return QN_OK;
    snprintf(note, sizeof note,
             "the last %" PRIu64 " of %" PRIu64 " tokens do not fill an item, and are left out",
             left, tokens);
    return qn__data_add_note(data, note, err);
}

qn_status qn__token_row_cut(qn_data *data, uint32_t context, const char *path, qn_error *err) {
    const uint64_t tokens = data->items;
    if (data->part) { /* of the whole: it is cut when its length is known */
        data->part->is_row = 1;
        return QN_OK;
    }
    const qn_status status = qn__token_row_check(tokens, context, path, err);
    if (status != QN_OK)
        return status;
    data->items = (tokens - 1) / context;
    data->features = context + 1;
    data->context = context;
    return qn__token_row_note(tokens - 1 - data->items * context, tokens, data, err);
}

qn_status qn__token_row_refuse_labels(const char *path, qn_error *err) {
    qn__fail(err, QN_INPUT, "one row of tokens has neither labels nor weights");
    qn__at(err, "%s", path);
    return qn__remedy(err, QN_INPUT,
                      "give an array of items x positions, or leave labels and weights out");
}
