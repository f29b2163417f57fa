/* Random cases of sequences: tokens that a first layer looks up, and layers over positions. Static
 * functions for the conformance suite. */
#ifndef QN_DEVICE_CONFORMANCE_SEQUENCE_TEST_H
#define QN_DEVICE_CONFORMANCE_SEQUENCE_TEST_H

#include "device/conformance_picture_test.h"
#include "layer/embedding.h"

/* Whether the case learns which token comes next; GPUs have cases 1, 11, 21 and so on. */
static int next_tokens(const test_case *c) { return c->seed % 20 == 1 || c->seed % 3 == 0; }

/* Few tokens, which occur often, or many; positions that are many or one. */
static qn__shape draw_embedding(test_case *c, qn__layer *l) {
    static const uint32_t vocabularies[] = {1, 2, 7, 64, 65, 300};
    const qn__layer_text text = {.kind = QN__LAYER_EMBEDDING,
                                 .vocabulary = one_of(c, vocabularies, 6),
                                 .next = next_tokens(c),
                                 .out = below(c, 3) ? 1 + below(c, 40) : 16 * (1 + below(c, 3)),
                                 .activation =
                                     below(c, 2) ? QN__ACT_NONE : (qn__activation)below(c, 4)};
    const uint32_t positions = below(c, 4) ? 1 + below(c, 20) : 1;
    const qn__shape from = {positions + (uint32_t)text.next, 1, 1, QN__PICTURE};
    qn__layer_ops_of(text.kind)->make(&text, from, 0, l, NULL);
    if (below(c, 4) == 0) {
        l->drop_threshold = 0x4ccccccdu;
        l->drop_keep = 1.0f / 0.7f;
        l->drop_path = c->seed % 3 == 1;
    }
    return l->to;
}

/* Positions that are turned, of heads with pairs; 0: the channels do not fit. */
static int draw_rotary(test_case *c, qn__layer *l, qn__shape from) {
    qn__layer_text text = {.kind = QN__LAYER_ROTARY,
                           .heads = 1 + below(c, 3),
                           .kv_heads = below(c, 2),
                           .turns = {.base = below(c, 2) ? 500.0f : 0.0f}};
    if (below(c, 3) == 0)
        text.turns = (qn__turns){10.0f, 3.0f, 0.25f, 2.0f, below(c, 2) ? 20 : 0};
    return qn__layer_ops_of(text.kind)->make(&text, from, c->program.parameters, l, NULL) == QN_OK;
}

/* Positions: parameters of them, sinusoids, or angles. */
static void draw_position(test_case *c, qn__layer *l, qn__shape from) {
    const qn__layer_text text = {.kind = from.channels % 2 == 0 && below(c, 3) == 0
                                             ? QN__LAYER_SINUSOID
                                             : QN__LAYER_POSITION,
                                 .activation = (qn__activation)below(c, 4)};
    if (below(c, 2) && draw_rotary(c, l, from))
        return;
    qn__layer_ops_of(text.kind)->make(&text, from, c->program.parameters, l, NULL);
    if (below(c, 4) == 0) {
        l->drop_threshold = 0x4ccccccdu;
        l->drop_keep = 1.0f / 0.7f;
    }
    c->program.parameters = qn__layer_end(l);
}

/* The last layer of a case of next tokens: as many channels as tokens, tied where they fit.
 */
static void draw_last(test_case *c, qn__shape from) {
    qn__program *p = &c->program;
    qn__layer *last = &c->layer[p->layers - 1];
    const int tied = from.channels == c->layer[0].to.channels && below(c, 3) > 0;
    const qn__layer_text text = {.kind = QN__LAYER_CONV,
                                 .out = qn__layer_tokens(&c->layer[0]),
                                 .no_biases = tied,
                                 .tied = tied,
                                 .window = {{1, 1}, {1, 1}, {0, 0}, {1, 1}}};
    qn__layer_ops_of(text.kind)->make(&text, from, p->parameters, last, NULL);
    c->layer[0].tied = tied;
    p->parameters = qn__layer_end(last);
    p->loss = QN__LOSS_CROSS_ENTROPY;
    p->smoothing = c->seed % 5 < 2 ? 0.1f : 0.0f;
    p->real = 0;
    p->answers = last->to.width;
    p->next = 1;
}

/* A window that keeps the positions, or one that reads some of them alone. */
static qn__window draw_positions(test_case *c) {
    qn__window w = {{1, 1}, {1, 1}, {0, 0}, {1, 1}};
    const uint32_t half = 1 + below(c, 3);
    if (below(c, 2))
        return w;
    w.dilation[1] = 1 + below(c, 2);
    w.kernel[1] = 2 * half + 1;
    w.pad[1] = half * w.dilation[1];
    if (!next_tokens(c) && below(c, 2))
        w.stride[1] = 1 + below(c, 5);
    return w;
}

