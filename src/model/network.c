#include "model/network.h"

#include "model/tables.h"
#include <stdio.h>
#include <string.h>

/* A tokenizer. The current token is `size` bytes at text + at. A semicolon is a token of its own,
 * and at the end of the text the token is empty. */
typedef struct parser {
    const char *text;
    size_t at, size;
    size_t softmax_at, dropout_at; /* positions of these words in the current layer */
    qn_error *err;
} parser;

static int is_space(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

static void next_word(parser *p) {
    size_t at = p->at + p->size;
    while (is_space(p->text[at]))
        ++at;
    p->at = at;
    p->size = 0;
    if (p->text[at] == ';') {
        p->size = 1;
        return;
    }
    for (char c = p->text[at]; c != '\0' && c != ';' && !is_space(c); c = p->text[at + p->size])
        ++p->size;
}

static int at_layer_end(const parser *p) { return p->size == 0 || p->text[p->at] == ';'; }

static int is_word(const parser *p, const char *name) {
    const qn__choice row = {.name = name};
    const qn__table one = {NULL, NULL, 1, &row};
    return qn__table_row(&one, p->text + p->at, p->size) != NULL;
}

/* The current token for messages, cut at 60 bytes. */
static const char *quoted(const parser *p, char word[64]) {
    const size_t size = p->size < 60 ? p->size : 60;
    memcpy(word, p->text + p->at, size);
    word[size] = '\0';
    return word;
}

static void point_at(const parser *p, size_t at) { qn__point_at(p->err, "model", p->text, at); }

/* Fails at byte `at` with two fixed texts. */
static qn_status fail_at(const parser *p, size_t at, const char *what, const char *remedy) {
    qn__fail(p->err, QN_USAGE, "%s", what);
    point_at(p, at);
    return qn__remedy(p->err, QN_USAGE, "%s", remedy);
}

static qn_status parse_kind(parser *p) {
    static const char *const kinds[] = {"dense", NULL};
    char word[64];
    if (at_layer_end(p))
        return fail_at(p, p->at, "a layer is empty",
                       "write a layer, such as \"dense 500 tanh\", "
                       "or take the semicolon out");
    if (is_word(p, "dense")) {
        next_word(p);
        return QN_OK;
    }
    const char *near = qn__nearest(quoted(p, word), kinds);
    qn__fail(p->err, QN_USAGE, "unknown layer \"%s\"", word);
    point_at(p, p->at);
    return qn__remedy(p->err, QN_USAGE, "%sthere are: dense",
                      near != NULL ? "did you mean \"dense\"? " : "");
}

static qn_status parse_width(parser *p, uint32_t *out) {
    static const char *const help =
        "a width is a whole number from 1 to 16777216: \"dense 500 tanh\"";
    uint64_t width;
    char word[64];
    if (at_layer_end(p))
        return fail_at(p, p->at, "the layer's width is missing", help);
    if (!qn__parse_u64(p->text + p->at, p->size, &width)) {
        qn__fail(p->err, QN_USAGE, "invalid layer width \"%s\"", quoted(p, word));
        point_at(p, p->at);
        return qn__remedy(p->err, QN_USAGE, "%s", help);
    }
    if (width == 0)
        return fail_at(p, p->at, "a layer of width 0 has no outputs", help);
    if (width > QN__MAX_WIDTH)
        return fail_at(p, p->at, "the layer is too wide", help);
    *out = (uint32_t)width;
    next_word(p);
    return QN_OK;
}

/* The activation, unless the next token is "dropout" or the end of the layer. */
static qn_status parse_activation(parser *p, qn__activation *out) {
    *out = QN__ACT_NONE;
    if (at_layer_end(p) || is_word(p, "dropout"))
        return QN_OK;
    const qn__choice *row = qn__table_row(&qn__activations, p->text + p->at, p->size);
    if (row == NULL) {
        char word[64], advice[256];
        qn__table_advise(&qn__activations, quoted(p, word), advice, sizeof advice);
        qn__fail(p->err, QN_USAGE, "unknown activation \"%s\"", word);
        point_at(p, p->at);
        return qn__remedy(p->err, QN_USAGE,
                          "%s; then perhaps dropout; layers are separated by \";\"", advice);
    }
    *out = (qn__activation)row->value;
    if (*out == QN__ACT_SOFTMAX)
        p->softmax_at = p->at;
    next_word(p);
    return QN_OK;
}

static qn_status parse_dropout(parser *p, float *out) {
    static const char *const help = "a dropout probability lies between 0 and 1: \"dropout 0.2\"";
    *out = 0.0f;
    if (at_layer_end(p) || !is_word(p, "dropout"))
        return QN_OK;
    p->dropout_at = p->at;
    next_word(p);
    float chance;
    char word[64];
    if (at_layer_end(p))
        return fail_at(p, p->at, "the dropout's probability is missing", help);
    if (!qn__parse_float(p->text + p->at, p->size, &chance)) {
        qn__fail(p->err, QN_USAGE, "invalid dropout probability \"%s\"", quoted(p, word));
        point_at(p, p->at);
        return qn__remedy(p->err, QN_USAGE, "%s", help);
    }
    if (!(chance > 0.0f && chance < 1.0f))
        return fail_at(p, p->at, "the dropout's probability is not between 0 and 1",
                       "0 and 1 themselves are excluded; without dropout, leave the word out");
    *out = chance;
    next_word(p);
    return QN_OK;
}

/* One layer and the semicolon after it. */
static qn_status parse_layer(parser *p, qn__network_layer *layer) {
    p->softmax_at = p->dropout_at = SIZE_MAX;
    qn_status status = parse_kind(p);
    if (status == QN_OK)
        status = parse_width(p, &layer->out);
    if (status == QN_OK)
        status = parse_activation(p, &layer->activation);
    if (status == QN_OK)
        status = parse_dropout(p, &layer->dropout);
    if (status != QN_OK)
        return status;
    if (!at_layer_end(p)) {
        char word[64];
        qn__fail(p->err, QN_USAGE, "\"%s\" does not belong here", quoted(p, word));
        point_at(p, p->at);
        return qn__remedy(p->err, QN_USAGE,
                          "a layer is: dense WIDTH ACTIVATION dropout P; the last two parts may be "
                          "left out; layers are separated by \";\"");
    }
    if (p->size > 0)
        next_word(p);
    return QN_OK;
}

/* Checks that depend on the position of the layer that was just read. */
static qn_status check_place(const parser *p) {
    const int last = p->size == 0;
    if (!last && p->softmax_at != SIZE_MAX)
        return fail_at(
            p, p->softmax_at, "softmax stands before the last layer",
            "softmax turns the last outputs into probabilities; use relu, tanh or sigmoid here");
    if (last && p->dropout_at != SIZE_MAX)
        return fail_at(p, p->dropout_at, "the last layer has dropout",
                       "outputs cannot be dropped: take the dropout out of the last layer");
    return QN_OK;
}

qn_status qn__network_parse(const char *text, qn__network *out, qn_error *err) {
    parser p = {text != NULL ? text : "", 0, 0, SIZE_MAX, SIZE_MAX, err};
    qn__network network = {0};
    next_word(&p);
    if (p.size == 0)
        return fail_at(&p, 0, "the model has no layers",
                       "name them from the first to the last: "
                       "`train.model` \"dense 500 tanh; dense 10 softmax\"");
    while (p.size > 0) {
        if (network.layers == QN__MAX_LAYERS)
            return fail_at(&p, p.at, "the model has more than 255 layers",
                           "255 layers are the most that a model can have");
        qn_status status = parse_layer(&p, &network.layer[network.layers]);
        if (status == QN_OK)
            status = check_place(&p);
        if (status != QN_OK)
            return status;
        ++network.layers;
    }
    *out = network;
    return QN_OK;
}

void qn__network_layer_text(const qn__network_layer *layer, qn__text *text) {
    qn__text_add(text, "dense %u %s", layer->out,
                 qn__table_name(&qn__activations, (int)layer->activation));
    if (layer->dropout != 0.0f) {
        char number[32];
        qn__float_text(layer->dropout, number);
        qn__text_add(text, " dropout %s", number);
    }
}

void qn__network_text(const qn__network *network, qn__text *text) {
    for (uint32_t l = 0; l < network->layers; ++l) {
        if (l > 0)
            qn__text_add(text, "; ");
        qn__network_layer_text(&network->layer[l], text);
    }
}

/* 6.5: floor(p * 2^32 + 1/2). Products and sums are exact in double where they matter: p has 24
 * bits, and if p * 2^32 has bits below 2^-29 it is far below 1/2. */
static void dropout_numbers(float chance, qn__layer *layer) {
    if (chance == 0.0f) {
        layer->drop_threshold = 0;
        layer->drop_keep = 1.0f;
        return;
    }
    layer->drop_threshold = (uint32_t)((double)chance * 0x1p32 + 0.5);
    layer->drop_keep = 1.0f / (1.0f - chance);
}

qn_status qn__network_program(const qn__network *network, uint32_t inputs, qn__layer *layer,
                              uint64_t *parameters, qn_error *err) {
    /* 255 layers of at most 2^24 x 2^32 weights are below 2^64, so the sum cannot overflow. */
    uint64_t at = 0;
    qn__shape shape = {inputs, 1, 1};
    for (uint32_t l = 0; l < network->layers; ++l) {
        const qn__network_layer *from = &network->layer[l];
        layer[l] = qn__layer_dense(shape, from->out, from->activation, at);
        dropout_numbers(from->dropout, &layer[l]);
        at = layer[l].biases + from->out;
        shape = layer[l].to;
    }
    /* Sizes in bytes, of several arrays together, must not overflow. */
    if (at > (uint64_t)(SIZE_MAX / 64)) {
        qn__fail(err, QN_USAGE, "the model would have %llu parameters", (unsigned long long)at);
        qn__at(err, "model");
        return qn__remedy(err, QN_USAGE, "make its layers narrower");
    }
    *parameters = at;
    return QN_OK;
}
