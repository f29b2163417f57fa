#include "serve/text/text_ask.h"

#include "base/memory.h"
#include "base/text/text.h"
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { BOTH = QN__ASK_COMPLETION | QN__ASK_CHAT, ALL = BOTH | QN__ASK_EMBEDDING };
enum { FEW_TOKENS = 16, BAD_REQUEST = 400 };
enum { MOST_OF_COMPLETION = 5, MOST_OF_CHAT = 20 }; /* log-probabilities of other tokens */

typedef const qn__json_node node;

/* A field of the body. A value null is as if the field were not there. */
typedef struct ask_field {
    const char *name;
    unsigned kinds;
    int (*read)(node *value, qn__ask *ask, qn__ask_refusal *no); /* NULL: it changes nothing */
} ask_field;

__attribute__((format(printf, 2, 3))) static int refuse_field(qn__ask_refusal *no,
                                                              const char *format, ...) {
    va_list list;
    va_start(list, format);
    vsnprintf(no->message, sizeof no->message, format, list);
    va_end(list);
    no->status = BAD_REQUEST;
    return 0;
}

static int refuse_memory(qn__ask_refusal *no) {
    refuse_field(no, "there is not enough memory");
    no->status = 503;
    return 0;
}

/* --------------------------------------------------------------------------------------- simple
 * ones
 */

static int is_truth(node *value, int *to) {
    *to = qn__json_is_true(value);
    return *to || (!qn__json_string(value) && !qn__json_digits(value) && !qn__json_is_null(value) &&
                   !qn__json_is_object(value) && !qn__json_is_array(value));
}

static int read_truth(node *value, int *to, qn__ask_refusal *no) {
    return is_truth(value, to) || refuse_field(no, "it is neither true nor false");
}

static int read_count(node *value, uint64_t least, uint64_t most, uint32_t *to,
                      qn__ask_refusal *no) {
    uint64_t count;
    if (!qn__json_u64(value, &count) || count < least || count > most)
        return refuse_field(no, "it is not a whole number from %llu to %llu",
                            (unsigned long long)least, (unsigned long long)most);
    *to = (uint32_t)count;
    return 1;
}

static int read_number(node *value, float *to, qn__ask_refusal *no) {
    return qn__json_float(value, to) || refuse_field(no, "it is not a number");
}

static int read_model(node *value, qn__ask *ask, qn__ask_refusal *no) {
    ask->model = qn__json_string(value);
    return ask->model || refuse_field(no, "it is not a text");
}

static int read_most(node *value, qn__ask *ask, qn__ask_refusal *no) {
    if (ask->tokens_field)
        return refuse_field(no, "it is given beside \"%s\"", ask->tokens_field);
    ask->tokens_field = qn__json_key(value);
    return read_count(value, 1, 1 << 24, &ask->options.tokens, no);
}

static int read_answers(node *value, qn__ask *ask, qn__ask_refusal *no) {
    return read_count(value, 1, 128, &ask->options.answers, no);
}

static int read_temperature(node *value, qn__ask *ask, qn__ask_refusal *no) {
    return read_number(value, &ask->options.temperature, no);
}

static int read_top_p(node *value, qn__ask *ask, qn__ask_refusal *no) {
    return read_number(value, &ask->options.top_p, no);
}

static int read_top_k(node *value, qn__ask *ask, qn__ask_refusal *no) {
    const char *digits = qn__json_digits(value);
    if (digits && strcmp(digits, "-1") == 0) /* all, as others write it */
        return 1;
    return read_count(value, 0, UINT32_MAX, &ask->options.top_k, no);
}

static int read_repetition(node *value, qn__ask *ask, qn__ask_refusal *no) {
    return read_number(value, &ask->options.repetition, no);
}

static int read_seed(node *value, qn__ask *ask, qn__ask_refusal *no) {
    return qn__json_u64(value, &ask->options.seed) ||
           refuse_field(no, "it is not a whole number from 0 to 18446744073709551615");
}

static int read_stop(node *value, qn__ask *ask, qn__ask_refusal *no) {
    const size_t count = qn__json_is_array(value) ? qn__json_count(value) : 1;
    if (count > QN__ASK_STOPS)
        return refuse_field(no, "it has %zu texts, and may have %d", count, QN__ASK_STOPS);
    for (size_t i = 0; i < count; ++i) {
        ask->stop[i] = qn__json_string(qn__json_is_array(value) ? qn__json_at(value, i) : value);
        if (!ask->stop[i])
            return refuse_field(no, "it is neither a text nor a list of texts");
    }
    ask->options.stops = (uint32_t)count;
    return 1;
}

