/* The file of answers: one JSON object, whose bytes depend on the answers alone. */
#include "predict/generate/generator.h"

#include "base/argument.h"
#include "base/files/file.h"
#include "base/memory.h"
#include "base/system/float_state.h"
#include "base/text/character.h"
#include "base/text/text.h"
#include "cluster/cluster.h"
#include <string.h>

/* An option that is a text, a list, or null. */
static void add_texts(qn__text *to, const char *key, char *const *text, uint32_t count) {
    qn__text_add(to, ", \"%s\": [", key);
    for (uint32_t i = 0; i < count; ++i) {
        qn__text_add(to, "%s", i > 0 ? ", " : "");
        qn__text_add_json(to, text[i]);
    }
    qn__text_add(to, "]");
}

static void add_float(qn__text *to, const char *key, float value) {
    char text[32];
    qn__float_text(value, text);
    qn__text_add(to, ", \"%s\": %s", key, text);
}

void qn__answers_add_options(const qn_generator *g, qn__text *to) {
    const qn_generate_options *o = &g->own.options;
    qn__text_add(to, "{\"tokens\": %u, \"answers\": %u", o->tokens, o->answers);
    add_float(to, "temperature", o->temperature);
    qn__text_add(to, ", \"top_k\": %u", o->top_k);
    add_float(to, "top_p", o->top_p);
    add_float(to, "repetition", o->repetition);
    qn__text_add(to, ", \"seed\": %llu", (unsigned long long)o->seed);
    add_texts(to, "stop", g->own.manner.stop, o->stops);
    qn__text_add(to, ", \"chat\": ");
    qn__text_add_json(to, g->own.chat);
    qn__text_add(to, ", \"system\": ");
    qn__text_add_json(to, g->own.system);
    if (o->lines)
        qn__text_add(to, ", \"lines\": true");
    qn__text_add(to, ", \"log_probabilities\": %s}", o->log_probabilities ? "true" : "false");
}

static void add_numbers(qn__text *to, const char *key, const uint32_t *number, uint32_t count) {
    qn__text_add(to, ", \"%s\": [", key);
    for (uint32_t i = 0; i < count; ++i)
        qn__text_add(to, "%s%u", i > 0 ? ", " : "", number[i]);
    qn__text_add(to, "]");
}

/* A text of any bytes: what is not UTF-8 becomes U+FFFD, and so does a NUL. */
static void add_bytes(qn__text *to, const char *bytes, size_t size, qn__text *space) {
    size_t length;
    qn__text_add(space, "%s", "");
    space->size = 0;
    for (size_t at = 0; at < size; at += length) {
        const uint32_t own = qn__character((const uint8_t *)bytes + at, size - at, &length);
        if (own == 0 || own >= QN__CHARACTER_BROKEN)
            qn__text_add(space, "\xEF\xBF\xBD");
        else
            qn__text_add(space, "%.*s", (int)length, bytes + at);
    }
    if (space->data)
        space->data[space->size] = '\0';
    qn__text_add_json(to, space->data ? space->data : "");
}

static void add_answer(const qn_generator *g, const qn__answer *a, qn__text *to, qn__text *space) {
    static const char *const ends[] = {"goes on", "length", "end", "stop"};
    const uint32_t count = a->count - a->prompt_count;
    char number[32];
    qn__text_add(to, "{\"prompt\": ");
    qn__text_add_json(to, g->prompt[a->prompt]);
    qn__text_add(to, ", \"number\": %u, \"text\": ", a->number);
    add_bytes(to, a->text, a->shown, space);
    qn__text_add(to, ", \"end\": \"%s\", \"slid\": %s", ends[a->end],
                 a->base > 0 ? "true" : "false");
    add_numbers(to, "prompt_tokens", a->token, a->prompt_count);
    add_numbers(to, "tokens", a->token + a->prompt_count, count);
    if (g->own.options.log_probabilities) {
        qn__text_add(to, ", \"log_probabilities\": [");
        for (uint32_t i = 0; i < count; ++i) {
            qn__float_text(a->log_probability[i], number);
            qn__text_add(to, "%s%s", i > 0 ? ", " : "", number);
        }
        qn__text_add(to, "]");
    }
    qn__text_add(to, "}");
}

qn_status qn__answers_json(const qn_generator *g, char **out, size_t *size, qn_error *err) {
    qn__text to = {0}, space = {0};
    qn__text_add(&to, "{\"format\": \"quern-answers-1\", \"model\": \"%s\", \"options\": ",
                 qn_model_digest(g->model));
    qn__answers_add_options(g, &to);
    qn__text_add(&to, ", \"answers\": [");
    for (uint32_t i = 0; i < g->answers; ++i) {
        qn__text_add(&to, "%s\n", i > 0 ? "," : "");
        add_answer(g, &g->answer[i], &to, &space);
    }
    qn__text_add(&to, "\n]}\n");
    const int failed = space.failed;
    qn__text_release(&space);
    *size = to.size;
    *out = qn__text_take(&to, err);
    if (*out && failed) {
        qn__free(*out);
        *out = NULL;
        return qn__fail_memory(err, *size, 1);
    }
    return *out ? QN_OK : QN_MEMORY;
}

qn_status qn_generator_write(const qn_generator *generator, const char *path, qn_error *err) {
    QN__OWN_FLOATS;
    QN__NEED(generator, err);
    QN__NEED(path, err);
    for (uint32_t i = 0; i < generator->answers; ++i)
        if (generator->answer[i].end == QN_ANSWER_GOES_ON) {
            qn__fail(err, QN_USAGE, "answer %u is not complete", i);
            return qn__remedy(err, QN_USAGE, "call qn_generator_step until no more are left");
        }
    char *json = NULL;
    size_t size = 0;
    qn__writer *writer = NULL;
    qn_status status = qn__answers_json(generator, &json, &size, err);
    if (status == QN_OK)
        status = qn__writer_create(path, &writer, err);
    if (status == QN_OK)
        status = qn__writer_add(writer, json, size, err);
    qn__free(json);
    if (!writer)
        return status;
    qn__writer_ask(writer, qn__cluster_may_write, generator->cluster);
    status = qn__writer_finish(writer, NULL, status, err);
    return status == QN_BUSY && generator->cluster ? qn__cluster_refuse(generator->cluster, err)
                                                   : status;
}
