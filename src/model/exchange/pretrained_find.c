#include "model/exchange/pretrained_find.h"

#include "base/memory.h"
#include "layer/product.h"
#include "model/exchange/layers_alike.h"
#include "model/recipe/tables.h"
#include <stdio.h>
#include <string.h>

/* ------------------------------------------------------------------ sizes */
static void find_turns(const qn__turns *turns, qn__pretrained_sizes *s) {
    s->base = (double)turns->base;
    s->factor = (double)turns->factor;
    s->low = (double)turns->low;
    s->high = (double)turns->high;
    s->trained = turns->context;
}

/* Of the first attention, and of the convolution after it. */
static void find_heads(const qn__pretrained_found *x, uint32_t l, qn__pretrained_sizes *s) {
    const qn__layer_text *layer = x->network->layer;
    s->heads = layer[l].heads;
    s->groups = layer[l].kv_heads ? layer[l].kv_heads : s->heads;
    s->head = x->layer[l].to.channels / s->heads;
    s->biases = l + 1 < x->network->layers && !x->layer[l + 1].no_biases;
}

/* Of the last layer. Tables of token types have two rows in checkpoints: 25.82. */
static void find_head(const qn__pretrained_found *x, qn__pretrained_sizes *s) {
    const qn__layer_text *last = &x->network->layer[x->network->layers - 1];
    s->types = 2;
    s->tied = (uint32_t)last->tied;
    s->outputs = last->out;
    snprintf(s->answer, sizeof s->answer, "%s",
             qn__table_name(&qn__activations, (int)last->activation));
}

/* What a row needs to know, from the layers that have it. */
static void find_sizes(qn__pretrained_found *x) {
    const qn__network *n = x->network;
    qn__pretrained_sizes *s = &x->sizes;
    const qn__shape *to = &x->layer[0].to;
    *s = (qn__pretrained_sizes){.vocabulary = n->layer[0].vocabulary,
                                .width = n->layer[0].out,
                                .positions = to->width * to->height};
    for (uint32_t l = 0; l < n->layers; ++l) {
        const qn__layer_text *layer = &n->layer[l];
        const qn__activation act = layer->activation;
        if (layer->kind == QN__LAYER_ROTARY)
            find_turns(&x->layer[l].turns, s);
        if (layer->kind == QN__LAYER_ATTENTION && s->blocks++ == 0)
            find_heads(x, l, s);
        if (s->epsilon == 0 && x->layer[l].norm_epsilon != 0)
            s->epsilon = (double)x->layer[l].norm_epsilon;
        if (s->inner || layer->kind != QN__LAYER_CONV || act == QN__ACT_NONE ||
            act == QN__ACT_SOFTMAX)
            continue;
        s->inner = layer->out;
        snprintf(s->activation, sizeof s->activation, "%s",
                 qn__table_name(&qn__activations, (int)act));
    }
    find_head(x, s);
    if (!s->inner) { /* of another network: a text is compared to say where it differs */
        s->inner = 4 * s->width;
        snprintf(s->activation, sizeof s->activation, "gelu");
    }
    s->heads = s->heads ? s->heads : 1;
    s->groups = s->groups ? s->groups : 1;
    s->head = s->head ? s->head : 1;
    s->base = s->base > 0 ? s->base : 10000;
    s->factor = s->factor > 0 ? s->factor : 1;
    s->epsilon = s->epsilon > 0 ? s->epsilon : 1e-5;
}

/* ------------------------------------------------------------------ the row */

/* The first layer that differs; the number of layers: none does. */
static uint32_t first_difference(const qn__pretrained_found *x) {
    const qn__network *own = x->network;
    uint32_t l = 0;
    while (l < own->layers && l < x->known.layers &&
           qn__layers_alike(own->layer[l], x->known.layer[l]))
        ++l;
    return l;
}

/* The network of the row with these sizes. */
static int expand(qn__pretrained_found *x, const qn__pretrained *row) {
    qn__text text = {0};
    qn__pretrained_expand(row, &x->sizes, &text, x->named);
    const int read =
        !text.failed && text.data && qn__network_parse(text.data, &x->known, NULL) == QN_OK;
    qn__text_release(&text);
    return read;
}

static qn_status refuse(const qn__pretrained_found *x, uint32_t layer,
                        const qn__pretrained *nearest, qn_error *err) {
    char known[200];
    const qn__network *own = x->network;
    char *text = layer < own->layers ? qn__exported_text(own->layer[layer]) : NULL;
    qn__pretrained_list(known, sizeof known);
    qn__fail(err, QN_UNSUPPORTED, "the network is not one that transformers has by these names");
    if (nearest && text && layer > 2)
        qn__at(err, "layer %u, \"%.100s\", where %s differs", layer, text, nearest->type);
    qn__free(text);
    return qn__remedy(err, QN_UNSUPPORTED,
                      "these are known: %s, with the layers that an import of them has; other "
                      "networks can be written as ONNX",
                      known);
}

static qn_status find_row(qn__pretrained_found *x, qn_error *err) {
    const qn__pretrained *nearest = NULL, *row;
    uint32_t most = 0;
    for (uint32_t i = 0; (row = qn__pretrained_row(i)); ++i) {
        if (x->network->layer[0].kind != QN__LAYER_EMBEDDING || !expand(x, row))
            continue;
        const uint32_t same = first_difference(x);
        if (same == x->network->layers && same == x->known.layers) {
            x->row = row;
            return QN_OK;
        }
        nearest = same > most ? row : nearest;
        most = same > most ? same : most;
    }
    return refuse(x, most, nearest, err);
}

qn_status qn__pretrained_find(const qn__network *network, const qn__layer *layer,
                              qn__pretrained_found *out, qn_error *err) {
    out->network = network;
    out->layer = layer;
    find_sizes(out);
    return find_row(out, err);
}

/* ------------------------------------------------------------------ tensors */

int qn__pretrained_next_part(const qn__pretrained_found *found, const qn__layer *l,
                             const qn__pretrained_layer *named, qn__pretrained_part *part) {
    const char *at = part->module ? part->module + part->size : named->module;
    const int parts = strchr(named->module, '+') != NULL;
    if (part->module && *at != '+')
        return 0;
    const uint64_t heads = part->module ? found->sizes.groups : found->sizes.heads;
    part->first = part->module ? part->first + part->rows : 0;
    part->rows = parts ? heads * found->sizes.head : l->to.channels;
    part->module = part->module ? at + 1 : at;
    part->size = strcspn(part->module, "+|");
    return 1;
}

void qn__pretrained_name(const qn__pretrained *row, const char *before, const char *module,
                         size_t size, const char *part, char name[QN__PRETRAINED_TENSOR]) {
    const int root = *module == '/';
    snprintf(name, QN__PRETRAINED_TENSOR, "%s%s%.*s%s%s", before, root ? "" : row->prefix,
             (int)(size - (size_t)root), module + root, *part ? "." : "", part);
}

void qn__pretrained_weights(const float *parameters, const qn__layer *l, int turned, uint64_t first,
                            uint64_t rows, float *to) {
    const uint64_t reads = l->depth, count = reads * l->to.channels;
    for (uint64_t k = 0; k < count; ++k) {
        const uint64_t filed = qn__product_filed(l, k), row = filed / reads, c = filed % reads;
        if (row >= first && row - first < rows)
            to[turned ? c * rows + (row - first) : (row - first) * reads + c] =
                parameters[l->weights + k];
    }
}
