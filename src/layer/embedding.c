/* embedding V N: each value of an item is the number of a token, and becomes a position with the N
 * channels of this token. The weights have a row of channels for each of the V tokens. */
#include "layer/embedding.h"

#include "layer/layer.h"
#include <string.h>

/* Numbers of tokens are exact in a float up to 2^24. */
#define MOST_TOKENS ((uint32_t)1 << 24)

static qn_status parse(qn__tokens *tokens, qn__layer_text *layer) {
    static const char *const help = "give the size of the vocabulary, up to 16777216, and the "
                                    "channels of a position: \"embedding 50257 768\"";
    const qn_status status =
        qn__tokens_count(tokens, "vocabulary", MOST_TOKENS, help, &layer->vocabulary);
    return status == QN_OK ? qn__tokens_count(tokens, "width", QN__MAX_WIDTH, help, &layer->out)
                           : status;
}

static void write(const qn__layer_text *layer, qn__text *text) {
    qn__text_add(text, " %u %u", layer->vocabulary, layer->out);
}

static qn_status make(const qn__layer_text *text, qn__shape from, uint64_t first, qn__layer *layer,
                      qn_error *err) {
    const uint64_t parameters = (uint64_t)text->vocabulary * text->out;
    const uint32_t values = qn__shape_volume(from), positions = values - (text->next != 0);
    if (positions == 0) {
        qn__fail(err, QN_USAGE, "an item has one value, which no other follows");
        return qn__remedy(err, QN_USAGE, "give items of two values at least");
    }
    if (parameters > UINT32_MAX) {
        qn__fail(err, QN_USAGE, "an embedding of %u tokens with %u channels has %llu parameters",
                 text->vocabulary, text->out, (unsigned long long)parameters);
        return qn__remedy(err, QN_USAGE, "at most 4294967295 are possible: give fewer channels");
    }
    if ((uint64_t)positions * text->out > QN__MAX_VALUES) {
        qn__fail(err, QN_USAGE, "an item of %u positions with %u channels has too many values",
                 positions, text->out);
        return qn__remedy(err, QN_USAGE, "at most 268435456 are possible: give fewer channels");
    }
    *layer = (qn__layer){.kind = text->kind,
                         .from = from,
                         .to = {text->out, 1, positions, QN__SEQUENCE},
                         .window = {{1, 1}, {1, 1}, {0, 0}, {1, 1}},
                         .in = values,
                         .out = positions * text->out,
                         .activation = text->activation,
                         .drop_keep = 1.0f,
                         .weights = first,
                         .biases = first,
                         .vectors = 1,
                         .vector = (uint32_t)parameters};
    return QN_OK;
}

/* A prediction only copies. */
static qn__flops flops(const qn__layer *layer) { return (qn__flops){layer->out, 0, layer->out}; }

static void forward(const qn__layer *l, int bits, const float *parameters, const float *a,
                    float *z) {
    const uint32_t channels = l->to.channels;
    (void)bits;
    for (uint32_t t = 0; t < l->to.width; ++t, z += channels) {
        const uint32_t row = qn__token_of(a[t], qn__layer_tokens(l));
        if (row == QN__NO_TOKEN)
            memset(z, 0, channels * sizeof *z);
        else
            memcpy(z, parameters + l->biases + (size_t)row * channels, channels * sizeof *z);
    }
}

/* The items in their order, of each the positions in theirs. */
static void gradient(const qn__layer *l, uint64_t items, const float *a, const float *delta,
                     float *partial) {
    const uint32_t channels = l->to.channels;
    for (uint64_t i = 0; i < items; ++i, a += l->in)
        for (uint32_t t = 0; t < l->to.width; ++t, delta += channels) {
            const uint32_t row = qn__token_of(a[t], qn__layer_tokens(l));
            float *to = partial + (size_t)row * channels;
            if (row == QN__NO_TOKEN)
                continue;
            for (uint32_t c = 0; c < channels; ++c)
                to[c] = to[c] + delta[c];
        }
}

/* A uniform distribution with the standard deviation 0.02. */
static float bound(const qn__layer *layer) {
    (void)layer;
    return QN__EMBEDDING_BOUND;
}

static const char *const names[] = {"weight"};

const qn__layer_ops qn__embedding = {
    .word = "embedding",
    .also = "embed lookup gather token_embedding wte",
    .syntax = "embedding VOCABULARY WIDTH [ACTIVATION] [dropout|droppath P]",
    .contract = 9,
    .reads_features = 1,
    .parse = parse,
    .write = write,
    .steps = qn__layer_always_steps,
    .make = make,
    .flops = flops,
    .forward = forward,
    .gradient = gradient,
    .bound = bound,
    .names = names};
