/* Random cases for the conformance suite: a program, data, parameters and a few batches, all from
 * one seed. Static functions, since only one test program uses them. */
#ifndef QN_DEVICE_CONFORMANCE_CASE_TEST_H
#define QN_DEVICE_CONFORMANCE_CASE_TEST_H

#include "base/memory.h"
#include "device/device.h"
#include "layer/layer.h"
#include "num/augment.h"
#include "num/mix.h"
#include "num/sums.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    CASE_LAYERS = 4,
    CASE_MOST = 6 /* of pictures */,
    CASE_AROUND = 8 /* of two blocks, each in two others */,
    CASE_BATCHES = 3,
    CASE_CAPACITY = 4 << 20
};

/* The kind of numbers in a case. */
typedef enum flavour {
    PLAIN,     /* as in a real training */
    LARGE,     /* inputs and weights far from 1, larger or smaller */
    SUBNORMAL, /* many numbers below 2^-126 */
    WILD,      /* any finite bits */
    INFINITE,  /* a few infinities and NaNs */
    FINE_UNIT, /* units so small that sums come close to their range, or exceed it */
    EDGE,      /* the limit of a partial is exactly the largest one, or one step above it */
    FLAVOURS
} flavour;

static const char *const flavour_names[] = {"plain",    "large",     "subnormal", "wild",
                                            "infinite", "fine unit", "edge"};

typedef struct test_case {
    uint64_t seed, random;
    flavour kind;
    qn__layer layer[CASE_MOST + CASE_AROUND];
    int blocks; /* pictures: residual blocks and groups */
    qn__program program;
    qn__augment augment;
    qn__mix mix;
    qn__feed feed;
    qn__permutation order;
    qn__state state;
    qn__batch batch[CASE_BATCHES];
    float rate;
    int brief;            /* 1: only its first step is checked */
    uint32_t apply_items; /* of one call of apply; 0: as many as a batch */
    char text[1024];
    /* All arrays of the case are allocated from this one block. */
    char *buffer;
    size_t used, size; /* of `buffer`; 0: CASE_CAPACITY */
} test_case;

/* splitmix64: any seed is valid, and consecutive seeds give different numbers. */
static uint64_t draw(test_case *c) {
    uint64_t z = (c->random += 0x9E3779B97F4A7C15u);
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return z ^ (z >> 31);
}

static uint32_t below(test_case *c, uint32_t n) { return (uint32_t)((draw(c) >> 32) * n >> 32); }

static uint32_t one_of(test_case *c, const uint32_t *values, uint32_t count) {
    return values[below(c, count)];
}

/* Uniform in -1 .. 1. */
static float unit_float(test_case *c) { return (float)(int32_t)below(c, 0xffffffffu) * 0x1p-31f; }

