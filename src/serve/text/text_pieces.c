#include "serve/text/text_pieces.h"

#include "base/encoding.h"
#include "base/memory.h"
#include <string.h>

static size_t characters_of(const char *bytes, size_t size) {
    size_t count = 0;
    for (size_t i = 0; i < size; ++i)
        count += ((uint8_t)bytes[i] & 0xC0) != 0x80;
    return count;
}

static void add_logprob(qn__text *to, float value) {
    char text[32];
    qn__float_text(value, text);
    qn__text_add(to, "%s", text);
}

/* The text of a token; one that is a part of a character has its bytes: "bytes:\xe2\x80". */
typedef struct token_text {
    char *bytes;
    size_t size;
} token_text;

static token_text text_of(const qn__texts *texts, const qn_answer *a, uint32_t place,
                          uint32_t token) {
    token_text own = {0};
    /* The tokens of the prompt and those of the answer follow one another. */
    if (qn__texts_piece(texts, a->prompt_tokens, a->prompt_count + place, token, &own.bytes,
                        &own.size, NULL) != QN_OK)
        own = (token_text){0};
    return own;
}

static void add_token_text(qn__text *to, const token_text *t) {
    const int whole =
        t->bytes && strlen(t->bytes) == t->size && !t->bytes[qn__utf8_prefix(t->bytes)];
    if (whole) {
        qn__text_add_json(to, t->bytes);
        return;
    }
    qn__text_add(to, "\"bytes:");
    for (size_t i = 0; t->bytes && i < t->size; ++i)
        qn__text_add(to, "\\\\x%02x", (uint8_t)t->bytes[i]);
    qn__text_add(to, "\"");
}

static void add_token_bytes(qn__text *to, const token_text *t) {
    qn__text_add(to, ", \"bytes\": [");
    for (size_t i = 0; t->bytes && i < t->size; ++i)
        qn__text_add(to, "%s%u", i > 0 ? ", " : "", (uint8_t)t->bytes[i]);
    qn__text_add(to, "]");
}

/* --------------------------------------------------------------------------------- probabilities
 */

static void add_chat_token(const qn__texts *texts, const qn_answer *a, uint32_t place,
                           const qn__text_choice *choice, qn__text *to) {
    const token_text own = text_of(texts, a, place, choice->token);
    qn__text_add(to, "{\"token\": ");
    add_token_text(to, &own);
    qn__text_add(to, ", \"logprob\": ");
    add_logprob(to, choice->log_probability);
    add_token_bytes(to, &own);
    qn__free(own.bytes);
}

static void add_chat_logprobs(const qn__texts *texts, const qn__ask *ask, const qn__text_news *news,
                              uint32_t from, qn__text *to) {
    const qn_answer *a = news->answer;
    qn__text_add(to, "{\"content\": [");
    for (uint32_t i = from; i < a->count; ++i) {
        const qn__text_choice *choices = news->choices + (size_t)i * ask->choices;
        qn__text_add(to, "%s", i > from ? ", " : "");
        add_chat_token(texts, a, i, &(qn__text_choice){a->tokens[i], a->log_probabilities[i]}, to);
        qn__text_add(to, ", \"top_logprobs\": [");
        for (uint32_t c = 0; c < ask->choices && choices[c].token != QN__NO_TOKEN; ++c) {
            qn__text_add(to, "%s", c > 0 ? ", " : "");
            add_chat_token(texts, a, i, &choices[c], to);
            qn__text_add(to, "}");
        }
        qn__text_add(to, "]}");
    }
    qn__text_add(to, "], \"refusal\": null}");
}

/* The most probable tokens of a place, and the one that was drawn. */
static void add_top(const qn__texts *texts, const qn__ask *ask, const qn__text_news *news,
                    uint32_t place, qn__text *to) {
    const qn_answer *a = news->answer;
    const qn__text_choice *choices = news->choices + (size_t)place * ask->choices;
    int has_own = 0;
    qn__text_add(to, "{");
    for (uint32_t c = 0; c <= ask->choices; ++c) {
        const qn__text_choice own =
            c < ask->choices ? choices[c]
                             : (qn__text_choice){a->tokens[place], a->log_probabilities[place]};
        if (own.token == QN__NO_TOKEN || (c == ask->choices && has_own))
            continue;
        has_own |= own.token == a->tokens[place];
        const token_text text = text_of(texts, a, place, own.token);
        qn__text_add(to, "%s", c > 0 ? ", " : "");
        add_token_text(to, &text);
        qn__text_add(to, ": ");
        add_logprob(to, own.log_probability);
        qn__free(text.bytes);
    }
    qn__text_add(to, "}");
}

