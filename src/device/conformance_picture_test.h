/* Random cases with pictures, convolutions and pooling. Static functions for the conformance
 * suite. */
#ifndef QN_DEVICE_CONFORMANCE_PICTURE_TEST_H
#define QN_DEVICE_CONFORMANCE_PICTURE_TEST_H

#include "device/conformance_case_test.h"
#include "layer/layer.h"
#include <stdlib.h>

/* Attention of half of the cases with integers has integers, too (docs/exactness.md 25.25). */
static inline void attention_some(test_case *c) {
    if (c->program.arith != QN__ARITH_F32 && c->seed / 3 % 2)
        c->program.attention_arith = QN__ATTENTION_INTEGERS;
}

/* Output pixels of a window along one direction; 0: it does not fit. */
static uint32_t fitting(const qn__window *w, int d, uint32_t in) {
    const uint32_t reach = w->dilation[d] * (w->kernel[d] - 1) + 1, padded = in + 2 * w->pad[d];
    return padded < reach ? 0 : (padded - reach) / w->stride[d] + 1;
}

/* A pool with padding, or whose last windows reach beyond it; a mean that counts what lies inside.
 */
static void draw_pool_words(test_case *c, qn__layer *l) {
    const qn__window *w = &l->window;
    uint32_t *out[2] = {&l->to.height, &l->to.width};
    const uint32_t in[2] = {l->from.height, l->from.width};
    const int ceil = below(c, 3) == 0;
    for (int d = 0; d < 2; ++d) {
        const uint32_t next = *out[d] * w->stride[d];
        *out[d] += ceil && next < in[d] + w->pad[d] && next + w->kernel[d] > in[d] + 2 * w->pad[d];
    }
    l->partial =
        l->kind == QN__LAYER_AVGPOOL && (ceil || below(c, 2)) && w->kernel[0] * w->kernel[1] > 1;
}

/* A pool to a size, or pixels that are repeated. */
static void draw_fitted(test_case *c, qn__layer *l) {
    const int blends = l->kind == QN__LAYER_UPSAMPLE && c->seed / 12 % 2;
    qn__layer_text text = {.kind = l->kind, .fitted = blends ? QN__BLENDS : 1};
    for (int d = 0; d < 2; ++d)
        text.window.kernel[d] = 1 + below(c, l->kind == QN__LAYER_UPSAMPLE ? 3 : 10);
    qn__layer_ops_of(l->kind)->make(&text, l->from, 0, l, NULL);
}

/* A transposed convolution, whose output has at least a pixel. */
static void draw_transposed(test_case *c, qn__layer *l) {
    qn__layer_text text = {.kind = l->kind, .out = l->to.channels};
    const uint32_t in[2] = {l->from.height, l->from.width};
    for (int d = 0; d < 2; ++d) {
        qn__window *w = &text.window;
        w->kernel[d] = 1 + below(c, 4);
        w->stride[d] = 1 + below(c, 3);
        w->dilation[d] = 1 + below(c, 3) / 2;
        w->pad[d] = in[d] > 3 ? below(c, w->dilation[d] * (w->kernel[d] - 1) + 1) : 0;
        while (2 * w->pad[d] >= (in[d] - 1) * w->stride[d] + 1)
            --w->pad[d];
        text.outpad[d] = below(c, w->stride[d]);
    }
    qn__layer_ops_of(l->kind)->make(&text, l->from, 0, l, NULL);
}

/* A window that fits. Pools have no dilation; every convolution output reads at
 * least one pixel. */
static void draw_window(test_case *c, qn__layer *l) {
    qn__window *w = &l->window;
    uint32_t *out[2] = {&l->to.height, &l->to.width};
    const uint32_t in[2] = {l->from.height, l->from.width};
    const int conv = l->kind == QN__LAYER_CONV;
    const int pools = l->kind == QN__LAYER_MAXPOOL || l->kind == QN__LAYER_AVGPOOL;
    if (l->kind == QN__LAYER_CONVTRANSPOSE) {
        draw_transposed(c, l);
        return;
    }
    if (l->kind == QN__LAYER_UPSAMPLE || (pools && c->seed % 5 == 0)) {
        draw_fitted(c, l);
        return;
    }
    for (int d = 0; d < 2; ++d)
        do {
            w->kernel[d] = 1 + below(c, in[d] < 5 ? in[d] : 5);
            w->stride[d] = below(c, 2) ? 1 : 1 + below(c, 3);
            w->dilation[d] = conv && below(c, 4) == 0 ? 1 + below(c, 3) : 1;
            w->pad[d] = conv ? below(c, w->dilation[d] * (w->kernel[d] - 1) / 2 + 1)
                             : below(c, 2) * below(c, w->kernel[d] / 2 + 1);
            if (l->kind == QN__LAYER_GLOBALPOOL) {
                w->kernel[d] = in[d];
                w->stride[d] = 1;
                w->pad[d] = 0;
            }
            *out[d] = fitting(w, d, in[d]);
        } while (*out[d] == 0);
    if (pools)
        draw_pool_words(c, l);
}

