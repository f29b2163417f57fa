/* pool mean|max|first|last: one number of each channel from the positions of an item, or the pixels
 * of a picture (docs/exactness.md 25.38). Of an item of tokens only those below its length count.
 */
#include "layer/layer.h"
#include "layer/pooled.h"
#include <string.h>

static const char *const words[] = {[QN__POOL_MEAN] = "mean",
                                    [QN__POOL_MAX] = "max",
                                    [QN__POOL_FIRST] = "first",
                                    [QN__POOL_LAST] = "last"};
enum { WORDS = sizeof words / sizeof *words };

static qn_status parse(qn__tokens *tokens, qn__layer_text *layer) {
    static const char *const help =
        "say what it makes of the positions: \"pool mean\", \"pool max\", \"pool first\" or "
        "\"pool last\"; windows are those of \"maxpool\" and \"avgpool\"";
    if (qn__tokens_ended(tokens))
        return qn__tokens_fail(tokens, tokens->at, "the kind of the pool is missing", help);
    for (int i = 0; i < WORDS; ++i)
        if (qn__tokens_is(tokens, words[i])) {
            layer->pooling = (qn__pooling)i;
            qn__tokens_next(tokens);
            return QN_OK;
        }
    return qn__tokens_invalid(tokens, "invalid kind of pool", help);
}

static void write(const qn__layer_text *layer, qn__text *text) {
    qn__text_add(text, " %s", words[layer->pooling]);
}

static qn_status make(const qn__layer_text *text, qn__shape from, uint64_t first, qn__layer *layer,
                      qn_error *err) {
    (void)err;
    *layer = (qn__layer){.kind = text->kind,
                         .from = from,
                         .to = {from.channels, 1, 1, QN__PICTURE},
                         .window = {{1, 1}, {1, 1}, {0, 0}, {1, 1}},
                         .in = qn__shape_volume(from),
                         .out = from.channels,
                         .drop_keep = 1.0f,
                         .weights = first,
                         .biases = first,
                         .pooling = text->pooling};
    return QN_OK;
}

static qn__flops flops(const qn__layer *layer) { return (qn__flops){layer->in, layer->in, 0}; }

static void forward(const qn__layer *l, int bits, const float *parameters, const float *a,
                    float *z) {
    const qn__cover read = qn__pooled_cover(l);
    const uint32_t channels = l->from.channels;
    const float share = qn__pooled_share(read);
    (void)bits, (void)parameters;
    for (uint32_t c = 0; c < channels; ++c) {
        float sum = l->pooling == QN__POOL_MAX && read.end > 0 ? a[c] : 0.0f;
        for (uint32_t t = read.begin; t < read.end; ++t) {
            const float own = a[(size_t)t * channels + c];
            sum = l->pooling != QN__POOL_MAX ? sum + own : own > sum ? own : sum;
        }
        const float result = l->pooling != QN__POOL_MAX ? sum * share : sum;
        z[c] = result + 0.0f;
    }
}

/* The first position with the greatest value. */
static uint32_t greatest(const qn__layer *l, qn__cover read, const float *a, uint32_t c) {
    uint32_t best = read.begin;
    for (uint32_t t = read.begin; t < read.end; ++t)
        best =
            a[(size_t)t * l->from.channels + c] > a[(size_t)best * l->from.channels + c] ? t : best;
    return best;
}

static void backward(const qn__layer *l, int bits, const float *parameters, const float *a,
                     const float *delta, int64_t *sums, float *e) {
    const qn__cover read = qn__pooled_cover(l);
    const uint32_t channels = l->from.channels;
    const float share = qn__pooled_share(read);
    (void)bits, (void)parameters, (void)sums;
    memset(e, 0, l->in * sizeof *e);
    for (uint32_t c = 0; c < channels && read.end > 0; ++c) {
        if (l->pooling == QN__POOL_MAX) {
            e[(size_t)greatest(l, read, a, c) * channels + c] = delta[c] + 0.0f;
            continue;
        }
        const float part = delta[c] * share;
        for (uint32_t t = read.begin; t < read.end; ++t)
            e[(size_t)t * channels + c] = part + 0.0f;
    }
}

const qn__layer_ops qn__pooled = {.word = "pool",
                                  .also = "seqpool sequence_pooling lastpool clspool",
                                  .syntax = "pool mean|max|first|last",
                                  .bare = 1,
                                  .contract = 9,
                                  .reads_length = 1,
                                  .parse = parse,
                                  .write = write,
                                  .make = make,
                                  .flops = flops,
                                  .forward = forward,
                                  .backward = backward};
