/* position rotary: queries and keys are turned by angles that grow with the position (Su et al.
 * 2021). A score then depends on the distance of two positions. Channel c of a head and channel
 * c + d/2 are a pair, as Llama has them. It stands before attention, and leaves the values. */
#include "layer/turned.h"
#include <math.h>

#define USUAL_BASE 10000.0f

static const char *const help =
    "\"position rotary 8 kv 2 base 500000 scale 8 llama3 1 4 8192\": scale takes the factor, and "
    "llama3 the least and the most turns and the positions of the first training";

/* A number from `least` on. */
static qn_status parse_number(qn__tokens *tokens, const char *what, float least, float *out) {
    if (qn__tokens_ended(tokens))
        return qn__tokens_fail(tokens, tokens->at, "a number is missing at the layer's end", help);
    if (!qn__parse_float(tokens->text + tokens->at, tokens->size, out) ||
        !(*out >= least && *out <= 0x1p100f))
        return qn__tokens_invalid(tokens, what, help);
    qn__tokens_next(tokens);
    return QN_OK;
}

/* The numbers of the rule of Llama 3. */
static qn_status parse_rule(qn__tokens *tokens, qn__turns *turns) {
    const size_t begin = tokens->at;
    qn__tokens_next(tokens);
    qn_status status = parse_number(tokens, "invalid number of turns", 0.0f, &turns->low);
    if (status == QN_OK)
        status = parse_number(tokens, "invalid number of turns", 0.0f, &turns->high);
    if (status == QN_OK && !(turns->low < turns->high))
        return qn__tokens_fail(tokens, begin, "the first number of turns must be the lower one",
                               help);
    return status == QN_OK ? qn__tokens_count(tokens, "number of positions", QN__TURNED_POSITIONS,
                                              help, &turns->context)
                           : status;
}

static qn_status parse_scale(qn__tokens *tokens, qn__turns *turns) {
    const qn_status status = parse_number(tokens, "invalid factor of scale", 1.0f, &turns->factor);
    if (status == QN_OK && !qn__tokens_ended(tokens) && qn__tokens_is(tokens, "llama3"))
        return parse_rule(tokens, turns);
    return status;
}

static qn_status parse_groups(qn__tokens *tokens, qn__layer_text *layer) {
    return qn__tokens_count(tokens, "number of heads of keys", QN__MAX_WIDTH,
                            "give the \"kv\" of the attention after it", &layer->kv_heads);
}

static qn_status parse_base(qn__tokens *tokens, qn__turns *turns) {
    return parse_number(tokens, "invalid base", 1.0f, &turns->base);
}

/* What is the usual becomes 0, so that a text has one form. */
static void forget_usual(qn__layer_text *layer) {
    if (layer->kv_heads == layer->heads)
        layer->kv_heads = 0;
    if (layer->turns.base == USUAL_BASE)
        layer->turns.base = 0.0f;
    if (layer->turns.factor == 1.0f)
        layer->turns = (qn__turns){.base = layer->turns.base};
}

qn_status qn__rotary_words(qn__tokens *tokens, qn__layer_text *layer) {
    static const char *const words[] = {"kv", "base", "scale"};
    int seen[3] = {0};
    qn_status status = qn__tokens_count(
        tokens, "number of heads", QN__MAX_WIDTH,
        "give the number of heads of the attention after it: \"position rotary 6\"", &layer->heads);
    while (status == QN_OK && !qn__tokens_ended(tokens)) {
        int word = 0;
        while (word < 3 && !qn__tokens_is(tokens, words[word]))
            ++word;
        if (word == 3)
            return qn__tokens_invalid(tokens, "position rotary has no word", help);
        if (seen[word]++)
            return qn__tokens_invalid(tokens, "a layer has only one", "take one of the two out");
        qn__tokens_next(tokens);
        status = word == 0   ? parse_groups(tokens, layer)
                 : word == 1 ? parse_base(tokens, &layer->turns)
                             : parse_scale(tokens, &layer->turns);
    }
    forget_usual(layer);
    return status;
}

static void write_number(const char *word, float value, qn__text *text) {
    char number[32];
    qn__float_text(value, number);
    qn__text_add(text, "%s %s", word, number);
}