/* Depthwise, or any number of groups. */
static void draw_groups(test_case *c, qn__layer *l) {
    l->conv_groups = l->from.channels;
    while (below(c, 2) && (l->from.channels % --l->conv_groups != 0 || l->conv_groups < 2))
        l->conv_groups = l->conv_groups < 3 ? l->from.channels + 1 : l->conv_groups;
    if (l->from.channels % l->conv_groups != 0)
        l->conv_groups = l->from.channels;
    l->to.channels = l->conv_groups * (1 + below(c, 3));
}

static void draw_layer(test_case *c, qn__layer *l, qn__layer_kind kind, qn__shape from) {
    qn__program *p = &c->program;
    static const uint32_t widths[] = {1, 3, 8, 15, 16, 17, 32, 33, 40, 64, 70};
    const int conv = kind == QN__LAYER_CONV || kind == QN__LAYER_CONVTRANSPOSE;
    *l = (qn__layer){.kind = kind, .from = from, .drop_keep = 1.0f};
    l->to.channels = conv ? one_of(c, widths, 11) : from.channels;
    draw_window(c, l);
    l->in = qn__shape_volume(from);
    if (kind == QN__LAYER_CONV && c->blocks && from.channels > 1 && below(c, 3) == 0)
        draw_groups(c, l);
    l->out = qn__shape_volume(l->to);
    l->depth = conv ? l->window.kernel[0] * l->window.kernel[1] * qn__layer_reads(l) : 0;
    l->activation =
        conv ? hidden_activation(c, (uint32_t)(l - c->layer), below(c, 4)) : QN__ACT_NONE;
    if (conv && below(c, 3) == 0) {
        l->drop_threshold = 0x4ccccccdu;
        l->drop_keep = 1.0f / 0.7f;
        l->drop_path = c->seed % 3 == 1;
    }
    l->no_biases = conv && (c->seed + l->depth) % 4 == 0;
    l->weights = p->parameters;
    l->biases = p->parameters + (uint64_t)l->depth * l->to.channels;
    p->parameters = qn__layer_end(l);
}

static qn__layer_kind draw_norm_kind(const test_case *c) {
    static const qn__layer_kind kinds[] = {QN__LAYER_BATCHNORM, QN__LAYER_GROUPNORM,
                                           QN__LAYER_LAYERNORM};
    return c->seed % 4 == 2   ? QN__LAYER_LAYERSCALE
           : c->seed % 8 == 1 ? QN__LAYER_RMSNORM
                              : kinds[c->seed / 3 % 3];
}

static void draw_norm(test_case *c, qn__layer *l, qn__shape from) {
    qn__program *p = &c->program;
    qn__layer_text text = {.kind = draw_norm_kind(c),
                           .factor = 0.5f,
                           .norm_groups = 1,
                           .norm_alone = c->seed / 9 % 2 && c->seed / 3 % 3 == 2,
                           .epsilon = c->seed % 4 == 0 ? 0.02f : 0.0f,
                           .rate = c->seed % 5 == 0 ? 0.7f : 0.0f,
                           .activation = (qn__activation)below(c, 4)};
    while (text.kind == QN__LAYER_GROUPNORM && text.norm_groups < from.channels &&
           from.channels % ++text.norm_groups)
        ;
    qn__layer_ops_of(text.kind)->make(&text, from, p->parameters, l, NULL);
    if (below(c, 4) == 0) {
        l->drop_threshold = 0x4ccccccdu;
        l->drop_keep = 1.0f / 0.7f;
    }
    p->parameters = qn__layer_end(l);
}

