#include "layer/pooling.h"

static qn_status parse_pad(qn__tokens *tokens, qn__window *w) {
    const size_t at = tokens->at;
    const qn_status status = qn__tokens_pair(
        tokens, "padding", 0, 127,
        "a padding is as many pixels, at most half the window: \"maxpool 3 stride 2 pad 1\"",
        w->pad);
    if (status != QN_OK || (w->pad[0] <= w->kernel[0] / 2 && w->pad[1] <= w->kernel[1] / 2))
        return status;
    return qn__tokens_fail(
        tokens, at, "the padding is more than half the window",
        "with more, a window could lie outside the input: make the padding smaller");
}

static qn_status parse_word(qn__tokens *tokens, int word, qn__layer_text *layer) {
    if (word == 0)
        return qn__window_stride(tokens, &layer->window);
    qn__tokens_next(tokens);
    if (word == 1)
        return parse_pad(tokens, &layer->window);
    *(word == 2 ? &layer->ceil : &layer->uncounted) = 1;
    return QN_OK;
}

/* Without `uncounted` a mean would count the padding, but how much of it, a window beyond the
 * padding does not say. */
static qn_status check(qn__tokens *tokens, size_t ceil, const qn__layer_text *layer) {
    const int padded = layer->window.pad[0] || layer->window.pad[1];
    if (layer->kind != QN__LAYER_AVGPOOL || !layer->ceil || !padded || layer->uncounted)
        return QN_OK;
    return qn__tokens_fail(tokens, ceil, "with \"ceil\" the padding of avgpool cannot count",
                           "write \"uncounted\" too, or leave \"ceil\" out");
}

/* "to 7x7": the size of the output. */
static qn_status parse_size(qn__tokens *tokens, qn__layer_text *layer) {
    qn__tokens_next(tokens);
    layer->window = (qn__window){.stride = {1, 1}, .dilation = {1, 1}};
    layer->fitted = 1;
    return qn__tokens_pair(tokens, "size", 1, 4096,
                           "a size of outputs is a number of rows and one of columns, from 1 to "
                           "4096: \"avgpool to 7x7\"",
                           layer->window.kernel);
}

qn_status qn__pool_parse(qn__tokens *tokens, qn__layer_text *layer) {
    static const char *const word[] = {"stride", "pad", "ceil", "uncounted"};
    const int words = layer->kind == QN__LAYER_AVGPOOL ? 4 : 3;
    int seen[4] = {0};
    size_t at[4] = {0};
    if (qn__tokens_is(tokens, "to"))
        return parse_size(tokens, layer);
    qn_status status = qn__window_kernel(tokens, &layer->window);
    for (int d = 0; d < 2; ++d)
        layer->window.stride[d] = layer->window.kernel[d];
    for (int i = 0; i < words && status == QN_OK; ++i) {
        if (!qn__tokens_is(tokens, word[i]))
            continue;
        at[i] = tokens->at;
        if (seen[i]++)
            return qn__tokens_invalid(tokens, "a layer has only one", "take one of the two out");
        status = parse_word(tokens, i, layer);
        i = -1;
    }
    if (status == QN_OK)
        status = check(tokens, at[2], layer);
    if (!layer->window.pad[0] && !layer->window.pad[1])
        layer->uncounted = 0; /* there is nothing to count */
    return status;
}

void qn__pool_write(const qn__layer_text *layer, qn__text *text) {
    const qn__window *w = &layer->window;
    qn__text_add(text, layer->fitted ? " to %ux%u" : " %ux%u", w->kernel[0], w->kernel[1]);
    if (layer->fitted)
        return;
    if (w->stride[0] != w->kernel[0] || w->stride[1] != w->kernel[1])
        qn__window_write("stride", w->stride, text);
    if (w->pad[0] || w->pad[1])
        qn__window_write("pad", w->pad, text);
    if (layer->ceil)
        qn__text_add(text, " ceil");
    if (layer->uncounted)
        qn__text_add(text, " uncounted");
}

int qn__pool_contract(const qn__layer_text *layer) {
    return layer->fitted || layer->ceil || layer->window.pad[0] || layer->window.pad[1] ? 8 : 0;
}

qn_status qn__pool_make(const qn__layer_text *text, qn__shape from, uint64_t first,
                        qn__layer *layer, qn_error *err) {
    const uint64_t to[2] = {text->window.kernel[0], text->window.kernel[1]};
    const qn_status status = text->fitted
                                 ? qn__window_fit(text, from, to, first, layer, err)
                                 : qn__window_make(text, from, from.channels, first, layer, err);
    layer->partial = text->kind == QN__LAYER_AVGPOOL && qn__window_taps(layer) > 1 &&
                     (text->fitted || text->ceil || text->uncounted);
    return status;
}

/* The pixels of all fitted windows of one direction: two neighbours share a pixel, unless it ends
 * between them. */
static uint64_t covered(uint32_t size, uint32_t limit) {
    uint32_t a = size, b = limit;
    while (b) {
        const uint32_t rest = a % b;
        a = b;
        b = rest;
    }
    return (uint64_t)size + limit - a;
}

qn__flops qn__pool_flops(const qn__layer *layer) {
    const uint64_t taps =
        layer->fitted ? covered(layer->to.height, layer->from.height) *
                            covered(layer->to.width, layer->from.width)
                      : (uint64_t)layer->to.height * layer->to.width * qn__window_taps(layer);
    const uint64_t flops = taps * layer->to.channels;
    return (qn__flops){flops, flops, 0};
}

/* Taps that lie inside in one direction. */
static uint32_t inside(const qn__layer *l, int d, uint32_t at, uint32_t from) {
    if (l->fitted) {
        const qn__cover c = qn__cover_of(at, d ? l->to.width : l->to.height, from);
        return c.end - c.begin;
    }
    const int64_t begin = (int64_t)at * l->window.stride[d] - l->window.pad[d];
    const int64_t end = begin + l->window.kernel[d];
    return (uint32_t)((end < from ? end : from) - (begin > 0 ? begin : 0));
}

float qn__pool_share(const qn__layer *l, uint32_t y, uint32_t x) {
    const uint32_t taps = l->partial
                              ? inside(l, 0, y, l->from.height) * inside(l, 1, x, l->from.width)
                              : qn__window_taps(l);
    return 1.0f / (float)taps;
}