/* A number for completions, true for chats. */
static int read_logprobs(node *value, qn__ask *ask, qn__ask_refusal *no) {
    if (ask->kind == QN__ASK_CHAT)
        return read_truth(value, &ask->options.log_probabilities, no);
    ask->options.log_probabilities = 1;
    return read_count(value, 0, MOST_OF_COMPLETION, &ask->choices, no);
}

static int read_top_logprobs(node *value, qn__ask *ask, qn__ask_refusal *no) {
    return read_count(value, 0, MOST_OF_CHAT, &ask->choices, no);
}

static int read_echo(node *value, qn__ask *ask, qn__ask_refusal *no) {
    return read_truth(value, &ask->echo, no);
}

static int read_stream(node *value, qn__ask *ask, qn__ask_refusal *no) {
    return read_truth(value, &ask->stream, no);
}

static int read_stream_options(node *value, qn__ask *ask, qn__ask_refusal *no) {
    for (size_t i = 0; i < qn__json_count(value); ++i)
        if (!qn__json_is_object(value) ||
            strcmp(qn__json_key(qn__json_at(value, i)), "include_usage") != 0)
            return refuse_field(no, "it is not an object with \"include_usage\" only");
    node *usage = qn__json_get(value, "include_usage");
    return !usage || qn__json_is_null(usage) || read_truth(usage, &ask->usage, no);
}

/* ------------------------------------------------------------------------------------------
 * prompts
 */

/* Tokens of a prompt that is a list of numbers, at *at of ask->number. */
static int read_tokens(node *list, qn__ask *ask, size_t *at, qn__text_prompt *to,
                       qn__ask_refusal *no) {
    *to = (qn__text_prompt){.tokens = ask->number + *at, .count = (uint32_t)qn__json_count(list)};
    for (size_t i = 0; i < qn__json_count(list); ++i)
        if (!read_count(qn__json_at(list, i), 0, UINT32_MAX - 1, &ask->number[(*at)++], no))
            return refuse_field(no, "token %zu of a prompt is not a number of a token", i);
    return 1;
}

static int make_prompts(qn__ask *ask, size_t prompts, size_t numbers, qn__ask_refusal *no) {
    ask->prompts = (uint32_t)prompts;
    ask->prompt = qn__alloc(prompts, sizeof *ask->prompt, NULL);
    ask->number = qn__alloc(numbers + 1, sizeof *ask->number, NULL);
    return (ask->prompt && ask->number) || refuse_memory(no);
}

/* A text, a list of texts, a list of numbers, or a list of lists of numbers. */
static int read_prompt(node *value, qn__ask *ask, qn__ask_refusal *no) {
    static const char what[] = "it is neither a text, a list of tokens, nor a list of such prompts";
    const int is_list = qn__json_is_array(value);
    const int is_one = !is_list || qn__json_digits(qn__json_at(value, 0)) != NULL;
    const size_t count = is_one ? 1 : qn__json_count(value);
    size_t numbers = 0, at = 0;
    if (count == 0 || count > UINT32_MAX)
        return refuse_field(no, "%s", what);
    for (size_t i = 0; is_list && i < count; ++i)
        numbers += qn__json_count(is_one ? value : qn__json_at(value, i));
    if (!make_prompts(ask, count, numbers, no))
        return 0;
    for (size_t i = 0; i < count; ++i) {
        node *own = is_one ? value : qn__json_at(value, i);
        ask->prompt[i].text = qn__json_string(own);
        if (ask->prompt[i].text)
            continue;
        if (!qn__json_is_array(own))
            return refuse_field(no, "%s", what);
        if (!read_tokens(own, ask, &at, &ask->prompt[i], no))
            return 0;
    }
    return 1;
}

/* A content of parts, each with a text. */
static char *join_parts(node *content) {
    qn__text text = {0};
    qn__text_add(&text, "%s", "");
    for (size_t i = 0; i < qn__json_count(content); ++i) {
        node *part = qn__json_at(content, i);
        const char *type = qn__json_string(qn__json_get(part, "type"));
        const char *own = qn__json_string(qn__json_get(part, "text"));
        if (!type || strcmp(type, "text") != 0 || !own) {
            qn__text_release(&text);
            return NULL;
        }
        qn__text_add(&text, "%s", own);
    }
    return qn__text_take(&text, NULL);
}