static float any_finite(test_case *c) {
    uint32_t bits = (uint32_t)draw(c);
    float value;
    if ((bits & 0x7f800000u) == 0x7f800000u)
        bits ^= 0x40000000u;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* A number of the case's flavour, of magnitude `size` if the flavour uses it. */
static float number(test_case *c, float size) {
    const uint32_t luck = below(c, 64);
    switch (c->kind) {
    case LARGE:
        return ldexpf(unit_float(c) * size, (int)below(c, 41) - 20);
    case SUBNORMAL:
        return luck < 40 ? ldexpf(unit_float(c), -126 - (int)below(c, 20)) : unit_float(c) * size;
    case WILD:
        return luck < 4 ? any_finite(c) : luck < 8 ? -0.0f : unit_float(c) * size;
    case INFINITE:
        if (below(c, 512) == 0)
            return luck < 16 ? INFINITY : luck < 32 ? -INFINITY : luck < 48 ? NAN : 0x1.fffffep127f;
        return unit_float(c) * size;
    case PLAIN:
    case FINE_UNIT:
    case EDGE:
    case FLAVOURS:
        break;
    }
    return luck == 0 ? 0.0f : luck == 1 ? -0.0f : unit_float(c) * size;
}

static void *cut(test_case *c, size_t count, size_t size) {
    void *at = c->buffer + c->used;
    c->used += (count * size + 127) / 64 * 64;
    if (c->used > (c->size ? c->size : CASE_CAPACITY)) {
        fprintf(stderr, "a case is larger than its space\n");
        abort();
    }
    return at;
}

static float *numbers(test_case *c, size_t count, float size) {
    float *at = cut(c, count, sizeof *at);
    for (size_t i = 0; i < count; ++i)
        at[i] = number(c, size);
    return at;
}

/* Widths around the panel of 16, the fused last layer of 64 and the block of 256. */
static uint32_t width(test_case *c) {
    static const uint32_t known[] = {1,  2,  3,  7,  8,  10, 15, 16, 17, 31, 32,  33,
                                     47, 48, 49, 63, 64, 65, 66, 70, 80, 81, 100, 257};
    return below(c, 3) == 0 ? 1 + below(c, 70) : one_of(c, known, sizeof known / sizeof *known);
}

/* Classes, real targets, or two classes for one output; what the seed says of it leaves the other
 * draws as they are. */
static void draw_loss(test_case *c) {
    static const qn__loss sums[] = {QN__LOSS_MSE, QN__LOSS_MAE, QN__LOSS_HUBER};
    qn__program *p = &c->program;
    qn__layer *last = &c->layer[p->layers - 1];
    p->loss = last->activation == QN__ACT_SOFTMAX && below(c, 4) ? QN__LOSS_CROSS_ENTROPY
                                                                 : sums[c->seed / 3 % 3];
    p->delta = c->seed % 2 ? 1.0f : 0.3f;
    p->smoothing = c->seed % 5 < 2 ? 0.1f : 0.0f;
    p->real = c->seed % 4 == 1;
    if (c->seed % 4 == 3 && c->seed % 8 != 7) {
        p->loss = QN__LOSS_BINARY;
        last->activation = QN__ACT_SIGMOID;
    }
    if (!p->real && p->loss != QN__LOSS_BINARY)
        return;
    if (p->loss == QN__LOSS_CROSS_ENTROPY)
        p->loss = sums[c->seed / 3 % 3];
    *last = qn__layer_dense(last->from, 1, last->activation, last->weights);
    p->parameters = last->biases + 1;
}

/* The seed says where a layer has an activation of 17.2 or 24.10: other draws stay as they are. */
static qn__activation hidden_activation(const test_case *c, uint32_t layer, uint32_t drawn) {
    static const qn__activation later[] = {QN__ACT_NONE, QN__ACT_LEAKY_RELU, QN__ACT_GELU,
                                           QN__ACT_SILU};
    static const qn__activation latest[] = {QN__ACT_RELU6, QN__ACT_HARDSWISH, QN__ACT_HARDSIGMOID,
                                            QN__ACT_GELU_TANH};
    if ((c->seed + layer) % 7 == 1)
        return latest[drawn];
    return (c->seed + layer) % 3 == 0 ? later[drawn] : (qn__activation)drawn;
}

static void draw_layers(test_case *c) {
    qn__program *p = &c->program;
    uint32_t in = width(c);
    p->layers = 1 + below(c, CASE_LAYERS);
    p->layer = c->layer;
    p->parameters = 0;
    for (uint32_t i = 0; i < p->layers; ++i) {
        qn__layer *l = &c->layer[i];
        const int last = i + 1 == p->layers;
        *l = qn__layer_flat(in, width(c), QN__ACT_NONE, p->parameters);
        l->activation = last ? (qn__activation)below(c, 5) : hidden_activation(c, i, below(c, 4));
        if (last && below(c, 2))
            l->activation = QN__ACT_SOFTMAX;
        if (!last && below(c, 3) == 0) {
            const float probability = below(c, 4) == 0 ? 0.9f : 0.3f;
            l->drop_threshold = (uint32_t)((double)probability * 0x1p32 + 0.5);
            l->drop_keep = 1.0f / (1.0f - probability);
            l->drop_path = (c->seed + i) % 4 == 0;
        }
        l->no_biases = (c->seed + i) % 5 == 0;
        p->parameters = qn__layer_end(l);
        in = l->out;
    }
    draw_loss(c);
}

/* Batches of one grain and of many, with little work: the reference takes some nanoseconds for
 * every fma. */
static void draw_sizes(test_case *c) {
    static const uint32_t grains[] = {1, 1, 2, 3, 7, 32, 100};
    qn__program *p = &c->program;
    do {
        draw_layers(c);
        p->batch = below(c, 3) == 0 ? 90 + below(c, 160) : 1 + below(c, 40);
    } while (p->parameters * p->batch > 150000 || p->parameters > 40000);
    p->grain = one_of(c, grains, sizeof grains / sizeof *grains);
    if (p->grain > p->batch)
        p->grain = p->batch;
}

static void draw_numbers(test_case *c) {
    static const uint32_t units[] = {0, 20, 38, 42, 44, 44, 44, 46, 47, 48};
    qn__program *p = &c->program;
    p->optimizer = (qn__optimizer)below(c, 5);
    p->momentum = 0.9f;
    p->beta1 = 0.9f;
    p->beta2 = 0.999f;
    p->epsilon = 1e-8f;
    p->ema = c->seed % 4 == 1 ? 0.75f : 0.0f;
    p->weight_decay = below(c, 2) ? 0.0f : 0.01f;
    p->decay_on = (qn__decay)(c->seed % 5 % 3);
    p->seed = draw(c);
    p->gradient_scale = one_of(c, units, sizeof units / sizeof *units);
    if (c->kind == FINE_UNIT)
        p->gradient_scale = 49 + below(c, 12);
    if (c->kind != PLAIN && c->kind != FINE_UNIT && c->kind != EDGE && below(c, 2))
        p->gradient_scale = below(c, 30);
    p->partial_limit = qn__partial_limit(((uint64_t)p->batch + p->grain - 1) / p->grain);
    c->rate = below(c, 4) == 0 ? 1.0f : 0.05f;
}

/* A class; 0 or 1; or the bits of a target, a finite number, often one that outputs have too. */
static int32_t draw_label(test_case *c) {
    const qn__program *p = &c->program;
    int32_t label;
    if (p->loss == QN__LOSS_BINARY)
        return (int32_t)below(c, 2);
    if (!p->real)
        return (int32_t)below(c, c->layer[p->layers - 1].out);
    const float size = ldexpf(1.0f, c->kind == PLAIN ? 1 : (int)below(c, 12) - 6);
    const float target = below(c, 5) == 0 ? (float)below(c, 3) - 1.0f : unit_float(c) * size;
    memcpy(&label, &target, sizeof label);
    return label;
}

/* Of half of the cases. Many are 1 or 0; their mean does not matter here. */
static const float *draw_weights(test_case *c, uint32_t items) {
    float *weights = cut(c, items, sizeof *weights);
    for (uint32_t i = 0; i < items; ++i) {
        const uint32_t kind = below(c, 4);
        weights[i] = kind == 0 ? 0.0f : kind == 1 ? 1.0f : fabsf(unit_float(c)) * 3.0f;
    }
    return below(c, 2) ? weights : NULL;
}

static void draw_data(test_case *c) {
    qn__program *p = &c->program;
    const uint32_t features = c->layer[0].in;
    const uint32_t items = 2 * p->batch + below(c, p->batch) + 1, rows = items + 3;
    const size_t values = (size_t)rows * features;
    int32_t *labels = cut(c, items, sizeof *labels);
    uint64_t *row = cut(c, items, sizeof *row);
    const int bytes = below(c, 2) == 0;
    c->feed = (qn__feed){
        .type = bytes ? QN__ELEMENT_U8 : QN__ELEMENT_F32, .features = features, .items = items};
    p->scale = bytes              ? (qn__scale)below(c, 4)
               : below(c, 2) == 0 ? QN__SCALE_NONE
                                  : QN__SCALE_STANDARD;
    if (bytes) {
        uint8_t *drawn = cut(c, values, 1);
        for (size_t i = 0; i < values; ++i)
            drawn[i] = (uint8_t)draw(c);
        c->feed.values = drawn;
    } else {
        c->feed.values = numbers(c, values, 1.0f);
    }
    for (uint32_t i = 0; i < items; ++i) {
        labels[i] = draw_label(c);
        row[i] = below(c, rows);
    }
    c->feed.labels = labels;
    c->feed.rows = below(c, 2) ? row : NULL;
    p->mean = numbers(c, features, bytes ? 128.0f : 1.0f);
    p->inverse = numbers(c, features, bytes ? 0.02f : 1.0f);
    c->feed.weights = draw_weights(c, items);
}

static void draw_state(test_case *c) {
    const qn__program *p = &c->program;
    c->state.parameters = cut(c, p->parameters, sizeof(float));
    for (uint32_t i = 0; i < p->layers; ++i) {
        const qn__layer *l = &c->layer[i];
        const float size = sqrtf(3.0f / (float)l->in) * (below(c, 8) == 0 ? 4.0f : 1.0f);
        for (uint64_t k = l->weights; k < qn__layer_end(l); ++k)
            c->state.parameters[k] = number(c, size);
    }
    for (uint32_t s = 0; s < qn__program_slots(p); ++s) {
        c->state.slot[s] = numbers(c, p->parameters, 0.01f);
        /* Second moments are not negative. */
        for (uint64_t k = 0; s == 1 && k < p->parameters; ++k)
            c->state.slot[1][k] = fabsf(c->state.slot[1][k]);
    }
}

/* Two full batches, then a shorter one. */
static void draw_batches(test_case *c) {
    const int ordered = below(c, 4) != 0;
    const uint32_t epoch = below(c, 3);
    qn__permutation_begin(&c->order, c->feed.items, c->program.seed, 2, epoch);
    for (uint32_t b = 0; b < CASE_BATCHES; ++b) {
        const uint64_t first = (uint64_t)b * c->program.batch, left = c->feed.items - first;
        c->batch[b] =
            (qn__batch){.feed = &c->feed,
                        .order = ordered ? &c->order : NULL,
                        .first = first,
                        .items = left < c->program.batch ? (uint32_t)left : c->program.batch,
                        .epoch = epoch};
    }
}

/* A side of the picture, 1 or a divisor of `features`. */
static uint32_t divisor(test_case *c, uint32_t features) {
    uint32_t side = 1 + below(c, features < 12 ? features : 12);
    while (features % side > 0)
        --side;
    return side;
}

/* Mixes items of some cases whose loss allows it. */
static inline void mix_some(test_case *c) {
    const uint32_t drawn = below(c, 8);
    if (c->program.loss != QN__LOSS_CROSS_ENTROPY || c->feed.weights || drawn > 2)
        return;
    c->mix = (qn__mix){0.2f + 0.4f * (float)drawn, drawn > 0, c->layer[0].from};
    if (c->program.augment)
        c->mix.shape = c->augment.shape;
    c->program.mix = &c->mix;
}

/* Augments the items of one case in four. Call it after the case is made. */
static void augment_some(test_case *c) {
    qn__augment *a = &c->augment;
    qn__shape picture = c->layer[0].from;
    const uint32_t features = c->layer[0].in, drawn = below(c, 32);
    size_t at = strlen(c->text);
    if (drawn >= 8)
        return;
    if (picture.height * picture.width == 1) {
        picture.width = divisor(c, features);
        picture.height = divisor(c, features / picture.width);
        picture.channels = features / picture.width / picture.height;
    }
    a->shape = picture;
    if (drawn & 1) {
        a->word[a->words++] = (qn__augment_word){QN__AUGMENT_PAD, 1 + below(c, 3), {0}};
        a->word[a->words++] = (qn__augment_word){QN__AUGMENT_CROP, 0, {0}};
    }
    if (drawn & 2)
        a->word[a->words++] = (qn__augment_word){QN__AUGMENT_CUTOUT, 1 + below(c, 4), {0}};
    if (c->feed.type == QN__ELEMENT_U8 && below(c, 2)) {
        const uint32_t side = picture.height < picture.width ? picture.height : picture.width;
        a->word[a->words++] = (qn__augment_word){QN__AUGMENT_RESIZED_CROP, 0, {0.1f, 1, 0.5f, 2}};
        a->word[a->words++] =
            (qn__augment_word){QN__AUGMENT_ROTATE, 0, {90, (float)(drawn & 1), 7}};
        a->word[a->words++] = (qn__augment_word){QN__AUGMENT_JITTER, 0, {0.5f, 0.5f}};
        if (side > 2)
            a->word[a->words++] = (qn__augment_word){QN__AUGMENT_BLUR, 5, {0.5f, 2}};
    }
    if ((drawn & 4) || a->words == 0)
        a->word[a->words++] = (qn__augment_word){QN__AUGMENT_FLIP, 0, {0}};
    c->program.augment = a;
    snprintf(c->text + at, sizeof c->text - at, "; augmented %ux%ux%u by %u words",
             picture.channels, picture.height, picture.width, a->words);
}

/* Plain floats of half of the cases become numbers of tokens, most of them small. Call it after the
 * case is augmented and mixed. */
static inline void tokens_some(test_case *c) {
    const size_t at = strlen(c->text);
    const size_t count = (size_t)(c->feed.items + 3) * c->feed.features;
    if (c->seed % 2 || c->feed.type != QN__ELEMENT_F32 || c->program.scale != QN__SCALE_NONE ||
        c->program.augment || c->program.mix)
        return;
    const float *values = c->feed.values;
    const int wide = c->seed % 4 == 0;
    uint16_t *narrow = cut(c, count, sizeof *narrow);
    uint32_t *word = cut(c, count, sizeof *word);
    for (size_t i = 0; i < count; ++i) {
        word[i] = i % 61 ? (uint32_t)fminf(fabsf(values[i]) * 3.0f, 60.0f) : wide ? 90001 : 65535;
        narrow[i] = (uint16_t)word[i];
    }
    c->feed.type = wide ? QN__ELEMENT_TOKEN32 : QN__ELEMENT_TOKEN16;
    c->feed.values = wide ? (const void *)word : narrow;
    c->feed.step = c->seed % 3 ? 0 : c->feed.features - 1; /* rows share values */
    snprintf(c->text + at, sizeof c->text - at, "; tokens of %d bits%s", wide ? 32 : 16,
             c->feed.step ? " that rows share" : "");
}

/* Plain floats become lists of those that are not 0, most of the items' values. A list has all of
 * them where the others would be scaled. Call it for a case without pixels. */
static inline void list_values(test_case *c) {
    const size_t at = strlen(c->text), items = (size_t)c->feed.items + 3;
    const uint32_t features = c->feed.features;
    const int all = c->program.scale == QN__SCALE_STANDARD;
    const float *values = c->feed.values;
    qn__listed *pair = cut(c, items * features, sizeof *pair);
    qn__list *list = cut(c, items, sizeof *list);
    for (size_t i = 0; i < items; ++i, values += features, pair += features) {
        list[i] = (qn__list){pair, 0};
        for (uint32_t k = 0; k < features; ++k)
            if (all || (k + i + c->seed) % 4 == 0)
                pair[list[i].count++] = (qn__listed){k, values[k]};
    }
    c->feed.type = QN__ELEMENT_LIST;
    c->feed.values = list;
    c->program.lists = 1;
    snprintf(c->text + at, sizeof c->text - at, "; lists");
}

/* One case in three has a rate for each layer. Call it after the case is made. */
static inline void fine_tune_some(test_case *c) {
    const size_t at = strlen(c->text);
    if (c->seed % 3 != 1)
        return;
    for (uint32_t i = 0; i < c->program.layers; ++i)
        c->layer[i].rate_factor = ldexpf(1.0f + (float)(i % 5) / 8.0f, -(int)(i % 4));
    if (c->layer[c->program.layers - 1].tied) /* the embedding's */
        c->layer[c->program.layers - 1].rate_factor = c->layer[0].rate_factor;
    snprintf(c->text + at, sizeof c->text - at, "; rates by layer");
}

/* Whether the layers before `k` may stay as they are: nothing after them reads an output before the
 * last of them, and parameters stand in the order of the layers. */
static inline int may_freeze(const test_case *c, uint32_t k) {
    const qn__layer *layer = c->layer;
    for (uint32_t l = 0; l < k; ++l)
        if (qn__layer_end(&layer[l]) > layer[k].weights)
            return 0;
    for (uint32_t l = k; l < c->program.layers; ++l) {
        const int joins = qn__layer_joins(&layer[l]);
        if (qn__layer_source(layer, l) < (int32_t)k - 1 || layer[l].weights < layer[k].weights ||
            (joins && qn__layer_other(layer, l) < (int32_t)k - 1))
            return 0;
    }
    return 1;
}

/* Moves the parameters of the layers that train, or of the others, to where `at` is. */
static inline void place_layers(test_case *c, int trains, uint64_t *at) {
    for (uint32_t l = 0; l < c->program.layers; ++l) {
        qn__layer *layer = &c->layer[l];
        const uint64_t weights = layer->biases - layer->weights;
        const uint64_t all = qn__layer_end(layer) - layer->weights;
        if (qn__program_trains(&c->program, l) != trains)
            continue;
        layer->weights = *at;
        layer->biases = *at + weights;
        *at += all;
    }
}

/* Some of the layers after them stay as they are, too (25.85), but one with parameters trains.
 * Returns how many. */
static inline uint32_t still_some(test_case *c) {
    qn__program *p = &c->program;
    uint32_t keep = p->layers - 1, count = 0;
    while (keep > p->frozen && qn__layer_end(&c->layer[keep]) == c->layer[keep].weights)
        --keep;
    if (qn__layer_end(&c->layer[keep]) == c->layer[keep].weights || qn__program_tied(p))
        return 0;
    if (c->seed % 3 && keep > p->frozen) /* the last layer may be still */
        for (uint32_t l = keep; l-- > p->frozen;)
            keep = qn__layer_end(&c->layer[l]) > c->layer[l].weights ? l : keep;
    for (uint32_t l = p->frozen; l < p->layers; ++l) {
        qn__layer *layer = &c->layer[l];
        const int table = layer->tied || layer->kind == QN__LAYER_EMBEDDING; /* never alone */
        if (l == keep || layer->running || table || (c->seed / 8 + l) % 3 == 1)
            continue;
        layer->still = 1;
        layer->drop_threshold = 0;
        ++count;
    }
    p->frozen_parameters = 0;
    place_layers(c, 0, &p->frozen_parameters);
    uint64_t end = p->frozen_parameters;
    place_layers(c, 1, &end);
    return count;
}

/* Some layers of one case in four do not train (24.61). Call it after the case is made. */
static inline void freeze_some(test_case *c) {
    qn__program *p = &c->program;
    const size_t at = strlen(c->text);
    uint32_t k = p->layers > 1 ? 1 + (uint32_t)(c->seed / 4 % (p->layers - 1)) : 0, still = 0;
    if (c->seed % 4 != 3 && c->seed % 20 != 1) /* GPUs have cases 1, 11, 21 and so on */
        return;
    while (k > 0 && !may_freeze(c, k))
        --k;
    k = c->seed % 8 == 3 || c->seed % 40 == 1 ? k / 2 : k;
    while (k > 0 && !may_freeze(c, k))
        --k;
    p->frozen = k;
    p->frozen_parameters = k > 0 ? c->layer[k].weights : 0;
    for (uint32_t l = 0; l < k; ++l)
        c->layer[l].drop_threshold = 0;
    if ((c->seed % 8 == 3 || c->seed % 40 == 1) && may_freeze(c, k))
        still = still_some(c);
    snprintf(c->text + at, sizeof c->text - at, "; %u frozen, %u still", k, still);
}

/* Every other case computes outputs again in the backward pass, also of those that GPUs have. */
static inline void recompute_some(test_case *c) {
    const size_t at = strlen(c->text);
    c->program.recompute = (int)((c->seed + c->seed / 10) % 2);
    if (c->program.recompute)
        snprintf(c->text + at, sizeof c->text - at, "; again");
}

static uint32_t answers_each; /* of the case */

/* Logits in slices of a row, of some, of grains, or of all. */
static inline void slice_some(test_case *c) {
    static const size_t bytes[] = {0, 128, 512, 4096};
    const size_t at = strlen(c->text);
    c->program.slice_bytes = c->program.answers ? bytes[c->seed % 4] : 0;
    if (c->program.slice_bytes && qn__program_tied(&c->program) && c->seed % 8 < 4)
        c->program.grain = c->program.batch; /* partials where the sums will be */
    if (c->program.slice_bytes)
        snprintf(c->text + at, sizeof c->text - at, "; slices of %zu bytes",
                 c->program.slice_bytes);
}

/* Whether a network may end after the layer, with an answer for each pixel of the pictures. */
static inline int keeps_size(const test_case *c, uint32_t l) {
    const qn__shape *from = &c->layer[0].from, *to = &c->layer[l].to;
    return c->layer[l].kind == QN__LAYER_CONV && to->height * to->width > 1 &&
           to->height == from->height && to->width == from->width && may_freeze(c, l + 1);
}

/* Classes of pixels move with their pictures where these have as many; else nothing is mixed. */
static inline void move_answers(test_case *c, const qn__layer *last) {
    qn__program *p = &c->program;
    const qn__shape *picture = p->augment ? &p->augment->shape : &c->layer[0].from;
    const int fits = last->to.height == picture->height && last->to.width == picture->width;
    if (!fits || p->answers != last->to.height * last->to.width || p->answers < 2) {
        p->mix = NULL;
        return;
    }
    if (!p->mix && c->seed % 3) {
        c->mix = (qn__mix){0.5f, 1, *picture};
        p->mix = &c->mix;
    }
    p->moves_answers = p->mix || (p->augment && qn__augment_moves(p->augment));
}

/* The network of one case in four gives several answers (24.70), of pixels where its last layer but
 * one is a convolution: then that is the last one. Call it after the case is made. */
static inline void answer_some(test_case *c) {
    qn__program *p = &c->program;
    size_t at = strlen(c->text);
    answers_each = 0;
    if (c->seed % 4 != 2 && c->seed % 20 != 11) /* GPUs have cases 1, 11, 21 and so on */
        return;
    if (p->layers > 1 && c->layer[p->layers - 2].kind == QN__LAYER_CONV)
        --p->layers;
    for (uint32_t l = 0; l < p->layers && c->seed % 3; ++l)
        if (keeps_size(c, l))
            p->layers = l + 1;
    qn__layer *last = &c->layer[p->layers - 1];
    last->activation = QN__ACT_NONE;
    last->drop_threshold = 0;
    last->drop_keep = 1.0f;
    p->parameters = qn__layer_end(last);
    p->real = 0;
    p->loss = c->seed % 8 < 4 && last->to.channels > 1 && last->to.channels < QN__IGNORED
                  ? QN__LOSS_CROSS_ENTROPY
                  : QN__LOSS_BINARY;
    p->answers = answers_each = last->out / last->to.channels * qn__answers_of_pixel(p);
    uint8_t *answers = cut(c, c->feed.items, p->answers);
    uint64_t *row = cut(c, c->feed.items, sizeof *row);
    for (uint64_t i = 0; i < c->feed.items * p->answers; ++i)
        answers[i] = (uint8_t)(below(c, 6) ? below(c, qn__program_classes(p)) : QN__IGNORED);
    for (uint64_t i = 0; i < c->feed.items; ++i)
        row[i] = below(c, (uint32_t)c->feed.items);
    c->feed.labels = NULL;
    c->feed.answers = answers;
    c->feed.answer_rows = below(c, 2) ? row : NULL;
    move_answers(c, last);
    snprintf(c->text + at, sizeof c->text - at, "; %u answers of %s", p->answers,
             p->loss == QN__LOSS_BINARY ? "binary" : "cross-entropy");
}

static void describe_case(test_case *c) {
    static const char *const activations[] = {"none",    "relu",       "tanh",        "sigmoid",
                                              "softmax", "leaky_relu", "gelu",        "silu",
                                              "relu6",   "hardswish",  "hardsigmoid", "gelu-tanh"};
    static const char *const optimizers[] = {"sgd", "momentum", "adam", "adamw", "nesterov"};
    static const char *const scales[] = {"none", "unit", "standard", "fraction"};
    static const char *const losses[] = {"cross-entropy", "mse", "mae", "huber", "binary"};
    const qn__program *p = &c->program;
    size_t at =
        (size_t)snprintf(c->text, sizeof c->text, "seed %llu, %s: %u %s scale %s",
                         (unsigned long long)c->seed, flavour_names[c->kind], c->layer[0].in,
                         qn__element_of(c->feed.type)->name, scales[p->scale]);
    for (uint32_t i = 0; i < p->layers; ++i)
        at += (size_t)snprintf(c->text + at, sizeof c->text - at, "; %u %s%s", c->layer[i].out,
                               activations[c->layer[i].activation],
                               c->layer[i].drop_threshold ? " dropout" : "");
    snprintf(c->text + at, sizeof c->text - at,
             "; %s%s, %s, decay %g, rate %g, batch %u, grain %u, unit %u", p->real ? "real " : "",
             losses[p->loss], optimizers[p->optimizer], (double)p->weight_decay, (double)c->rate,
             p->batch, p->grain, p->gradient_scale);
}

/* Makes the case of a seed. `c` may be reused; call case_end at the end. */
static void case_begin(test_case *c, uint64_t seed) {
    char *buffer = c->buffer ? c->buffer : qn__alloc(CASE_CAPACITY, 1, NULL);
    *c = (test_case){.seed = seed, .random = seed, .buffer = buffer};
    c->kind = (flavour)below(c, 2 * FLAVOURS);
    c->kind = c->kind >= FLAVOURS ? PLAIN : c->kind;
    draw_sizes(c);
    draw_numbers(c);
    draw_data(c);
    draw_state(c);
    draw_batches(c);
    describe_case(c);
}

static void case_end(test_case *c) {
    qn__free(c->buffer);
    c->buffer = NULL;
}

#endif
