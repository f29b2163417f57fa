/* The options of a generation: defaults and checks. */
#include "predict/generate/taken_options.h"

#include "base/encoding.h"
#include "base/memory.h"
#include "base/sized.h"
#include "base/system/float_state.h"
#include "base/text/text.h"
#include <math.h>
#include <string.h>

enum {
    MOST_TOKENS = QN__GENERATE_TOKENS,
    MOST_ANSWERS = 1 << 16,
    MOST_BATCH = 4096,
    MOST_STOP = 256
};

static const qn_generate_options usual = {.size = sizeof(qn_generate_options),
                                          .tokens = 200,
                                          .answers = 1,
                                          .temperature = 0.8f,
                                          .top_p = 1.0f,
                                          .repetition = 1.0f,
                                          .seed = 1};

void qn_generate_options_init(qn_generate_options *options) {
    QN__OWN_FLOATS;
    if (options)
        *options = usual;
}

static qn_status refuse_count(const char *name, uint64_t value, uint64_t low, uint64_t high,
                              qn_error *err) {
    qn__fail(err, QN_USAGE, "%s is %llu", name, (unsigned long long)value);
    return qn__remedy(err, QN_USAGE, "give a whole number from %llu to %llu",
                      (unsigned long long)low, (unsigned long long)high);
}

static qn_status refuse_number(const char *name, float value, const char *remedy, qn_error *err) {
    char text[32];
    if (isfinite(value))
        qn__float_text(value, text);
    else
        memcpy(text, "not finite", 11);
    qn__fail(err, QN_USAGE, "%s is %s", name, text);
    return qn__remedy(err, QN_USAGE, "%s", remedy);
}

static qn_status check_numbers(const qn_generate_options *o, qn_error *err) {
    if (o->tokens < 1 || o->tokens > MOST_TOKENS)
        return refuse_count("`generate.tokens`", o->tokens, 1, MOST_TOKENS, err);
    if (o->answers < 1 || o->answers > MOST_ANSWERS)
        return refuse_count("`generate.answers`", o->answers, 1, MOST_ANSWERS, err);
    if (o->batch > MOST_BATCH)
        return refuse_count("`generate.batch`", o->batch, 1, MOST_BATCH, err);
    if (!(o->temperature == 0.0f || (o->temperature >= 0.01f && o->temperature <= 100.0f)))
        return refuse_number("`generate.temperature`", o->temperature,
                             "give 0 for the most probable token, or a number from 0.01 to 100",
                             err);
    if (!(o->top_p > 0.0f && o->top_p <= 1.0f))
        return refuse_number("`generate.top_p`", o->top_p, "give a number above 0, up to 1", err);
    if (!(o->repetition >= 0.01f && o->repetition <= 100.0f))
        return refuse_number("`generate.repetition`", o->repetition,
                             "give a number from 0.01 to 100: 1.1 makes repetitions rarer", err);
    return QN_OK;
}

/* A file of answers has these texts, and replaying reads them there. */
static qn_status check_utf8(const char *name, const char *text, qn_error *err) {
    const size_t good = qn__utf8_prefix(text);
    if (!text[good])
        return QN_OK;
    qn__fail(err, QN_USAGE, "%s is not UTF-8 from byte %zu on", name, good);
    return qn__remedy(err, QN_USAGE, "give a text in UTF-8");
}

static qn_status check_texts(const qn_generate_options *o, qn_error *err) {
    if (o->stops > QN__GENERATE_STOPS)
        return refuse_count("the number of texts of `generate.stop`", o->stops, 0,
                            QN__GENERATE_STOPS, err);
    for (uint32_t i = 0; i < o->stops; ++i) {
        const size_t size = o->stop && o->stop[i] ? strlen(o->stop[i]) : 0;
        if (size >= 1 && size <= MOST_STOP) {
            const qn_status status = check_utf8("`generate.stop`", o->stop[i], err);
            if (status != QN_OK)
                return status;
            continue;
        }
        qn__fail(err, QN_USAGE, "text %u of `generate.stop` has %zu bytes", i, size);
        return qn__remedy(err, QN_USAGE, "give texts of 1 to %d bytes", MOST_STOP);
    }
    if (o->chat && !qn__codec_has_chat(o->chat)) {
        qn__fail(err, QN_USAGE, "unknown kind of chat \"%.40s\"", o->chat);
        return qn__remedy(err, QN_USAGE, "`generate.chat` is \"chatml\" or \"llama3\"");
    }
    if (!o->system || o->chat)
        return o->system ? check_utf8("`generate.system`", o->system, err) : QN_OK;
    qn__fail(err, QN_USAGE, "`generate.system` is for a chat");
    return qn__remedy(err, QN_USAGE,
                      "give `generate.chat`, too, or put the text before the prompt");
}

static qn_status copy(const char *from, char **to, qn_error *err) {
    *to = from ? qn__copy_text(from, err) : NULL;
    return from && !*to ? QN_MEMORY : QN_OK;
}

qn_status qn__taken_options_take(const qn_generate_options *options, qn__taken_options *to,
                                 qn_error *err) {
    qn_generate_options *o = &to->options;
    *to = (qn__taken_options){.options = usual};
    qn_status status = QN_OK;
    if (options)
        status = qn__sized_take(QN__SIZED("options", qn_generate_options), options, o, err);
    if (status == QN_OK)
        status = check_numbers(o, err);
    if (status == QN_OK)
        status = check_texts(o, err);
    for (uint32_t i = 0; status == QN_OK && i < o->stops; ++i)
        status = copy(o->stop[i], &to->manner.stop[i], err);
    if (status == QN_OK)
        status = copy(o->chat, &to->chat, err);
    if (status == QN_OK)
        status = copy(o->system, &to->system, err);
    to->manner.drawing = (qn__drawing){o->temperature, o->top_k, o->top_p, o->repetition};
    to->manner.stops = o->stops;
    to->manner.log_probabilities = o->log_probabilities;
    o->stop = NULL;
    o->chat = to->chat;
    o->system = to->system;
    return status;
}

void qn__taken_options_release(qn__taken_options *taken) {
    for (int i = 0; i < QN__GENERATE_STOPS; ++i)
        qn__free(taken->manner.stop[i]);
    qn__free(taken->chat);
    qn__free(taken->system);
}