static int read_message(node *message, qn__ask *ask, uint32_t index, qn__ask_refusal *no) {
    static const char *const roles[][2] = {{"system", "system"},
                                           {"developer", "system"},
                                           {"user", "user"},
                                           {"assistant", "assistant"}};
    const char *role = qn__json_string(qn__json_get(message, "role"));
    node *content = qn__json_get(message, "content");
    qn__said *to = &ask->said[index];
    for (int i = 0; role && i < 4; ++i)
        to->role = strcmp(roles[i][0], role) == 0 ? roles[i][1] : to->role;
    if (!to->role)
        return refuse_field(no,
                            "the role of message %u is not \"system\", \"user\" or "
                            "\"assistant\"",
                            index);
    for (size_t i = 0; i < qn__json_count(message); ++i) {
        node *own = qn__json_at(message, i);
        if (own != content && strcmp(qn__json_key(own), "role") != 0 && !qn__json_is_null(own))
            return refuse_field(no, "\"%.40s\" of message %u is not supported", qn__json_key(own),
                                index);
    }
    to->content = qn__json_string(content);
    if (qn__json_is_array(content))
        to->content = ask->joined[index] = join_parts(content);
    return to->content || refuse_field(no, "the content of message %u is not a text", index);
}

static int read_messages(node *value, qn__ask *ask, qn__ask_refusal *no) {
    const size_t count = qn__json_is_array(value) ? qn__json_count(value) : 0;
    if (count == 0 || count > UINT32_MAX)
        return refuse_field(no, "it is not a list of at least one message");
    ask->messages = (uint32_t)count;
    ask->said = qn__alloc(count, sizeof *ask->said, NULL);
    ask->joined = qn__alloc(count, sizeof *ask->joined, NULL);
    if (!ask->said || !ask->joined || !make_prompts(ask, 1, 0, no))
        return refuse_memory(no);
    ask->prompt[0] = (qn__text_prompt){.said = ask->said, .count = ask->messages};
    for (uint32_t i = 0; i < ask->messages; ++i)
        if (!read_message(qn__json_at(value, i), ask, i, no))
            return 0;
    return 1;
}

/* ------------------------------------------------------------------------------- what would change
 * answers, and is not here. Values that say so are taken. */

static int read_neutral(node *value, qn__ask *ask, qn__ask_refusal *no) {
    const char *text = qn__json_string(value);
    int truth;
    float number;
    (void)ask;
    if ((text && (!*text || strcmp(text, "none") == 0 || strcmp(text, "auto") == 0)) ||
        (is_truth(value, &truth) && !truth) || (qn__json_float(value, &number) && number == 0.0f) ||
        (!text && !qn__json_digits(value) && !truth && qn__json_count(value) == 0))
        return 1;
    return refuse_field(no, "it is not supported");
}

static int read_best_of(node *value, qn__ask *ask, qn__ask_refusal *no) {
    uint64_t count;
    (void)ask;
    return (qn__json_u64(value, &count) && count == 1) || refuse_field(no, "it is not supported");
}

static int read_format(node *value, qn__ask *ask, qn__ask_refusal *no) {
    const char *type = qn__json_string(qn__json_get(value, "type"));
    (void)ask;
    return (type && strcmp(type, "text") == 0) ||
           refuse_field(no, "it is not {\"type\": \"text\"}: others are not supported");
}

static int read_modalities(node *value, qn__ask *ask, qn__ask_refusal *no) {
    const char *only = qn__json_string(qn__json_at(value, 0));
    (void)ask;
    return (qn__json_count(value) == 1 && only && strcmp(only, "text") == 0) ||
           refuse_field(no, "it is not [\"text\"]: others are not supported");
}

/* -------------------------------------------------------------------------------------- the whole
 */

static int read_encoding(node *value, qn__ask *ask, qn__ask_refusal *no) {
    const char *word = qn__json_string(value);
    ask->base64 = word && strcmp(word, "base64") == 0;
    return ask->base64 || (word && strcmp(word, "float") == 0) ||
           refuse_field(no, "it is neither \"float\" nor \"base64\"");
}