static void write(const qn__layer_text *layer, qn__text *text) {
    const qn__turns *turns = &layer->turns;
    qn__text_add(text, " rotary %u", layer->heads);
    if (layer->kv_heads)
        qn__text_add(text, " kv %u", layer->kv_heads);
    if (turns->base != 0.0f)
        write_number(" base", turns->base, text);
    if (turns->factor != 0.0f)
        write_number(" scale", turns->factor, text);
    if (turns->context) {
        write_number(" llama3", turns->low, text);
        write_number("", turns->high, text);
        qn__text_add(text, " %u", turns->context);
    }
}

static qn_status make(const qn__layer_text *text, qn__shape from, uint64_t first, qn__layer *layer,
                      qn_error *err) {
    const uint32_t kv_heads = text->kv_heads ? text->kv_heads : text->heads;
    const uint64_t heads = text->heads + 2 * (uint64_t)kv_heads;
    if (from.channels % (2 * heads) != 0) {
        qn__fail(err, QN_USAGE, "%u channel%s cannot be divided into %llu heads of pairs",
                 from.channels, from.channels == 1 ? "" : "s", (unsigned long long)heads);
        return qn__remedy(
            err, QN_USAGE,
            "position rotary reads %u heads of queries, %u of keys and %u of values, each with an "
            "even number of channels: let the layer before give a multiple of %llu",
            text->heads, kv_heads, kv_heads, (unsigned long long)(2 * heads));
    }
    *layer = (qn__layer){.kind = text->kind,
                         .from = from,
                         .to = from,
                         .window = {{1, 1}, {1, 1}, {0, 0}, {1, 1}},
                         .in = qn__shape_volume(from),
                         .out = qn__shape_volume(from),
                         .drop_keep = 1.0f,
                         .weights = first,
                         .biases = first,
                         .heads = text->heads,
                         .kv_heads = kv_heads,
                         .turns = text->turns};
    if (layer->turns.base == 0.0f)
        layer->turns.base = USUAL_BASE;
    if (layer->turns.factor == 0.0f)
        layer->turns.factor = 1.0f;
    return qn__turned_check(from, err);
}

/* A pair takes four multiplications and two additions. */
static qn__flops flops(const qn__layer *l) {
    const uint64_t turned = (uint64_t)qn__rotary_channels(l) * l->from.height * l->from.width;
    return (qn__flops){.forward = 3 * turned, .backward = 3 * turned};
}

/* A pair of all turned heads at a position, whose channels begin at a and z. */
static void turn_pair(const qn__layer *l, uint32_t pair, float cosine, float sine, const float *a,
                      float *z) {
    const uint32_t pairs = qn__turned_pairs(l), turned = qn__rotary_channels(l);
    for (uint32_t c = pair; c < turned; c += 2 * pairs) {
        const float x = a[c], y = a[c + pairs];
        z[c] = fmaf(y, -sine, x * cosine) + 0.0f;
        z[c + pairs] = fmaf(x, sine, y * cosine) + 0.0f;
    }
}

/* `sign` -1: back. */
static void turn_item(const qn__layer *l, float sign, const float *a, float *z) {
    const uint32_t pairs = qn__turned_pairs(l), channels = l->from.channels;
    for (uint32_t i = 0; i < pairs; ++i) {
        const float frequency = qn__turn_frequency(&l->turns, pairs, i);
        float position = 0.0f;
        for (size_t at = 0; at < l->in; at += channels, position += 1.0f) {
            float cosine, sine;
            const float angle = position * frequency;
            qn__turn(angle, &cosine, &sine);
            turn_pair(l, i, cosine, sign * sine, a + at, z + at);
        }
    }
    for (size_t at = 0; at < l->in; at += channels)
        for (uint32_t c = qn__rotary_channels(l); c < channels; ++c)
            z[at + c] = a[at + c] + 0.0f;
}

static void forward(const qn__layer *l, int bits, const float *parameters, const float *a,
                    float *z) {
    (void)bits, (void)parameters;
    turn_item(l, 1.0f, a, z);
}

static void backward(const qn__layer *l, int bits, const float *parameters, const float *a,
                     const float *delta, int64_t *unused, float *e) {
    (void)bits, (void)parameters, (void)a, (void)unused;
    turn_item(l, -1.0f, delta, e);
}

const qn__layer_ops qn__rotary = {.word = "position",
                                  .syntax =
                                      "position rotary H [kv G] [base X] [scale X [llama3 X X N]]",
                                  .bare = 1,
                                  .contract = 9,
                                  .write = write,
                                  .make = make,
                                  .flops = flops,
                                  .forward = forward,
                                  .backward = backward,
                                  .steps = qn__layer_always_steps};
