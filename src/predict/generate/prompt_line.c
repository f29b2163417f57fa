#include "predict/generate/prompt_line.h"

#include "base/memory.h"
#include "base/text/json.h"
#include "base/text/text.h"
#include <string.h>

static const char *const usual_remedy =
    "a line is {\"prompt\": \"Once\"}, or with a chat {\"messages\": [{\"role\": \"user\", "
    "\"content\": \"Hi\"}]}; \"tokens\", \"seed\" and keys of your own may stand beside it";

static qn_status refuse(uint32_t index, const char *what, qn_error *err) {
    qn__fail(err, QN_INPUT, "%s", what);
    qn__at(err, "prompt %u", index);
    return qn__remedy(err, QN_INPUT, "%s", usual_remedy);
}

static qn_status add_message(const qn__json_node *message, const char *chat, uint32_t index,
                             qn__text *to, qn_error *err) {
    const char *role = qn__json_string(qn__json_get(message, "role"));
    const char *content = qn__json_string(qn__json_get(message, "content"));
    if (!role || !content)
        return refuse(index, "a message lacks its role or its content", err);
    qn__codec_add_message(chat, role, content, to);
    return QN_OK;
}

static qn_status write_messages(const qn__json_node *messages, const qn_generate_options *o,
                                uint32_t index, qn__text *to, qn_error *err) {
    qn_status status = QN_OK;
    const qn__json_node *first = qn__json_at(messages, 0);
    const char *role = qn__json_string(qn__json_get(first, "role"));
    if (!o->chat)
        return refuse(index,
                      "the line has messages, and `generate.chat` does not say how they "
                      "are written",
                      err);
    if (!qn__json_is_array(messages) || qn__json_count(messages) == 0)
        return refuse(index, "the messages are not a list with at least one", err);
    qn__codec_begin_chat(o->chat, to);
    if (o->system && !(role && strcmp(role, "system") == 0))
        qn__codec_add_message(o->chat, "system", o->system, to);
    for (size_t i = 0; status == QN_OK && i < qn__json_count(messages); ++i)
        status = add_message(qn__json_at(messages, i), o->chat, index, to, err);
    qn__codec_end_chat(o->chat, to);
    return status;
}

static qn_status write_text(const qn__json_node *root, const qn_generate_options *o, uint32_t index,
                            qn__text *to, qn_error *err) {
    const qn__json_node *messages = qn__json_get(root, "messages");
    const qn__json_node *prompt = qn__json_get(root, "prompt");
    if (!qn__json_is_object(root) || !messages == !prompt)
        return refuse(index, "the line is not an object with either \"prompt\" or \"messages\"",
                      err);
    if (messages)
        return write_messages(messages, o, index, to, err);
    if (!qn__json_string(prompt))
        return refuse(index, "the prompt of the line is not a text", err);
    if (o->chat)
        qn__codec_write_chat(o->chat, qn__json_string(prompt), o->system, to);
    else
        qn__text_add(to, "%s", qn__json_string(prompt));
    return QN_OK;
}

/* Options of the line itself. */
static qn_status read_options(const qn__json_node *root, const qn_generate_options *o,
                              uint32_t index, qn__prompt_line *out, qn_error *err) {
    const qn__json_node *tokens = qn__json_get(root, "tokens"), *seed = qn__json_get(root, "seed");
    uint64_t count = o->tokens;
    out->seed = o->seed;
    if (tokens && (!qn__json_u64(tokens, &count) || count < 1 || count > QN__GENERATE_TOKENS))
        return refuse(index, "\"tokens\" of the line is not a whole number from 1 to 16777216",
                      err);
    if (seed && !qn__json_u64(seed, &out->seed))
        return refuse(index, "\"seed\" of the line is not a whole number", err);
    out->tokens = (uint32_t)count;
    return QN_OK;
}

qn_status qn__prompt_line_read(const char *line, uint32_t index, const qn_generate_options *options,
                               qn__prompt_line *out, qn_error *err) {
    qn__json *json = NULL;
    qn__text text = {0};
    *out = (qn__prompt_line){0};
    qn_status status = qn__json_parse(line, strlen(line), &json, err);
    if (status == QN_FORMAT) {
        qn__at(err, "prompt %u", index);
        status = qn__remedy(err, QN_FORMAT, "%s", usual_remedy);
    }
    const qn__json_node *root = status == QN_OK ? qn__json_root(json) : NULL;
    if (status == QN_OK)
        status = write_text(root, options, index, &text, err);
    if (status == QN_OK)
        status = read_options(root, options, index, out, err);
    if (status == QN_OK) {
        qn__text_add(&text, "%s", ""); /* also an empty prompt is a text */
        out->text = qn__text_take(&text, err);
        status = out->text ? QN_OK : QN_MEMORY;
    } else {
        qn__text_release(&text);
    }
    qn__json_free(json);
    return status;
}