static int read_dimensions(node *value, qn__ask *ask, qn__ask_refusal *no) {
    return read_count(value, 1, UINT32_MAX, &ask->dimensions, no);
}

static const ask_field fields[] = {
    {"model", ALL, read_model},
    {"prompt", QN__ASK_COMPLETION, read_prompt},
    {"input", QN__ASK_EMBEDDING, read_prompt},
    {"encoding_format", QN__ASK_EMBEDDING, read_encoding},
    {"dimensions", QN__ASK_EMBEDDING, read_dimensions},
    {"messages", QN__ASK_CHAT, read_messages},
    {"max_tokens", BOTH, read_most},
    {"max_completion_tokens", QN__ASK_CHAT, read_most},
    {"n", BOTH, read_answers},
    {"temperature", BOTH, read_temperature},
    {"top_p", BOTH, read_top_p},
    {"top_k", BOTH, read_top_k},
    {"repetition_penalty", BOTH, read_repetition},
    {"seed", BOTH, read_seed},
    {"stop", BOTH, read_stop},
    {"logprobs", BOTH, read_logprobs},
    {"top_logprobs", QN__ASK_CHAT, read_top_logprobs},
    {"echo", QN__ASK_COMPLETION, read_echo},
    {"stream", BOTH, read_stream},
    {"stream_options", BOTH, read_stream_options},
    {"best_of", QN__ASK_COMPLETION, read_best_of},
    {"suffix", QN__ASK_COMPLETION, read_neutral},
    {"presence_penalty", BOTH, read_neutral},
    {"frequency_penalty", BOTH, read_neutral},
    {"logit_bias", BOTH, read_neutral},
    {"tools", QN__ASK_CHAT, read_neutral},
    {"tool_choice", QN__ASK_CHAT, read_neutral},
    {"functions", QN__ASK_CHAT, read_neutral},
    {"function_call", QN__ASK_CHAT, read_neutral},
    {"response_format", QN__ASK_CHAT, read_format},
    {"modalities", QN__ASK_CHAT, read_modalities},
    {"user", ALL, NULL},
    {"metadata", BOTH, NULL},
    {"store", BOTH, NULL},
    {"service_tier", BOTH, NULL},
    {"safety_identifier", BOTH, NULL},
    {"prompt_cache_key", BOTH, NULL},
    {"parallel_tool_calls", QN__ASK_CHAT, NULL},
};
enum { FIELDS = sizeof fields / sizeof *fields };

static const ask_field *find_field(const char *name, qn__ask_kind kind) {
    for (int i = 0; i < FIELDS; ++i)
        if ((fields[i].kinds & (unsigned)kind) && strcmp(fields[i].name, name) == 0)
            return &fields[i];
    return NULL;
}

static int refuse_unknown_field(const char *name, qn__ask_kind kind, qn__ask_refusal *no) {
    const char *known[FIELDS + 1] = {NULL};
    for (int i = 0, n = 0; i < FIELDS; ++i)
        if (fields[i].kinds & (unsigned)kind)
            known[n++] = fields[i].name;
    const char *near = qn__nearest(name, known);
    no->code = "unknown_parameter";
    return refuse_field(no, "the field \"%.60s\" is not known%s%s%s", name,
                        near ? ": did you mean \"" : "", near ? near : "", near ? "\"?" : "");
}

static int read_fields(node *root, qn__ask *ask, qn__ask_refusal *no) {
    for (size_t i = 0; i < qn__json_count(root); ++i) {
        node *value = qn__json_at(root, i);
        const ask_field *field = find_field(qn__json_key(value), ask->kind);
        char what[sizeof no->message];
        if (!field)
            return refuse_unknown_field(qn__json_key(value), ask->kind, no);
        if (!field->read || qn__json_is_null(value) || field->read(value, ask, no))
            continue;
        no->param = field->name;
        snprintf(what, sizeof what, "%s", no->message);
        return refuse_field(no, "\"%s\": %.900s", field->name, what);
    }
    return 1;
}

