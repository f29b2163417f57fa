#include "predict/generate/codec.h"

#include "base/encoding.h"
#include "base/memory.h"
#include "base/text/character.h"
#include "base/text/text.h"
#include <stdio.h>
#include <string.h>

/* How a conversation is written: docs/exactness.md 25.71. A message is open, who says it, middle,
 * what is said, close. */
typedef struct chat_kind {
    const char *name, *begin, *open, *middle, *close;
} chat_kind;

static const chat_kind chats[] = {
    {"chatml", "", "<|im_start|>", "\n", "<|im_end|>\n"},
    {"llama3", "<|begin_of_text|>", "<|start_header_id|>", "<|end_header_id|>\n\n", "<|eot_id|>"},
};
enum { CHATS = sizeof chats / sizeof *chats };

/* Tokens that end a text, where the tokenizer has them. */
static const char *const endings[] = {"<|endoftext|>", "<|end_of_text|>", "</s>", "<|im_end|>",
                                      "<|eot_id|>"};
enum { BETWEEN = 3 }; /* those of 25.44 */

static const chat_kind *chat_of(const char *name) {
    for (size_t i = 0; i < CHATS; ++i)
        if (strcmp(chats[i].name, name) == 0)
            return &chats[i];
    return NULL;
}

int qn__codec_has_chat(const char *name) { return chat_of(name) != NULL; }

/* The tokens of a text; numbers for qn__free. */
static qn_status encode(const qn_tokenizer *tokenizer, const char *text, uint32_t **tokens,
                        uint64_t *count, qn_error *err) {
    qn_tokens *own = NULL;
    const qn_status status = qn_tokenizer_encode(tokenizer, text, strlen(text), 1, &own, err);
    *tokens = NULL;
    if (status != QN_OK)
        return status;
    *count = qn_tokens_count(own);
    *tokens = qn__alloc(*count + 1, sizeof **tokens, err);
    if (*tokens && *count)
        memcpy(*tokens, qn_tokens_numbers(own), *count * sizeof **tokens);
    qn_tokens_free(own);
    return *tokens ? QN_OK : QN_MEMORY;
}

/* The one token of a text that the network has, too; UINT32_MAX: there is none. */
static qn_status find_mark(const qn__codec *c, const char *text, uint32_t *token, qn_error *err) {
    uint32_t *tokens;
    uint64_t count;
    const qn_status status = encode(c->tokenizer, text, &tokens, &count, err);
    if (status == QN_OK)
        *token = count == 1 && tokens[0] < c->vocabulary ? tokens[0] : UINT32_MAX;
    qn__free(tokens);
    return status;
}

static qn_status find_marks(qn__codec *c, qn_error *err) {
    uint32_t token;
    if (strcmp(qn_tokenizer_kind(c->tokenizer), "bpe") != 0)
        return QN_OK;
    for (size_t i = 0; i < sizeof endings / sizeof *endings; ++i) {
        const qn_status status = find_mark(c, endings[i], &token, err);
        if (status != QN_OK)
            return status;
        if (token == UINT32_MAX)
            continue;
        c->begins |= i < BETWEEN;
        c->end[c->ends++] = token;
    }
    for (size_t i = CHATS; i-- > 0;) {
        const qn_status status = find_mark(c, chats[i].open, &token, err);
        if (status != QN_OK)
            return status;
        c->chat = token != UINT32_MAX ? chats[i].name : c->chat;
    }
    return QN_OK;
}

qn_status qn__codec_open(const qn_model *model, qn__codec *c, qn_error *err) {
    *c = (qn__codec){.vocabulary = qn__recipe_vocabulary(qn__model_recipe_of(model))};
    if (!model->tokenizer)
        return QN_OK;
    const qn_status status =
        qn_tokenizer_from_json(model->tokenizer, strlen(model->tokenizer), &c->tokenizer, err);
    return status == QN_OK ? find_marks(c, err) : status;
}

void qn__codec_close(qn__codec *c) { qn_tokenizer_free(c->tokenizer); }

int qn__codec_is_end(const qn__codec *c, uint32_t token) {
    for (uint32_t i = 0; i < c->ends; ++i)
        if (c->end[i] == token)
            return 1;
    return 0;
}

