/* conv N KxL [stride S] [pad same|none|P] [dilation D] [groups G|depthwise]
 * [nobias|tied]: N channels, each from a window over all channels of the input. */
#include "layer/product.h"
#include "layer/window.h"
#include "base/text/text.h"
#include <stdio.h>
#include <string.h>

#define HELP                                                                                       \
    "write \"conv 32 3x3 relu\": channels, 1 to 16777216, then height and width of the window"

/* The padding of `same`, which keeps height and width at stride 1. Only odd windows have one. */
static int same_pad(const qn__window *w, uint32_t pad[2]) {
    for (int d = 0; d < 2; ++d)
        pad[d] = w->dilation[d] * (w->kernel[d] - 1) / 2;
    return w->kernel[0] % 2 && w->kernel[1] % 2;
}

/* Without a word it is `same` for odd windows, and none for others. */
static void default_pad(const qn__window *w, uint32_t pad[2]) {
    if (!same_pad(w, pad))
        pad[0] = pad[1] = 0;
}

static qn_status parse_pad(qn__tokens *tokens, int *same, qn__window *w) {
    static const char *const help =
        "a padding is \"same\", \"none\" (in other tools \"valid\"), or as "
        "many pixels, 0 to 255: \"pad 1\"";
    *same = qn__tokens_is(tokens, "same");
    w->pad[0] = w->pad[1] = 0;
    if (!*same && !qn__tokens_is(tokens, "none"))
        return qn__tokens_pair(tokens, "padding", 0, 255, help, w->pad);
    if (*same && (w->kernel[0] % 2 == 0 || w->kernel[1] % 2 == 0))
        return qn__tokens_fail(tokens, tokens->at, "only an odd window has the padding \"same\"",
                               "use an odd height and width, such as 3x3, or as many pixels: "
                               "\"pad 1\"");
    qn__tokens_next(tokens);
    return QN_OK;
}

/* "groups G" or "depthwise" */
static qn_status parse_groups(qn__tokens *tokens, uint32_t *groups) {
    const int depthwise = qn__tokens_is(tokens, "depthwise");
    qn_status status = QN_OK;
    qn__tokens_next(tokens);
    if (depthwise)
        *groups = QN__DEPTHWISE;
    else
        status =
            qn__tokens_count(tokens, "number of groups", QN__MAX_WIDTH,
                             "the number of groups divides the channels of the layer and of its "
                             "input: \"groups 4\"; \"depthwise\" alone is a group for each channel",
                             groups);
    if (*groups == 1)
        *groups = 0;
    return status;
}

/* The words after the window, in any order, each once. */
static qn_status parse_words(qn__tokens *tokens, qn__layer_text *layer) {
    static const char *const word[] = {"stride",    "pad",    "dilation", "groups",
                                       "depthwise", "nobias", "tied"};
    qn__window *w = &layer->window;
    int seen[5] = {0, 0, 0, 0, 0}, same = 0;
    qn_status status = QN_OK;
    for (int i = 0; i < 7 && status == QN_OK; ++i) {
        if (!qn__tokens_is(tokens, word[i]))
            continue;
        const int groups = i == 3 || i == 4;
        if (seen[i > 4 ? 4 : groups ? 3 : i]++)
            return qn__tokens_invalid(
                tokens, groups ? "a layer has its groups already, before" : "a layer has only one",
                groups ? "give \"groups G\" or \"depthwise\", once" : "take one of the two out");
        if (i == 1) {
            qn__tokens_next(tokens);
            status = parse_pad(tokens, &same, w);
        } else if (i == 0) {
            status = qn__window_stride(tokens, w);
        } else if (i > 4) {
            qn__tokens_next(tokens);
            layer->no_biases = 1;
            layer->tied = i == 6;
        } else if (i > 2) {
            status = parse_groups(tokens, &layer->conv_groups);
        } else {
            qn__tokens_next(tokens);
            status = qn__tokens_pair(tokens, "dilation", 1, 255,
                                     "a dilation is a whole number from 1 to 255: \"dilation 2\"",
                                     w->dilation);
        }
        i = -1;
    }
    if (!seen[1] || same)
        default_pad(w, w->pad);
    return status;
}

/* What to write: with "conv 3x3 32" these numbers the other way round. */
static const char *help_with(const qn__tokens *tokens, char *text, size_t size) {
    char window[64], channels[64];
    qn__tokens after = *tokens;
    uint64_t value;
    qn__tokens_quote(tokens, window);
    qn__tokens_next(&after);
    if (tokens->size > 20 || after.size > 20 || window[strspn(window, "0123456789xX")] ||
        !qn__parse_u64(after.text + after.at, after.size, &value))
        return HELP;
    snprintf(text, size, "the channels come first, then height and width of the window: \"%s %s\"",
             qn__tokens_quote(&after, channels), window);
    return text;
}

