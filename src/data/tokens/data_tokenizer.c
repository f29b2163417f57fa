#include "data/tokens/data_tokenizer.h"

#include "base/memory.h"
#include "data/tokens/tokenizer.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What stands after the colon of the tokenizer that the user names; NULL: nothing. */
static const char *after_colon(const qn_data_options *o) {
    const char *colon = o->tokens == o->expected_tokens ? NULL : strchr(o->tokens, ':');
    return colon ? colon + 1 : NULL;
}

static int is_number(const char *text) { return text[strspn(text, "0123456789")] == '\0'; }

int qn__data_tokenizer_learns(const qn_data_options *o) {
    return o->tokens && !o->expected_tokenizer && qn__tokenizer_learns(o->tokens);
}

/* The tokenizer of a model, or the one that the options name. */
static qn_status make(const qn__learned_from *from, const qn_data_options *o,
                      const qn__part_reading *part, qn_tokenizer **out, qn_error *err) {
    const char *known = o->expected_tokenizer, *after = after_colon(o);
    /* A file that the user names is compared with the model's; what would be learned is not. */
    if (known && (!after || is_number(after)))
        return qn_tokenizer_from_json(known, strlen(known), out, err);
    const uint32_t threads = (uint32_t)o->threads, count = (uint32_t)from->count;
    return from->path ? qn__tokenizer_open(o->tokens, from->path, count, threads, part, out, err)
                      : qn__tokenizer_learn(o->tokens, from->text, count, threads, part, out, err);
}

/* A number of tokens to learn, where a model has learned them. */
static qn_status note_size(const qn_tokenizer *t, const qn_data_options *o, qn_data *data,
                           qn_error *err) {
    const char *after = after_colon(o);
    const uint32_t size = qn_tokenizer_size(t);
    char note[160];
    if (!o->expected_tokenizer || !after || !is_number(after) || strtoull(after, NULL, 10) == size)
        return QN_OK;
    snprintf(note, sizeof note,
             "the tokenizer is that of the model, with %u tokens: \"%.40s\" learns no other",
             (unsigned)size, o->tokens);
    return qn__data_add_note(data, note, err);
}

static qn_status check(const qn_tokenizer *t, const qn_data_options *o, qn_data *data,
                       qn_error *err) {
    snprintf(data->tokens, sizeof data->tokens, "%.16s %s", qn_tokenizer_kind(t),
             qn_tokenizer_digest(t));
    if (o->expected_tokenizer && o->expected_tokens &&
        !qn__tokens_are_alike(o->expected_tokens, data->tokens)) {
        qn__fail(err, QN_USAGE, "the tokenizer is not that of the model");
        return qn__remedy(err, QN_USAGE, "leave `data.tokens` out: the model has its tokenizer");
    }
    data->tokenizer = qn__copy_text(qn_tokenizer_json(t, NULL), err);
    return data->tokenizer ? note_size(t, o, data, err) : QN_MEMORY;
}

qn_status qn__data_tokenizer(const qn__learned_from *from, const qn_data_options *o, qn_data *data,
                             qn_tokenizer **out, qn_error *err) {
    *out = NULL;
    qn_status status = make(from, o, data->part, out, err);
    if (status == QN_OK)
        status = check(*out, o, data, err);
    /* The largest number of a type is not a token. */
    data->type = qn_tokenizer_size(*out) <= UINT16_MAX ? QN_TOKENS16 : QN_TOKENS32;
    return status;
}