/* ---------------------------------------------------------------------------------------- prompts
 */

static qn_status refuse(uint32_t index, const char *what, const char *remedy, qn_error *err) {
    qn__fail(err, QN_INPUT, "%s", what);
    qn__at(err, "prompt %u", index);
    return qn__remedy(err, QN_INPUT, "%s", remedy);
}

/* Numbers with spaces, or commas, between. */
static qn_status read_numbers(const qn__codec *c, const char *text, uint32_t index,
                              uint32_t **tokens, uint64_t *count, qn_error *err) {
    static const char between[] = " ,\t\r\n";
    char what[120];
    *count = 0;
    *tokens = qn__alloc(strlen(text) / 2 + 2, sizeof **tokens, err);
    if (!*tokens)
        return QN_MEMORY;
    for (text += strspn(text, between); *text; text += strspn(text, between)) {
        const size_t size = strcspn(text, between);
        uint64_t value;
        if (!qn__parse_u64(text, size, &value) || value >= c->vocabulary) {
            snprintf(what, sizeof what, "\"%.*s\" is not the number of a token below %u",
                     size > 40 ? 40 : (int)size, text, c->vocabulary);
            return refuse(index, what,
                          "the model was trained on numbers of tokens: give such numbers with "
                          "spaces between",
                          err);
        }
        (*tokens)[(*count)++] = (uint32_t)value;
        text += size;
    }
    return QN_OK;
}

/* The first character of a prompt that the vocabulary of characters lacks. */
static qn_status refuse_unknown(const qn__codec *c, const char *prompt, uint32_t index,
                                const uint32_t *tokens, uint64_t count, qn_error *err) {
    const uint32_t unknown = qn_tokenizer_unknown(c->tokenizer);
    size_t at = 0, length = 0, size = strlen(prompt);
    uint64_t i = 0;
    char what[100];
    if (strcmp(qn_tokenizer_kind(c->tokenizer), "chars") != 0)
        return QN_OK;
    for (; i < count && at < size; ++i, at += length) {
        qn__character((const uint8_t *)prompt + at, size - at, &length);
        if (tokens[i] == unknown)
            break;
    }
    if (i == count)
        return QN_OK;
    snprintf(what, sizeof what, "the model has never seen the character \"%.*s\"", (int)length,
             prompt + at);
    return refuse(index, what,
                  "write the prompt with characters of the text that the model was trained on",
                  err);
}

/* Whether all tokens are in the vocabulary of the network. */
static qn_status check_tokens(const qn__codec *c, uint32_t index, const uint32_t *tokens,
                              uint64_t count, qn_error *err) {
    for (uint64_t i = 0; i < count; ++i)
        if (tokens[i] >= c->vocabulary)
            return refuse(index, "the prompt has a token that the network lacks",
                          "write it without marks that the model was not trained on", err);
    return count < UINT32_MAX / 2
               ? QN_OK
               : refuse(index, "the prompt is too long", "give at most 2147483646 tokens", err);
}

void qn__codec_begin_chat(const char *chat, qn__text *to) {
    qn__text_add(to, "%s", chat_of(chat)->begin);
}

void qn__codec_add_message(const char *chat, const char *role, const char *content, qn__text *to) {
    const chat_kind *own = chat_of(chat);
    qn__text_add(to, "%s%s%s%s%s", own->open, role, own->middle, content, own->close);
}

void qn__codec_end_chat(const char *chat, qn__text *to) {
    const chat_kind *own = chat_of(chat);
    qn__text_add(to, "%sassistant%s", own->open, own->middle);
}

void qn__codec_write_chat(const char *chat, const char *prompt, const char *system, qn__text *to) {
    qn__codec_begin_chat(chat, to);
    if (system)
        qn__codec_add_message(chat, "system", system, to);
    qn__codec_add_message(chat, "user", prompt, to);
    qn__codec_end_chat(chat, to);
}