static qn_status parse(qn__tokens *tokens, qn__layer_text *layer) {
    char text[160];
    qn_status status = qn__tokens_count(tokens, "number of channels", QN__MAX_WIDTH,
                                        help_with(tokens, text, sizeof text), &layer->out);
    if (status == QN_OK)
        status = qn__window_kernel(tokens, &layer->window);
    return status == QN_OK ? parse_words(tokens, layer) : status;
}

static void write(const qn__layer_text *layer, qn__text *text) {
    const qn__window *w = &layer->window;
    uint32_t usual[2];
    default_pad(w, usual);
    qn__text_add(text, " %u %ux%u", layer->out, w->kernel[0], w->kernel[1]);
    if (w->stride[0] != 1 || w->stride[1] != 1)
        qn__window_write("stride", w->stride, text);
    if (w->pad[0] == usual[0] && w->pad[1] == usual[1])
        ;
    else if (w->pad[0] == 0 && w->pad[1] == 0)
        qn__text_add(text, " pad none");
    else
        qn__window_write("pad", w->pad, text);
    if (w->dilation[0] != 1 || w->dilation[1] != 1)
        qn__window_write("dilation", w->dilation, text);
    if (layer->conv_groups == QN__DEPTHWISE)
        qn__text_add(text, " depthwise");
    else if (layer->conv_groups)
        qn__text_add(text, " groups %u", layer->conv_groups);
    if (layer->no_biases)
        qn__text_add(text, layer->tied ? " tied" : " nobias");
}

/* The channels of both sides must be those of whole groups. */
static qn_status make_groups(const qn__layer_text *text, qn__layer *l, qn_error *err) {
    const uint32_t in = l->from.channels, out = l->to.channels;
    const uint32_t groups = text->conv_groups == QN__DEPTHWISE ? in : text->conv_groups;
    l->conv_groups = groups > 1 ? groups : 0;
    if (groups < 2 || (in % groups == 0 && out % groups == 0))
        return QN_OK;
    qn__fail(err, QN_USAGE, "%u channel%s%s cannot be divided into %u groups",
             in % groups ? in : out, (in % groups ? in : out) == 1 ? "" : "s",
             in % groups ? " of the input" : "", groups);
    return qn__remedy(err, QN_USAGE,
                      text->conv_groups == QN__DEPTHWISE
                          ? "give the layer as many channels as its input has, or a multiple"
                          : "use a number that divides the channels of the layer and of its input");
}

/* Each position by itself; network.c compares the table. */
static qn_status check_tied(const qn__layer *l, qn_error *err) {
    if (qn__window_taps(l) == 1 && !l->conv_groups &&
        l->in == l->from.channels * (l->out / l->to.channels))
        return QN_OK;
    qn__fail(err, QN_USAGE, "only a convolution of each position by itself can be tied");
    return qn__remedy(err, QN_USAGE,
                      "write \"conv 50257 1x1 tied softmax\", without stride or pad");
}

static qn_status make(const qn__layer_text *text, qn__shape from, uint64_t first, qn__layer *layer,
                      qn_error *err) {
    qn_status status = qn__window_make(text, from, text->out, first, layer, err);
    if (status == QN_OK)
        status = make_groups(text, layer, err);
    if (status != QN_OK)
        return status;
    const uint64_t depth = (uint64_t)qn__window_taps(layer) * qn__layer_reads(layer);
    if (depth > QN__MAX_WIDTH) {
        qn__fail(err, QN_USAGE, "a window of %ux%u pixels with %u channels is too large",
                 text->window.kernel[0], text->window.kernel[1], from.channels);
        return qn__remedy(err, QN_USAGE, "make the window smaller");
    }
    layer->depth = (uint32_t)depth;
    layer->biases = first + (text->tied ? 0 : depth * text->out);
    layer->no_biases = text->no_biases;
    layer->tied = text->tied;
    return text->tied ? check_tied(layer, err) : QN_OK;
}

static uint64_t fan_out(const qn__layer *l) {
    return (uint64_t)qn__window_taps(l) * l->to.channels / (l->conv_groups ? l->conv_groups : 1);
}

static int steps(const qn__layer *l) {
    const qn__window *w = &l->window;
    return w->kernel[0] == 1 && w->kernel[1] == 1 && w->stride[0] == 1 && w->stride[1] == 1 &&
           w->pad[0] == 0 && w->pad[1] == 0;
}

const qn__layer_ops qn__conv = {
    .word = "conv",
    .also = "conv2d convolution convolution2d depthwiseconv2d",
    .syntax = "conv CHANNELS HEIGHTxWIDTH [stride S] [pad same|none|P] [dilation D] "
              "[groups G|depthwise] [nobias|tied] [ACTIVATION] [dropout|droppath P]",
    .contract = 5,
    .contract_of = qn__product_contract,
    .parse = parse,
    .write = write,
    .steps = steps,
    .make = make,
    .fan_out = fan_out,
    .flops = qn__product_flops,
    .forward = qn__product_forward,
    .backward = qn__product_backward,
    .gradient = qn__product_gradient,
    .intgemm_gradient = qn__product_intgemm_gradient};