static void draw_add(test_case *c, uint32_t i, uint32_t skip, uint32_t other) {
    const qn__layer *main = &c->layer[i - 1 - skip];
    c->layer[i] = (qn__layer){.kind = QN__LAYER_ADD,
                              .skip = skip,
                              .other = other,
                              .from = main->to,
                              .to = main->to,
                              .second = main->to,
                              .window = {{1, 1}, {1, 1}, {0, 0}, {1, 1}},
                              .in = main->out,
                              .out = main->out,
                              .activation = (qn__activation)below(c, 4),
                              .drop_keep = 1.0f,
                              .weights = c->program.parameters,
                              .biases = c->program.parameters};
    if (below(c, 4) == 0) {
        c->layer[i].drop_threshold = 0x4ccccccdu;
        c->layer[i].drop_keep = 1.0f / 0.7f;
    }
}

/* The same, but perhaps a product or a concatenation. `second`: the shape of the second output. */
static void draw_join(test_case *c, uint32_t i, uint32_t skip, uint32_t other, qn__shape second) {
    static const qn__layer_kind kinds[] = {QN__LAYER_ADD, QN__LAYER_MULTIPLY, QN__LAYER_CONCAT,
                                           QN__LAYER_ADD};
    qn__layer_kind kind = c->seed % 7 < 5 ? kinds[below(c, 4)] : QN__LAYER_ADD;
    draw_add(c, i, skip, other);
    if (memcmp(&c->layer[i].from, &second, sizeof second) != 0)
        kind = QN__LAYER_CONCAT;
    c->layer[i].kind = kind;
    c->layer[i].second = second;
    if (kind != QN__LAYER_ADD)
        if (!qn__layer_ops_of(kind)->meet(&c->layer[i]))
            abort(); /* the drawn shapes do not fit each other */
}

/* The rest of a block whose main path is the layers begin .. i-1: perhaps a layer with the window
 * of the first of them as its shortcut, and the end. Returns the first layer after it. */
static uint32_t draw_rest(test_case *c, uint32_t begin, uint32_t i, qn__shape from) {
    const qn__layer *main = &c->layer[begin];
    qn__layer *aside = &c->layer[i];
    if (memcmp(&c->layer[i - 1].to, &from, sizeof from) == 0 && below(c, 3)) {
        draw_join(c, i, 0, i - begin, from);
        return i + 1;
    }
    *aside = *main;
    aside->skip = i - begin;
    aside->partial = 0;
    if (main->kind == QN__LAYER_AVGPOOL)
        aside->kind = QN__LAYER_MAXPOOL;
    else
        aside->activation = (qn__activation)below(c, 4);
    aside->weights = c->program.parameters;
    aside->biases = c->program.parameters + (main->biases - main->weights);
    c->program.parameters = qn__layer_end(aside);
    draw_join(c, i + 1, 1, 0, main->to);
    return i + 2;
}

/* A residual block of two or three layers from layer i on: a convolution, normalisation or pool,
 * and the rest. Some are the main path of another block, which may be that of a third one. Returns
 * the first layer after it. */
static uint32_t draw_block(test_case *c, uint32_t i, qn__shape from) {
    qn__layer *main = &c->layer[i];
    if (c->seed % 3 == 0 && below(c, 2))
        draw_norm(c, main, from);
    else
        draw_layer(c, main, below(c, 3) ? QN__LAYER_CONV : QN__LAYER_AVGPOOL, from);
    uint32_t end = draw_rest(c, i, i + 1, from);
    for (uint32_t around = c->seed % 4 ? 0 : below(c, 3); around > 0; --around) {
        const uint32_t inner = end;
        end = draw_rest(c, i, end, from);
        c->program.layers += end - inner;
    }
    return end;
}

/* A convolution, and attention over its pixels. */
static void draw_attention(test_case *c, qn__layer *l, qn__shape from) {
    static const uint32_t widths[] = {1, 3, 4, 8, 16, 17, 66};
    qn__layer_text text = {
        .kind = QN__LAYER_ATTENTION, .heads = 1 + below(c, 4), .causal = (int)below(c, 3) > 0};
    text.kv_heads = text.heads % 2 || below(c, 2) ? 0 : text.heads / (1 + below(c, 2));
    text.span = text.causal ? below(c, 2) * (1 + below(c, 50)) : 0;
    draw_layer(c, l, QN__LAYER_CONV, from);
    const uint32_t shared = text.kv_heads ? text.kv_heads : text.heads;
    l->conv_groups = 0;
    l->to.channels = (text.heads + 2 * shared) * one_of(c, widths, 7);
    l->out = qn__shape_volume(l->to);
    l->depth = l->window.kernel[0] * l->window.kernel[1] * from.channels;
    l->biases = l->weights + (uint64_t)l->depth * l->to.channels;
    c->program.parameters = qn__layer_end(l);
    qn__layer_ops_of(text.kind)->make(&text, l->to, c->program.parameters, l + 1, NULL);
}