static qn_status encode_text(const qn__codec *c, const char *prompt, uint32_t index,
                             const char *chat, const char *system, uint32_t **tokens,
                             uint64_t *count, qn_error *err) {
    qn__text text = {0};
    if (chat)
        qn__codec_write_chat(chat, prompt, system, &text);
    char *written = chat ? qn__text_take(&text, err) : NULL;
    if (chat && !written)
        return QN_MEMORY;
    qn_status status = encode(c->tokenizer, written ? written : prompt, tokens, count, err);
    if (status == QN_OK)
        status = refuse_unknown(c, written ? written : prompt, index, *tokens, *count, err);
    qn__free(written);
    return status;
}

/* Checks the `all` tokens of a prompt; an empty one may become a token. */
static qn_status finish_prompt(const qn__codec *c, uint32_t index, uint64_t all, uint32_t **tokens,
                               uint32_t *count, qn_status status, qn_error *err) {
    if (status == QN_OK && all == 0 && c->begins)
        (*tokens)[all++] = c->end[0];
    if (status == QN_OK && all == 0)
        status = refuse(index, "the prompt is empty", "give a text for the model to continue", err);
    if (status == QN_OK)
        status = check_tokens(c, index, *tokens, all, err);
    *count = (uint32_t)all;
    if (status != QN_OK) {
        qn__free(*tokens);
        *tokens = NULL;
    }
    return status;
}

qn_status qn__codec_encode(const qn__codec *c, const char *prompt, uint32_t index, const char *chat,
                           const char *system, uint32_t **tokens, uint32_t *count, qn_error *err) {
    uint64_t all = 0;
    *tokens = NULL;
    const size_t good = qn__utf8_prefix(prompt);
    if (prompt[good]) {
        char what[64];
        snprintf(what, sizeof what, "the prompt is not UTF-8 from byte %zu on", good);
        return refuse(index, what, "convert it, as with: iconv -f latin1 -t utf-8 OLD > NEW", err);
    }
    const qn_status status = c->tokenizer
                                 ? encode_text(c, prompt, index, chat, system, tokens, &all, err)
                                 : read_numbers(c, prompt, index, tokens, &all, err);
    return finish_prompt(c, index, all, tokens, count, status, err);
}

qn_status qn__codec_take(const qn__codec *c, const uint32_t *from, uint32_t size, uint32_t index,
                         uint32_t **tokens, uint32_t *count, qn_error *err) {
    *tokens = qn__alloc((uint64_t)size + 1, sizeof **tokens, err);
    if (*tokens && size)
        memcpy(*tokens, from, size * sizeof *from);
    return finish_prompt(c, index, size, tokens, count, *tokens ? QN_OK : QN_MEMORY, err);
}

/* ---------------------------------------------------------------------------------------- answers
 */

static qn_status write_number(uint32_t token, int is_first, char **out, size_t *size,
                              qn_error *err) {
    qn__text text = {0};
    qn__text_add(&text, "%s%u", is_first ? "" : " ", token);
    *size = text.size;
    *out = qn__text_take(&text, err);
    return *out ? QN_OK : QN_MEMORY;
}

/* Decoding may join a token to the one before, whose end may be different where it is the last one,
 * and the first one may lose a space. So a token has its text among two others. */
enum { JOINED = 3 };

qn_status qn__codec_last(const qn__codec *c, const uint32_t *tokens, uint32_t prompt,
                         uint32_t count, char **text, size_t *size, qn_error *err) {
    const uint32_t joined = count < JOINED ? count : JOINED;
    const uint32_t *from = tokens + count - joined;
    size_t before = 0, all = 0;
    *text = NULL;
    if (!c->tokenizer)
        return write_number(tokens[count - 1], count == prompt + 1, text, size, err);
    qn_status status = qn_tokenizer_decode(c->tokenizer, from, joined - 1, NULL, 0, &before, err);
    if (status == QN_OK)
        status = qn_tokenizer_decode(c->tokenizer, from, joined, NULL, 0, &all, err);
    if (status == QN_OK && !(*text = qn__alloc(all + 1, 1, err)))
        status = QN_MEMORY;
    if (status != QN_OK)
        return status;
    *size = all - before;
    status = qn_tokenizer_decode(c->tokenizer, from, joined, *text, all, &all, err);
    memmove(*text, *text + before, *size + 1);
    return status;
}
