#include "predict/next_lines.h"

#include "base/text/character.h"
#include "kernels/runtime/elementary_functions.h"
#include <inttypes.h>
#include <math.h>

/* Bytes of a token that are shown. */
enum { SHOWN = 256 };

void qn__next_header(const qn__next_lines *lines, qn__text *text) {
    if (lines->each)
        qn__text_add(text, "item,position,token,logprob,prediction%s\n",
                     lines->tokenizer ? ",text" : "");
    else
        qn__text_add(text, "item,tokens,correct,logprob,label,prediction,perplexity\n");
}

/* A number from 0; an empty cell for -1. */
static void add_token(qn__text *text, int32_t token) {
    qn__text_add(text, token < 0 ? "," : ",%" PRId32, token);
}

/* The text of a token in quotes. A token may end within a character: U+FFFD stands for such
 * bytes. */
static void add_shown(const qn__next_lines *lines, uint32_t token, qn__text *text) {
    uint8_t bytes[SHOWN];
    size_t size = 0, length;
    qn_error unwanted;
    if (qn_tokenizer_decode(lines->tokenizer, &token, 1, bytes, SHOWN, &size, &unwanted) != QN_OK)
        size = 0; /* not a token of it */
    size = size < SHOWN ? size : SHOWN;
    qn__text_add(text, ",\"");
    for (size_t at = 0; at < size; at += length) {
        char written[4];
        const uint32_t c = qn__character(bytes + at, size - at, &length);
        const size_t count =
            qn__character_write(c < QN__CHARACTER_BROKEN && c > 0 ? c : 0xFFFD, written);
        qn__text_add(text, "%s%.*s", c == '"' ? "\"" : "", (int)count, written);
    }
    qn__text_add(text, "\"");
}

static void add_positions(const qn__next_lines *lines, uint64_t item, qn__text *text) {
    const void *values = qn__data_item(lines->data, item);
    const qn__text_window window = qn__data_window(lines->data, item);
    const uint64_t before = window.number * qn__window_step(lines->data->features);
    for (uint32_t t = 0; t < lines->positions; ++t) {
        const size_t at = (size_t)item * lines->positions + t;
        const float logprob = lines->counts->logprob[at];
        if (isnan(logprob)) /* nothing comes there, or it has its line */
            continue;
        const double token = qn__element_number(lines->data->type, values, t + 1);
        char number[40];
        qn__float_plain(logprob, number);
        qn__text_add(text, "%" PRIu64 ",%" PRIu64 ",%.0f,%s", window.text, before + t + 1, token,
                     number);
        add_token(text, lines->counts->token[at]);
        if (lines->tokenizer)
            add_shown(lines, (uint32_t)token, text);
        qn__text_add(text, "\n");
    }
}

void qn__next_add_lines(const qn__next_lines *lines, uint64_t item, qn__text *text) {
    const qn__next_item *own = &lines->counts->item[item];
    if (lines->each) {
        add_positions(lines, item, text);
        return;
    }
    qn__text_add(text, "%" PRIu64 ",%" PRIu32 ",%" PRIu32, item, own->targets, own->right);
    if (isnan(own->logprob))
        qn__text_add(text, ",");
    else
        qn__text_add(text, ",%.17g", own->logprob);
    add_token(text, own->label);
    add_token(text, own->prediction);
    if (own->targets == 0 || isnan(own->logprob))
        qn__text_add(text, ",\n");
    else
        qn__text_add(text, ",%.17g\n", qn__f64_exp(-own->logprob / own->targets));
}