/* One to five layers of any kind, then the dense one of the loss. `blocks`: some end residual
 * blocks. The first is not a dense layer: its input would be features. */
static void draw_pictures(test_case *c, int blocks) {
    static const qn__layer_kind kinds[] = {QN__LAYER_CONV,      QN__LAYER_CONV,  QN__LAYER_MAXPOOL,
                                           QN__LAYER_AVGPOOL,   QN__LAYER_DENSE, QN__LAYER_CONV,
                                           QN__LAYER_GLOBALPOOL};
    qn__program *p = &c->program;
    qn__shape from = {1 + below(c, 4), 1 + below(c, 9), 1 + below(c, 9), QN__PICTURE};
    if (below(c, 4) == 0)
        from.channels = 1 + below(c, 20);
    p->layers = 2 + below(c, CASE_MOST - 1);
    p->layer = c->layer;
    p->parameters = 0;
    for (uint32_t i = 0; i + 1 < p->layers; ++i) {
        if (i + 3 < p->layers && blocks && below(c, 2)) {
            i = draw_block(c, i, from) - 1;
            from = c->layer[i].to;
            continue;
        }
        if (i + 2 < p->layers && (c->seed % 10 == 2 || c->seed % 20 == 11)) { /* 11: on GPUs */
            draw_attention(c, &c->layer[i++], from);
            from = c->layer[i].to;
            continue;
        }
        qn__layer_kind kind = i == 0 ? kinds[below(c, 4)] : kinds[below(c, 7)];
        if (c->seed % 3 == 0 && i == c->seed / 3 % 2)
            kind = QN__LAYER_BATCHNORM;
        if (c->seed % 3 == 1 && i == c->seed / 6 % 2 && from.height * from.width < 90)
            kind = c->seed % 6 == 1 ? QN__LAYER_UPSAMPLE : QN__LAYER_CONVTRANSPOSE;
        if (kind == QN__LAYER_DENSE) {
            c->layer[i] =
                qn__layer_dense(from, width(c), (qn__activation)below(c, 4), p->parameters);
            c->layer[i].no_biases = c->layer[i].in % 3 == 0;
            p->parameters = qn__layer_end(&c->layer[i]);
        } else if (kind == QN__LAYER_BATCHNORM)
            draw_norm(c, &c->layer[i], from);
        else
            draw_layer(c, &c->layer[i], kind, from);
        from = c->layer[i].to;
    }
    c->layer[p->layers - 1] =
        qn__layer_dense(from, width(c), (qn__activation)below(c, 5), p->parameters);
    p->parameters = qn__layer_end(&c->layer[p->layers - 1]);
    draw_loss(c);
}

/* A convolution that the CPU may compute by lists of errors: a window of three or five columns. */
static qn__shape draw_listed(test_case *c, qn__layer *l, qn__shape from) {
    draw_layer(c, l, QN__LAYER_CONV, from);
    const uint64_t weights = l->weights;
    const uint32_t width = below(c, 3) ? 3 : 5, height = below(c, 2) ? width : 1 + below(c, 5);
    l->window = (qn__window){{height, width}, {1, 1}, {0, 0}, {1, 1}};
    for (int d = 0; d < 2; ++d)
        l->window.pad[d] = below(c, l->window.kernel[d] / 2 + 1);
    l->to.height = fitting(&l->window, 0, from.height);
    l->to.width = fitting(&l->window, 1, from.width);
    l->conv_groups = 0;
    l->out = qn__shape_volume(l->to);
    l->depth = l->window.kernel[0] * l->window.kernel[1] * from.channels;
    l->biases = weights + (uint64_t)l->depth * l->to.channels;
    c->program.parameters = qn__layer_end(l);
    return l->to;
}

/* Pools that leave a third of the pixels or fewer. */
static qn__shape draw_halving(test_case *c, qn__layer *l, qn__shape from) {
    draw_layer(c, l, QN__LAYER_MAXPOOL, from);
    l->fitted = 0;
    for (int d = 0; d < 2; ++d) {
        l->window.kernel[d] = 2 + below(c, 2);
        l->window.stride[d] = 2;
        l->window.pad[d] = below(c, 2);
    }
    l->to.height = fitting(&l->window, 0, from.height);
    l->to.width = fitting(&l->window, 1, from.width);
    l->out = qn__shape_volume(l->to);
    return l->to;
}

