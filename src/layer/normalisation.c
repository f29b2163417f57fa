#include "layer/normalisation.h"

#include "num/norm.h"

/* A number from above 0 to 1 after the current word; *out is 0 where it is the usual one. */
static qn_status parse_number(qn__tokens *tokens, const char *what, float usual, float *out) {
    static const char *const help =
        "give a number above 0, up to 1: \"batchnorm eps 0.001 momentum 0.01 relu\"";
    qn__tokens_next(tokens);
    if (qn__tokens_ended(tokens))
        return qn__tokens_fail(tokens, tokens->at, "a number is missing at the layer's end", help);
    if (!qn__parse_float(tokens->text + tokens->at, tokens->size, out) ||
        !(*out > 0.0f && *out <= 1.0f))
        return qn__tokens_invalid(tokens, what, help);
    if (*out == usual)
        *out = 0.0f;
    qn__tokens_next(tokens);
    return QN_OK;
}

qn_status qn__normalisation_words(qn__tokens *tokens, int running, qn__layer_text *layer) {
    int seen[2] = {0, 0};
    qn_status status = QN_OK;
    while (status == QN_OK) {
        const int rate = running && qn__tokens_is(tokens, "momentum");
        if (!rate && !qn__tokens_is(tokens, "eps"))
            break;
        if (seen[rate]++)
            return qn__tokens_invalid(tokens, "a layer has only one", "take one of the two out");
        status = rate ? parse_number(tokens, "invalid momentum", QN__RUNNING_RATE, &layer->rate)
                      : parse_number(tokens, "invalid eps", QN__NORM_EPSILON, &layer->epsilon);
    }
    return status;
}

static void write_number(const char *word, float value, qn__text *text) {
    char number[32];
    if (value == 0.0f)
        return;
    qn__float_text(value, number);
    qn__text_add(text, " %s %s", word, number);
}

void qn__normalisation_write(const qn__layer_text *layer, qn__text *text) {
    write_number("eps", layer->epsilon, text);
    write_number("momentum", layer->rate, text);
}

int qn__normalisation_contract(const qn__layer_text *layer) {
    return layer->epsilon != 0.0f || layer->rate != 0.0f || layer->norm_alone ? 8 : 0;
}

qn__layer qn__normalisation_make(const qn__layer_text *text, qn__shape from, uint64_t first,
                                 uint32_t vectors) {
    return (qn__layer){.kind = text->kind,
                       .from = from,
                       .to = from,
                       .window = {{1, 1}, {1, 1}, {0, 0}, {1, 1}},
                       .in = qn__shape_volume(from),
                       .out = qn__shape_volume(from),
                       .activation = text->activation,
                       .drop_keep = 1.0f,
                       .weights = first,
                       .biases = first,
                       .vectors = vectors,
                       .vector = from.channels,
                       .norm_epsilon = text->epsilon != 0.0f ? text->epsilon : QN__NORM_EPSILON};
}

void qn__normalisation_begin(const qn__layer *layer, float *parameters) {
    float *next = parameters + layer->biases;
    for (uint32_t v = 0; v < layer->vectors; ++v)
        for (uint32_t c = 0; c < layer->vector; ++c)
            *next++ = v == QN__NORM_WEIGHT || v == QN__NORM_VARIANCE ? 1.0f : 0.0f;
}

qn__flops qn__normalisation_flops(const qn__layer *layer) {
    return (qn__flops){layer->in, layer->in, layer->in};
}