/* What fields say together. */
static int check_fields(qn__ask *ask, qn__ask_refusal *no) {
    const int chat = ask->kind == QN__ASK_CHAT;
    if (!ask->prompt) {
        no->param = chat ? "messages" : ask->kind == QN__ASK_EMBEDDING ? "input" : "prompt";
        return refuse_field(no, "the field \"%s\" is missing", no->param);
    }
    if (ask->choices > 0 && !ask->options.log_probabilities) {
        no->param = "top_logprobs";
        return refuse_field(no, "\"top_logprobs\" needs \"logprobs\": true");
    }
    no->param = "echo";
    if (ask->echo && ask->options.log_probabilities)
        return refuse_field(no, "\"echo\" gives no log-probabilities: leave \"logprobs\" out");
    for (uint32_t i = 0; ask->echo && i < ask->prompts; ++i)
        if (!ask->prompt[i].text)
            return refuse_field(no, "\"echo\" needs prompts that are texts");
    no->param = NULL;
    return 1;
}

int qn__ask_read(qn__ask_kind kind, const char *body, size_t size, qn__ask *ask,
                 qn__ask_refusal *no) {
    qn_error err;
    *ask = (qn__ask){.kind = kind};
    *no = (qn__ask_refusal){0};
    qn_generate_options_init(&ask->options);
    ask->options.temperature = 1.0f;
    ask->options.tokens = FEW_TOKENS;
    if (qn__json_parse(body, size, &ask->json, &err) != QN_OK) {
        refuse_field(no, "the body is not JSON: %s", err.what);
    } else if (!qn__json_is_object(qn__json_root(ask->json))) {
        refuse_field(no, "the body is not an object of JSON");
    } else if (read_fields(qn__json_root(ask->json), ask, no) && check_fields(ask, no)) {
        ask->options.stop = ask->stop;
        return 1;
    }
    qn__ask_release(ask);
    return 0;
}

void qn__ask_release(qn__ask *ask) {
    for (uint32_t i = 0; ask->joined && i < ask->messages; ++i)
        qn__free(ask->joined[i]);
    qn__free(ask->joined);
    qn__free(ask->said);
    qn__free(ask->number);
    qn__free(ask->prompt);
    qn__json_free(ask->json);
}

/* ----------------------------------------------------------------------------------- refusals of
 * the library */

/* Members of options as fields; those of the server are words of a sentence. */
static const char *const members[][2] = {
    {"`generate.tokens`", "max_tokens"},
    {"`generate.answers`", "n"},
    {"`generate.temperature`", "temperature"},
    {"`generate.top_p`", "top_p"},
    {"`generate.repetition`", "repetition_penalty"},
    {"`generate.stop`", "stop"},
    {"`server.chat`", "its option chat"},
};
enum { MEMBERS = sizeof members / sizeof *members };

/* The first member that is named in the text, or MEMBERS. */
static int find_member(const char *text, const char **at) {
    int found = MEMBERS;
    for (int i = 0; i < MEMBERS; ++i) {
        const char *own = strstr(text, members[i][0]);
        if (own && (found == MEMBERS || own < *at)) {
            found = i;
            *at = own;
        }
    }
    return found;
}

/* Appends the text, with fields for members of the options. */
static void write_words(qn__ask_refusal *no, const char *text) {
    const char *at = NULL;
    for (int m; (m = find_member(text, &at)) < MEMBERS; text = at + strlen(members[m][0])) {
        const size_t used = strlen(no->message);
        const char *field = members[m][1], *quote = strchr(field, ' ') ? "" : "\"";
        snprintf(no->message + used, sizeof no->message - used, "%.*s%s%s%s", (int)(at - text),
                 text, quote, field, quote);
        no->param = no->param || !*quote ? no->param : field;
    }
    const size_t used = strlen(no->message);
    snprintf(no->message + used, sizeof no->message - used, "%s", text);
}

void qn__ask_refuse(const qn__ask *ask, const qn_error *err, qn__ask_refusal *no) {
    *no = (qn__ask_refusal){.status = BAD_REQUEST};
    if (err->status == QN_BUSY) {
        no->status = 429;
        no->code = "too_many_requests";
    } else if (err->status == QN_MEMORY || err->status == QN_INTERRUPTED) {
        no->status = 503;
    } else if (err->status == QN_NUMERIC || err->status == QN_DEVICE || err->status == QN_IO) {
        no->status = 500;
    }
    write_words(no, err->what);
    if (*err->where && ask->prompts != 1) {
        write_words(no, ", at ");
        write_words(no, err->where);
    }
    if (*err->remedy) {
        write_words(no, ": ");
        write_words(no, err->remedy);
    }
}