static void add_completion_logprobs(const qn__texts *texts, const qn__ask *ask,
                                    const qn__text_news *news, const qn__written *from,
                                    qn__text *to) {
    const qn_answer *a = news->answer;
    size_t at = from->characters;
    qn__text offsets = {0};
    qn__text_add(to, "{\"tokens\": [");
    for (uint32_t i = from->tokens; i < a->count; ++i) {
        const token_text own = text_of(texts, a, i, a->tokens[i]);
        qn__text_add(to, "%s", i > from->tokens ? ", " : "");
        add_token_text(to, &own);
        qn__text_add(&offsets, "%s%zu", i > from->tokens ? ", " : "", at);
        at += characters_of(own.bytes, own.size);
        qn__free(own.bytes);
    }
    qn__text_add(to, "], \"token_logprobs\": [");
    for (uint32_t i = from->tokens; i < a->count; ++i) {
        qn__text_add(to, "%s", i > from->tokens ? ", " : "");
        add_logprob(to, a->log_probabilities[i]);
    }
    qn__text_add(to, "], \"top_logprobs\": ");
    for (uint32_t i = from->tokens; ask->choices && i < a->count; ++i) {
        qn__text_add(to, "%s", i > from->tokens ? ", " : "[");
        add_top(texts, ask, news, i, to);
    }
    qn__text_add(to, "%s, \"text_offset\": [%s]}",
                 !ask->choices             ? "null"
                 : a->count > from->tokens ? "]"
                                           : "[]",
                 offsets.data ? offsets.data : "");
    qn__text_release(&offsets);
}

static void add_logprobs(const qn__texts *texts, const qn__ask *ask, const qn__text_news *news,
                         const qn__written *from, qn__text *to) {
    if (!ask->options.log_probabilities)
        qn__text_add(to, "null");
    else if (ask->kind == QN__ASK_CHAT)
        add_chat_logprobs(texts, ask, news, from->tokens, to);
    else
        add_completion_logprobs(texts, ask, news, from, to);
}

/* -------------------------------------------------------------------------------------- choices
 */

/* Bytes as a text. A zero byte becomes U+FFFD, as other bytes that are not UTF-8 do later. */
static void add_raw(qn__text *to, const char *bytes, size_t size) {
    for (size_t at = 0; at < size; ++at) {
        const size_t length = strnlen(bytes + at, size - at);
        qn__text_add_bytes(to, bytes + at, length);
        at += length;
        if (at < size)
            qn__text_add(to, "\xEF\xBF\xBD");
    }
}

static void add_text(const char *before, const qn_answer *a, const qn__written *from,
                     qn__text *to) {
    qn__text text = {0};
    qn__text_add(&text, "%s", before);
    add_raw(&text, a->text + from->bytes, a->bytes - from->bytes);
    qn__text_add_json(to, text.data ? text.data : "");
    to->failed |= text.failed;
    qn__text_release(&text);
}

static void add_chat_text(const qn_answer *a, int stream, const qn__written *from, qn__text *to) {
    qn__text_add(to, "\"%s\": {%s\"content\": ", stream ? "delta" : "message",
                 from->tokens == 0 ? "\"role\": \"assistant\", " : "");
    add_text("", a, from, to);
    qn__text_add(to, "%s}", stream ? "" : ", \"refusal\": null");
}

/* The first part of a completion may begin with the prompt. */
static void add_completion_text(const qn__ask *ask, const qn_answer *a, const qn__written *from,
                                qn__text *to) {
    qn__text_add(to, "\"text\": ");
    add_text(ask->echo && from->tokens == 0 ? ask->prompt[a->prompt].text : "", a, from, to);
}

void qn__pieces_add_choice(const qn__texts *texts, const qn__ask *ask, const qn__text_news *news,
                           int stream, qn__written *written, qn__text *to) {
    const qn_answer *a = news->answer;
    qn__text_add(to, "{\"index\": %u, ", a->prompt * ask->options.answers + a->number);
    if (ask->kind == QN__ASK_CHAT)
        add_chat_text(a, stream, written, to);
    else
        add_completion_text(ask, a, written, to);
    qn__text_add(to, ", \"logprobs\": ");
    add_logprobs(texts, ask, news, written, to);
    qn__text_add(to, ", \"finish_reason\": %s}",
                 a->end == QN_ANSWER_GOES_ON  ? "null"
                 : a->end == QN_ANSWER_LENGTH ? "\"length\""
                                              : "\"stop\"");
    written->characters += characters_of(a->text + written->bytes, a->bytes - written->bytes);
    written->bytes = a->bytes;
    written->tokens = a->count;
}