/* A product of each position by itself, or of some. */
static void draw_projection(test_case *c, qn__layer *l, qn__shape from) {
    const qn__layer_text text = {.kind = QN__LAYER_CONV,
                                 .out = below(c, 3) ? 1 + below(c, 40) : 16 * (1 + below(c, 4)),
                                 .window = draw_positions(c),
                                 .no_biases = below(c, 4) == 0,
                                 .activation = (qn__activation)below(c, 4)};
    qn__layer_ops_of(text.kind)->make(&text, from, c->program.parameters, l, NULL);
    if (below(c, 4) == 0) {
        l->drop_threshold = 0x4ccccccdu;
        l->drop_keep = 1.0f / 0.7f;
    }
    c->program.parameters = qn__layer_end(l);
}

/* A pool of all positions. */
static void draw_pool_of_positions(test_case *c, qn__layer *l, qn__shape from) {
    const qn__layer_text text = {.kind = QN__LAYER_POOL, .pooling = (qn__pooling)below(c, 4)};
    qn__layer_ops_of(text.kind)->make(&text, from, c->program.parameters, l, NULL);
}

/* Queries, keys and values of each position, and attention. */
static void draw_heads(test_case *c, qn__layer *l, qn__shape from) {
    const qn__layer_text attention = {
        .kind = QN__LAYER_ATTENTION, .heads = 1 + below(c, 3), .causal = (int)below(c, 2)};
    const qn__layer_text projection = {.kind = QN__LAYER_CONV,
                                       .out = 3 * attention.heads * (1 + below(c, 18)),
                                       .window = {{1, 1}, {1, 1}, {0, 0}, {1, 1}}};
    qn__conv.make(&projection, from, c->program.parameters, l, NULL);
    c->program.parameters = qn__layer_end(l);
    qn__attention.make(&attention, l->to, c->program.parameters, l + 1, NULL);
}

/* The products of gates, and the states of positions. */
static void draw_states(test_case *c, qn__layer *l, qn__shape from) {
    const qn__layer_text states = {.kind = QN__LAYER_RECURRENT,
                                   .cell = below(c, 2) ? QN__CELL_GRU : QN__CELL_LSTM,
                                   .reverse = (int)below(c, 2),
                                   .activation =
                                       below(c, 2) ? QN__ACT_NONE : (qn__activation)below(c, 4)};
    const uint32_t width = below(c, 3) ? 1 + below(c, 40) : 16 * (1 + below(c, 2));
    const qn__layer_text projection = {.kind = QN__LAYER_CONV,
                                       .out = width * (states.cell == QN__CELL_GRU ? 3 : 4),
                                       .window = {{1, 1}, {1, 1}, {0, 0}, {1, 1}}};
    qn__conv.make(&projection, from, c->program.parameters, l, NULL);
    qn__recurrent.make(&states, l->to, qn__layer_end(l), l + 1, NULL);
    if (below(c, 4) == 0) {
        l[1].drop_threshold = 0x4ccccccdu;
        l[1].drop_keep = 1.0f / 0.7f;
    }
    c->program.parameters = qn__layer_end(l + 1);
}

/* `exact`: positions stay a row, whose products have integers (docs/exactness.md 25.24). */
static void draw_sequence(test_case *c, int exact) {
    static const qn__layer_kind kinds[] = {QN__LAYER_CONV, QN__LAYER_CONV, QN__LAYER_AVGPOOL,
                                           QN__LAYER_GLOBALPOOL};
    qn__program *p = &c->program;
    p->layers = 2 + below(c, CASE_MOST - 2);
    p->layer = c->layer;
    qn__shape from = draw_embedding(c, &c->layer[0]);
    p->parameters = qn__layer_end(&c->layer[0]);
    from.axes = exact ? from.axes : QN__PICTURE; /* windows may make rows of it */
    for (uint32_t i = 1; i + 1 < p->layers; ++i) {
        if (below(c, 4) == 0)
            draw_position(c, &c->layer[i], from);
        else if (!exact && i + 2 < p->layers && below(c, 3) == 0)
            draw_states(c, &c->layer[i++], from);
        else if (exact && i + 2 < p->layers && below(c, 4) == 0)
            draw_heads(c, &c->layer[i++], from);
        else if (exact && below(c, 4))
            draw_projection(c, &c->layer[i], from);
        else if (exact && !next_tokens(c) && below(c, 2))
            draw_pool_of_positions(c, &c->layer[i], from);
        else if (exact)
            draw_norm(c, &c->layer[i], from);
        else if (below(c, 3) == 0 || next_tokens(c))
            draw_norm(c, &c->layer[i], from);
        else
            draw_layer(c, &c->layer[i], kinds[below(c, 4)], from);
        from = c->layer[i].to;
    }
    if (next_tokens(c)) {
        draw_last(c, from);
        return;
    }
    c->layer[p->layers - 1] =
        qn__layer_dense(from, width(c), (qn__activation)below(c, 5), p->parameters);
    p->parameters = qn__layer_end(&c->layer[p->layers - 1]);
    draw_loss(c);
}