/* Convolutions below max pools, one or two times. */
static void draw_pooled(test_case *c) {
    qn__program *p = &c->program;
    qn__shape from;
    do {
        from = (qn__shape){1 + below(c, 4), 4 + below(c, 7), 4 + below(c, 9), QN__PICTURE};
        p->layer = c->layer;
        p->layers = 0;
        p->parameters = 0;
        draw_layer(c, &c->layer[p->layers++], QN__LAYER_CONV, from);
        from = c->layer[0].to;
        for (uint32_t times = 1 + below(c, 2); times > 0 && from.height && from.width; --times) {
            from = draw_listed(c, &c->layer[p->layers++], from);
            if (from.height && from.width)
                from = draw_halving(c, &c->layer[p->layers++], from);
        }
    } while (!from.height || !from.width);
    c->layer[p->layers++] =
        qn__layer_dense(from, width(c), (qn__activation)below(c, 5), p->parameters);
    p->parameters = qn__layer_end(&c->layer[p->layers - 1]);
    draw_loss(c);
}

/* Multiplications of an item. */
static uint64_t work_of(const qn__program *p) {
    uint64_t work = 0;
    for (uint32_t l = 0; l < p->layers; ++l)
        work += p->layer[l].out * (uint64_t)(p->layer[l].depth ? p->layer[l].depth : 25);
    return work;
}

static void describe_pictures(test_case *c) {
    size_t at = strlen(c->text);
    for (uint32_t i = 0; i < c->program.layers && at < sizeof c->text; ++i) {
        const qn__layer *l = &c->layer[i];
        const qn__window *w = &l->window;
        at += (size_t)snprintf(c->text + at, sizeof c->text - at,
                               "; %s%s %ux%ux%u kernel %ux%u stride %ux%u pad %ux%u dilation %ux%u",
                               qn__layer_ops_of(l->kind)->word, l->no_biases ? " nobias" : "",
                               l->from.channels, l->from.height, l->from.width, w->kernel[0],
                               w->kernel[1], w->stride[0], w->stride[1], w->pad[0], w->pad[1],
                               w->dilation[0], w->dilation[1]);
    }
}

/* A variance is not negative. */
static void clear_signs(test_case *c) {
    for (uint32_t l = 0; l < c->program.layers; ++l)
        for (uint64_t i = qn__layer_running(&c->layer[l]); i < qn__layer_end(&c->layer[l]); ++i)
            c->state.parameters[i] = fabsf(c->state.parameters[i]);
}

/* What follows when network and batch are drawn. `change`: of the drawn data; NULL: none. */
static void draw_the_rest(test_case *c, void (*change)(test_case *)) {
    static const uint32_t grains[] = {1, 2, 3, 7, 32};
    qn__program *p = &c->program;
    p->grain = one_of(c, grains, sizeof grains / sizeof *grains);
    if (p->grain > p->batch)
        p->grain = p->batch;
    draw_numbers(c);
    draw_data(c);
    if (change)
        change(c);
    draw_state(c);
    clear_signs(c);
    draw_batches(c);
    c->apply_items = (uint32_t)c->feed.items - 1; /* more than a batch */
    if (c->apply_items > qn__apply_space(p))
        c->apply_items = qn__apply_space(p);
    describe_case(c);
    describe_pictures(c);
}

/* Which networks pictures_begin draws: without or with residual blocks, or pooled ones. */
typedef enum picture_nets { NETS_PLAIN, NETS_BLOCKS, NETS_POOLED } picture_nets;

static void pictures_begin(test_case *c, uint64_t seed, picture_nets nets) {
    enum { ROOM = 4 * CASE_CAPACITY };
    char *buffer = c->buffer ? c->buffer : qn__alloc(ROOM, 1, NULL);
    *c = (test_case){.seed = seed, .random = seed, .buffer = buffer, .size = ROOM};
    c->blocks = nets == NETS_BLOCKS;
    c->kind = (flavour)below(c, 2 * FLAVOURS);
    c->kind = c->kind >= FLAVOURS ? PLAIN : c->kind;
    qn__program *p = &c->program;
    do {
        if (nets == NETS_POOLED)
            draw_pooled(c);
        else
            draw_pictures(c, c->blocks);
        p->batch = below(c, 5) == 0 ? 90 + below(c, 160) : 1 + below(c, 20);
    } while (work_of(p) * p->batch > 400000 || p->parameters > 40000 ||
             p->batch * c->layer[0].in > 60000);
    draw_the_rest(c, NULL);
}

#endif
