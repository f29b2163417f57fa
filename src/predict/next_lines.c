#include "predict/next_lines.h"

#include "base/text/character.h"
#include "kernels/runtime/elementary_functions.h"
#include <math.h>
#include <string.h>

/* Bytes of a token that are shown, and of the text of it: three of U+FFFD for one that is not part
 * of a character. */
enum { SHOWN = 256, SHOWN_TEXT = 3 * SHOWN + 1 };

uint32_t qn__next_columns(const qn__next_lines *lines, qn__sink_column column[QN__NEXT_COLUMNS]) {
    static const qn__sink_column of_items[QN__NEXT_COLUMNS] = {
        {"item", QN__SINK_INTEGER, 0},    {"tokens", QN__SINK_INTEGER, 0},
        {"correct", QN__SINK_INTEGER, 0}, {"logprob", QN__SINK_REAL, 0},
        {"label", QN__SINK_INTEGER, 0},   {"prediction", QN__SINK_INTEGER, 0},
        {"perplexity", QN__SINK_REAL, 0}};
    static const qn__sink_column of_tokens[] = {
        {"item", QN__SINK_INTEGER, 0},       {"position", QN__SINK_INTEGER, 0},
        {"token", QN__SINK_INTEGER, 0},      {"logprob", QN__SINK_SINGLE, 0},
        {"prediction", QN__SINK_INTEGER, 0}, {"text", QN__SINK_TEXT, 1}};
    enum { OF_TOKENS = sizeof of_tokens / sizeof *of_tokens };
    if (!lines->each) {
        memcpy(column, of_items, sizeof of_items);
        return QN__NEXT_COLUMNS;
    }
    memcpy(column, of_tokens, sizeof of_tokens);
    return lines->tokenizer ? OF_TOKENS : OF_TOKENS - 1;
}

/* A number from 0; missing for -1. */
static qn__sink_cell token_cell(int64_t token) {
    return (qn__sink_cell){token < 0 ? QN__SINK_MISSING : QN__SINK_INTEGER, {.whole = token}};
}

static qn__sink_cell real(double value) {
    return (qn__sink_cell){isnan(value) ? QN__SINK_MISSING : QN__SINK_REAL, {.number = value}};
}

/* The text of a token. It may end within a character: U+FFFD stands for such bytes. */
static void show(const qn__next_lines *lines, uint32_t token, char text[SHOWN_TEXT]) {
    uint8_t bytes[SHOWN];
    size_t size = 0, length, used = 0;
    qn_error unwanted;
    if (qn_tokenizer_decode(lines->tokenizer, &token, 1, bytes, SHOWN, &size, &unwanted) != QN_OK)
        size = 0; /* not a token of it */
    size = size < SHOWN ? size : SHOWN;
    for (size_t at = 0; at < size; at += length) {
        const uint32_t c = qn__character(bytes + at, size - at, &length);
        used += qn__character_write(c < QN__CHARACTER_BROKEN && c > 0 ? c : 0xFFFD, text + used);
    }
    text[used] = '\0';
}

static qn_status add_positions(const qn__next_lines *lines, uint64_t item, qn__sink *sink,
                               qn_error *err) {
    const void *values = qn__data_item(lines->data, item);
    const qn__text_window window = qn__data_window(lines->data, item);
    const uint64_t before = window.number * qn__window_step(lines->data->features);
    qn_status status = QN_OK;
    for (uint32_t t = 0; t < lines->positions && status == QN_OK; ++t) {
        const size_t at = (size_t)item * lines->positions + t;
        const float logprob = lines->counts->logprob[at];
        char text[SHOWN_TEXT] = "";
        if (isnan(logprob)) /* nothing comes there, or it has its row */
            continue;
        const double token = qn__element_number(lines->data->type, values, t + 1);
        if (lines->tokenizer)
            show(lines, (uint32_t)token, text);
        const qn__sink_cell cells[] = {token_cell((int64_t)(lines->first + window.text)),
                                       token_cell((int64_t)(before + t + 1)),
                                       token_cell((int64_t)token),
                                       {QN__SINK_SINGLE, {.number = logprob}},
                                       token_cell(lines->counts->token[at]),
                                       {QN__SINK_TEXT, {.text = text}}};
        status = qn__sink_add(sink, cells, err);
    }
    return status;
}

qn_status qn__next_add_rows(const qn__next_lines *lines, uint64_t item, qn__sink *sink,
                            qn_error *err) {
    if (lines->each)
        return add_positions(lines, item, sink, err);
    const qn__next_item *own = &lines->counts->item[item];
    const int lacks = own->targets == 0 || isnan(own->logprob);
    const qn__sink_cell cells[] = {
        token_cell((int64_t)(lines->first + item)),
        token_cell(own->targets),
        token_cell(own->right),
        real(own->logprob),
        token_cell(own->label),
        token_cell(own->prediction),
        real(lacks ? (double)NAN : qn__f64_exp(-own->logprob / own->targets))};
    return qn__sink_add(sink, cells, err);
}
