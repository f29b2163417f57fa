/* convtranspose CHANNELS KxL [stride S] [pad P] [outpad Q] [dilation D] [nobias]: the convolution
 * that goes from the outputs of another one to its inputs. It is a convolution over the input with
 * S - 1 pixels of nothing between two neighbours, so all that multiplies is that of conv
 * (docs/exactness.md 24.42). */
#include "layer/product.h"

#include "layer/window.h"

#define HELP                                                                                       \
    "a layer is written as \"convtranspose CHANNELS HEIGHTxWIDTH [stride S]\", with at most "      \
    "16777216 channels: \"convtranspose 32 2x2 stride 2\""

/* 24.42: with these the output has S times the pixels of the input, in one direction. */
static void usual(const qn__window *w, int d, uint32_t *pad, uint32_t *outpad) {
    const int64_t stride = w->stride[d], reach = (int64_t)w->dilation[d] * (w->kernel[d] - 1) + 1;
    const int64_t more = reach - stride, half = more < 0 ? 0 : (more + 1) / 2;
    const int64_t rest = 2 * half - more;
    const int fits = rest < stride || rest < w->dilation[d];
    *pad = fits ? (uint32_t)half : 0;
    *outpad = fits ? (uint32_t)rest : 0;
}

static qn_status parse_pad(qn__tokens *tokens, int *same, qn__window *w) {
    const int none = qn__tokens_is(tokens, "none");
    *same = qn__tokens_is(tokens, "same");
    if (none || *same) {
        w->pad[0] = w->pad[1] = 0;
        qn__tokens_next(tokens);
        return QN_OK;
    }
    return qn__tokens_pair(tokens, "padding", 0, 255,
                           "a padding is \"same\", \"none\" or so many pixels: \"pad 1\"", w->pad);
}

static qn_status parse_word(qn__tokens *tokens, int word, int *same, qn__layer_text *layer) {
    qn__window *w = &layer->window;
    if (word == 0)
        return qn__window_stride(tokens, w);
    qn__tokens_next(tokens);
    layer->no_biases |= word == 4;
    if (word == 4)
        return QN_OK;
    if (word == 1)
        return parse_pad(tokens, same, w);
    if (word == 2)
        return qn__tokens_pair(tokens, "outpad", 0, 254,
                               "an outpad is so many rows and columns more: \"outpad 1\"",
                               layer->outpad);
    return qn__tokens_pair(tokens, "dilation", 1, 255,
                           "a dilation is a whole number from 1 to 255: \"dilation 2\"",
                           w->dilation);
}

/* What the words leave out, and whether they fit each other. */
static qn_status settle(qn__tokens *tokens, const size_t at[5], const int seen[5], int same,
                        qn__layer_text *layer) {
    qn__window *w = &layer->window;
    for (int d = 0; d < 2; ++d) {
        uint32_t pad, outpad;
        usual(w, d, &pad, &outpad);
        if (!seen[1] || same) {
            w->pad[d] = pad;
            layer->outpad[d] = seen[2] ? layer->outpad[d] : outpad;
        }
        if (w->pad[d] > w->dilation[d] * (w->kernel[d] - 1))
            return qn__tokens_fail(tokens, at[1], "the padding is larger than the window",
                                   "it is at most the window less 1, times the dilation");
        if (layer->outpad[d] && layer->outpad[d] >= w->stride[d] &&
            layer->outpad[d] >= w->dilation[d])
            return qn__tokens_fail(tokens, at[2], "the outpad is not below the stride",
                                   "it is less than the stride, or than the dilation");
    }
    return QN_OK;
}

static qn_status parse(qn__tokens *tokens, qn__layer_text *layer) {
    static const char *const word[] = {"stride", "pad", "outpad", "dilation", "nobias"};
    int seen[5] = {0}, same = 0;
    size_t at[5] = {0};
    qn_status status =
        qn__tokens_count(tokens, "number of channels", QN__MAX_WIDTH, HELP, &layer->out);
    if (status == QN_OK)
        status = qn__window_kernel(tokens, &layer->window);
    for (int i = 0; i < 5 && status == QN_OK; ++i) {
        if (!qn__tokens_is(tokens, word[i]))
            continue;
        at[i] = tokens->at;
        if (seen[i]++)
            return qn__tokens_invalid(tokens, "a layer has only one", "take one of the two out");
        status = parse_word(tokens, i, &same, layer);
        i = -1;
    }
    return status == QN_OK ? settle(tokens, at, seen, same, layer) : status;
}