/* Tokens in the place of the values: as floats, or as bytes where there are few. */
static void draw_tokens(test_case *c) {
    const uint32_t tokens = qn__layer_tokens(&c->layer[0]);
    const size_t values = (size_t)(c->feed.items + 3) * c->feed.features;
    float *numbers = cut(c, values, sizeof *numbers);
    uint8_t *bytes = cut(c, values, 1);
    for (size_t i = 0; i < values; ++i) {
        const uint32_t token = below(c, tokens);
        numbers[i] = c->program.next && below(c, 6) == 0 ? 0x1p32f : (float)token;
        bytes[i] = (uint8_t)token;
    }
    c->feed.type = tokens <= 256 && below(c, 2) ? QN__ELEMENT_U8 : QN__ELEMENT_F32;
    c->feed.values = c->feed.type == QN__ELEMENT_U8 ? (void *)bytes : (void *)numbers;
    c->program.scale = QN__SCALE_NONE;
    c->feed.next = c->program.next;
    c->feed.labels = c->program.next ? NULL : c->feed.labels;
}

static void sequences_begin(test_case *c, uint64_t seed, int exact) {
    enum { ROOM = 4 * CASE_CAPACITY };
    char *buffer = c->buffer ? c->buffer : qn__alloc(ROOM, 1, NULL);
    *c = (test_case){.seed = seed, .random = seed, .buffer = buffer, .size = ROOM};
    c->kind = (flavour)below(c, 2 * FLAVOURS);
    c->kind = c->kind >= FLAVOURS ? PLAIN : c->kind;
    qn__program *p = &c->program;
    do {
        draw_sequence(c, exact);
        p->batch = below(c, 5) == 0 ? 90 + below(c, 160) : 1 + below(c, 20);
    } while (work_of(p) * p->batch > 400000 || p->parameters > 40000);
    draw_the_rest(c, draw_tokens);
    if (exact)
        p->arith = (qn__arith)(QN__ARITH_I7 + seed % 3);
    attention_some(c);
}

/* Tokens that first follow themselves, which the network expects with nearly no error, and then
 * others. Some targets are ignored, the first ones in one item of two. */
static void draw_growing(test_case *c) {
    const uint32_t features = (uint32_t)c->feed.features;
    float *numbers = cut(c, (size_t)(c->feed.items + 3) * features, sizeof *numbers);
    for (uint32_t i = 0; i < c->feed.items + 3; ++i)
        for (uint32_t k = 0, token = i; k < features; ++k) {
            token += k > 3 + i % 5 && below(c, 2);
            const int ignored = (i % 2 && k && k < 3) || below(c, 9) == 0;
            numbers[(size_t)i * features + k] =
                ignored ? 0x1p32f : (float)(token % qn__layer_tokens(&c->layer[0]));
        }
    c->feed.type = QN__ELEMENT_F32;
    c->feed.values = numbers;
    c->program.scale = QN__SCALE_NONE;
    c->feed.next = 1;
    c->feed.labels = NULL;
}

/* A grain whose errors grow from slice to slice: integers of those before are wrong then. */
static void growing_begin(test_case *c, uint64_t seed) {
    enum { TOKENS = 17, WIDTH = 20, POSITIONS = 13, ROOM = 4 * CASE_CAPACITY };
    char *buffer = c->buffer ? c->buffer : qn__alloc(ROOM, 1, NULL);
    *c = (test_case){.seed = 3 * seed, .random = seed, .buffer = buffer, .size = ROOM};
    c->kind = PLAIN;
    qn__program *p = &c->program;
    const qn__layer_text embedding = {
        .kind = QN__LAYER_EMBEDDING, .vocabulary = TOKENS, .next = 1, .out = WIDTH};
    const qn__shape from = {POSITIONS + 1, 1, 1, QN__PICTURE};
    qn__layer_ops_of(embedding.kind)->make(&embedding, from, 0, &c->layer[0], NULL);
    p->layers = 2;
    p->layer = c->layer;
    p->parameters = qn__layer_end(&c->layer[0]);
    p->batch = seed % 3 == 0 ? 3 : 5;
    draw_last(c, c->layer[0].to);
    draw_the_rest(c, draw_growing);
    p->grain = seed % 3 == 0 ? p->batch : 2; /* one, or several */
    p->arith = (qn__arith)(QN__ARITH_I7 + seed / 3 % 3);
    p->slice_bytes = seed % 2 ? 128 : 5 * 128;
    for (uint64_t i = 0; i < p->parameters; ++i)
        c->state.parameters[i] *= 0.01f;
    for (uint32_t t = 0; t < TOKENS; ++t) {
        c->state.parameters[(size_t)t * WIDTH + t] = 2.0f + (float)(t % 3);
        if (!c->layer[1].tied)
            c->state.parameters[c->layer[1].weights + (size_t)t * WIDTH + t] = 3.0f;
    }
    describe_case(c);
}

#endif