static void write(const qn__layer_text *layer, qn__text *text) {
    const qn__window *w = &layer->window;
    int differs = 0;
    for (int d = 0; d < 2; ++d) {
        uint32_t pad, outpad;
        usual(w, d, &pad, &outpad);
        differs |= w->pad[d] != pad || layer->outpad[d] != outpad;
    }
    qn__text_add(text, " %u %ux%u", layer->out, w->kernel[0], w->kernel[1]);
    if (w->stride[0] != 1 || w->stride[1] != 1)
        qn__window_write("stride", w->stride, text);
    if (differs && w->pad[0] == 0 && w->pad[1] == 0)
        qn__text_add(text, " pad none");
    else if (differs)
        qn__window_write("pad", w->pad, text);
    if (differs && (layer->outpad[0] || layer->outpad[1]))
        qn__window_write("outpad", layer->outpad, text);
    if (w->dilation[0] != 1 || w->dilation[1] != 1)
        qn__window_write("dilation", w->dilation, text);
    if (layer->no_biases)
        qn__text_add(text, " nobias");
}

/* Pixels of the output; 0: none is left. */
static uint64_t pixels(const qn__layer_text *text, int d, uint32_t from) {
    const qn__window *w = &text->window;
    const int64_t to = ((int64_t)from - 1) * w->stride[d] +
                       (int64_t)w->dilation[d] * (w->kernel[d] - 1) + 1 - 2 * (int64_t)w->pad[d] +
                       text->outpad[d];
    return to < 1 ? 0 : (uint64_t)to;
}

static qn_status make(const qn__layer_text *text, qn__shape from, uint64_t first, qn__layer *l,
                      qn_error *err) {
    const qn__window *w = &text->window;
    const uint64_t to[2] = {pixels(text, 0, from.height), pixels(text, 1, from.width)};
    const uint64_t depth = (uint64_t)w->kernel[0] * w->kernel[1] * from.channels;
    if (to[0] == 0 || to[1] == 0) {
        qn__fail(err, QN_USAGE, "the padding leaves no pixel of the output");
        return qn__remedy(err, QN_USAGE, "make the padding smaller, or the window larger");
    }
    if (depth > QN__MAX_WIDTH) {
        qn__fail(err, QN_USAGE, "a window of %ux%u pixels with %u channels is too large",
                 w->kernel[0], w->kernel[1], from.channels);
        return qn__remedy(err, QN_USAGE, "make the window smaller");
    }
    const qn_status status = qn__window_enlarge(text, from, text->out, to, first, l, err);
    for (int d = 0; d < 2; ++d) {
        l->spread[d] = w->stride[d];
        l->window.stride[d] = 1;
        l->window.pad[d] = w->dilation[d] * (w->kernel[d] - 1) - w->pad[d];
    }
    l->depth = (uint32_t)depth;
    l->no_biases = text->no_biases;
    l->biases = first + depth * text->out;
    return status;
}

static uint64_t fan_out(const qn__layer *l) {
    return (uint64_t)qn__window_taps(l) * l->to.channels;
}

/* On average, where the window is as large as the stride or larger. */
static uint64_t fan_in(const qn__layer *l) {
    const uint64_t reads = l->depth / ((uint64_t)l->spread[0] * l->spread[1]);
    return reads ? reads : 1;
}

/* Each value of the input is multiplied by each weight of its channel. */
static qn__flops flops(const qn__layer *l) {
    const uint64_t flops = 2 * (uint64_t)l->in * qn__window_taps(l) * l->to.channels;
    return (qn__flops){flops, flops, flops};
}

const qn__layer_ops qn__convtranspose = {
    .word = "convtranspose",
    .also = "convtranspose2d conv2dtranspose transposedconv deconv deconvolution upconv",
    .syntax = "convtranspose CHANNELS HEIGHTxWIDTH [stride S] [pad same|none|P] [outpad Q] "
              "[dilation D] [nobias] [ACTIVATION] [dropout|droppath P]",
    .contract = 8,
    .parse = parse,
    .write = write,
    .make = make,
    .fan_out = fan_out,
    .fan_in = fan_in,
    .flops = flops,
    .forward = qn__product_forward,
    .backward = qn__product_backward,
    .gradient = qn__product_gradient,
    .intgemm_gradient = qn__product_intgemm_gradient};
