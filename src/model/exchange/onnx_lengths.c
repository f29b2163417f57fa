#include "model/exchange/onnx_lengths.h"

#include "base/memory.h"
#include <stdio.h>

/* Values of the first layer: items x 1 x 1 x positions, or x 1. 1 or 0: */
#define TOKENS "layer0.tokenised" /* whether a position is a token */
#define COUNTED "layer0.counted"  /* whether it is below the length */
#define LENGTH "layer0.length"

static const qn__onnx_attribute to_float[] = {{.name = "to", .value = {QN__ONNX_FLOAT}},
                                              {.name = NULL}};

/* A constant of this layer with 1 x 1 x 1 x `count` floats: first + k * step. */
static void add_places(qn__onnx_graph *g, const char *what, uint32_t count, float first, float step,
                       char name[QN__ONNX_NAME]) {
    float *number = qn__alloc(count, sizeof *number, NULL);
    snprintf(name, QN__ONNX_NAME, "%.31s.%.15s", g->part, what);
    if (!number) {
        g->body.failed = 1;
        return;
    }
    for (uint32_t i = 0; i < count; ++i)
        number[i] = first + (float)i * step;
    qn__onnx_floats(g, name, (const uint64_t[]){1, 1, 1, count, 0}, number);
    qn__free(number);
}

static void reshape(qn__onnx_graph *g, const int64_t shape[4], const char *shape_name,
                    const char *what) {
    char name[QN__ONNX_NAME];
    snprintf(name, sizeof name, "%.31s.%.15s", g->part, shape_name);
    qn__onnx_integers(g, name, shape, 4);
    qn__onnx_step(g, "Reshape", name, what, QN__ONNX_NONE);
}

static void take(qn__onnx_graph *g, const char *name) {
    snprintf(g->at.name, sizeof g->at.name, "%s", name);
}

void qn__onnx_lengths(qn__onnx_graph *g, const qn__layer *l) {
    const qn__onnx_attribute whole[] = {{.name = "to", .value = {QN__ONNX_INT64}}, {.name = NULL}};
    const qn__onnx_attribute most[] = {
        {.name = "axes", .form = QN__ONNX_INTS, .value = {3}, .count = 1}, {.name = NULL}};
    const uint32_t positions = l->to.width;
    const qn__onnx_value x = g->at;
    char name[QN__ONNX_NAME], both[3 * QN__ONNX_NAME];
    qn__onnx_constant(g, "vocabulary", (float)(l->vector / l->to.channels), name);
    qn__onnx_step(g, "Less", name, "known", QN__ONNX_NONE);
    const qn__onnx_value known = g->at;
    qn__onnx_step(g, "Cast", "", "ones", to_float);
    reshape(g, (const int64_t[]){-1, 1, 1, positions}, "row", "tokenised");
    add_places(g, "ends", positions, 1.0f, 1.0f, name);
    qn__onnx_step(g, "Mul", name, "reached", QN__ONNX_NONE);
    qn__onnx_step(g, "ReduceMax", "", "length", most);
    add_places(g, "places", positions, 0.0f, 1.0f, name);
    qn__onnx_step(g, "Greater", name, "below", QN__ONNX_NONE);
    qn__onnx_step(g, "Cast", "", "counted", to_float);
    qn__onnx_constant(g, "none", 0.0f, name);
    snprintf(both, sizeof both, "%s %s", x.name, name);
    take(g, known.name);
    qn__onnx_step(g, "Where", both, "safe", QN__ONNX_NONE);
    qn__onnx_step(g, "Cast", "", "tokens", whole);
}

void qn__onnx_take_length(qn__onnx_graph *g) {
    take(g, LENGTH);
    g->at.flat = 0;
}

void qn__onnx_tokens_only(qn__onnx_graph *g) {
    qn__onnx_step(g, "Mul", TOKENS, "known_rows", QN__ONNX_NONE);
}

/* 0 where a position counts, else much less than any value. */
static qn__onnx_value away(qn__onnx_graph *g) {
    const qn__onnx_value before = g->at;
    char name[QN__ONNX_NAME];
    take(g, COUNTED);
    qn__onnx_constant(g, "counts", 1.0f, name);
    qn__onnx_step(g, "Sub", name, "missing", QN__ONNX_NONE);
    qn__onnx_constant(g, "far", 1e30f, name);
    qn__onnx_step(g, "Mul", name, "distance", QN__ONNX_NONE);
    const qn__onnx_value made = g->at;
    g->at = before;
    return made;
}

void qn__onnx_hide_rest(qn__onnx_graph *g, const qn__layer *l) {
    const int64_t repeats[4] = {1, l->kv_heads, 1, 1};
    const qn__onnx_value scores = g->at;
    char name[QN__ONNX_NAME];
    g->at = away(g);
    g->at.flat = 0;
    snprintf(name, sizeof name, "%.31s.repeats", g->part);
    qn__onnx_integers(g, name, repeats, 4);
    qn__onnx_step(g, "Tile", name, "repeated", QN__ONNX_NONE);
    reshape(g, (const int64_t[]){-1, 1, 1, l->from.width}, "of_group", "of_groups");
    qn__onnx_step(g, "Add", scores.name, "of_length", QN__ONNX_NONE);
}

void qn__onnx_clear_rest(qn__onnx_graph *g) {
    qn__onnx_step(g, "Mul", COUNTED, "counted_alone", QN__ONNX_NONE);
}

/* The share of each position in the result. */
static void add_shares(qn__onnx_graph *g, const qn__layer *l, uint32_t positions) {
    char name[QN__ONNX_NAME];
    if (l->pooling == QN__POOL_MEAN) {
        take(g, LENGTH);
        qn__onnx_constant(g, "least", 1.0f, name);
        qn__onnx_step(g, "Max", name, "divisor", QN__ONNX_NONE);
        snprintf(name, sizeof name, "%s", g->at.name);
        take(g, COUNTED);
        qn__onnx_step(g, "Div", name, "shares", QN__ONNX_NONE);
    } else if (l->pooling == QN__POOL_FIRST) {
        add_places(g, "order", positions, 1.0f, -1.0f, name); /* 1, 0, -1 ... */
        take(g, name);
        qn__onnx_step(g, "Relu", "", "front", QN__ONNX_NONE);
        qn__onnx_step(g, "Min", LENGTH, "shares", QN__ONNX_NONE);
    } else {
        add_places(g, "order", positions, 1.0f, 1.0f, name);
        take(g, name);
        qn__onnx_step(g, "Equal", LENGTH, "is_last", QN__ONNX_NONE);
        qn__onnx_step(g, "Cast", "", "shares", to_float);
    }
}

static void add_greatest(qn__onnx_graph *g, uint32_t channels) {
    const qn__onnx_value hidden = away(g);
    char name[QN__ONNX_NAME];
    qn__onnx_step(g, "Add", hidden.name, "comparable", QN__ONNX_NONE);
    qn__onnx_step(g, "GlobalMaxPool", "", "greatest", QN__ONNX_NONE);
    const qn__onnx_value found = g->at;
    take(g, LENGTH);
    qn__onnx_constant(g, "one", 1.0f, name);
    qn__onnx_step(g, "Min", name, "any", QN__ONNX_NONE);
    qn__onnx_step(g, "Mul", found.name, "pooled", QN__ONNX_NONE);
    reshape(g, (const int64_t[]){-1, channels, 1, 1}, "sides", "result");
}

/* All positions of a picture. */
static void add_whole(qn__onnx_graph *g, const qn__layer *l, uint32_t positions) {
    char name[QN__ONNX_NAME];
    float *shares = qn__alloc(positions, sizeof *shares, NULL);
    if (!shares) {
        g->body.failed = 1;
        return;
    }
    for (uint32_t i = 0; i < positions; ++i)
        shares[i] = l->pooling == QN__POOL_MEAN    ? 1.0f / (float)positions
                    : l->pooling == QN__POOL_FIRST ? (float)(i == 0)
                                                   : (float)(i + 1 == positions);
    snprintf(name, sizeof name, "%.31s.shares", g->part);
    qn__onnx_floats(g, name, (const uint64_t[]){1, 1, positions, 1, 0}, shares);
    qn__free(shares);
    reshape(g, (const int64_t[]){-1, l->from.channels, 1, positions}, "sides", "row");
    qn__onnx_step(g, "MatMul", name, "pooled", QN__ONNX_NONE);
}

void qn__onnx_pooled(qn__onnx_graph *g, const qn__layer *l) {
    const uint32_t positions = l->from.height * l->from.width;
    qn__onnx_unflatten(g, l->from);
    const qn__onnx_value x = g->at;
    if (!l->by_length && l->pooling == QN__POOL_MAX) {
        qn__onnx_step(g, "GlobalMaxPool", "", "pooled", QN__ONNX_NONE);
    } else if (!l->by_length) {
        add_whole(g, l, positions);
    } else if (l->pooling == QN__POOL_MAX) {
        add_greatest(g, l->from.channels);
    } else {
        add_shares(g, l, positions);
        reshape(g, (const int64_t[]){-1, 1, positions, 1}, "column", "weights");
        char name[QN__ONNX_NAME];
        snprintf(name, sizeof name, "%s", g->at.name);
        g->at = x;
        qn__onnx_step(g, "MatMul", name, "pooled", QN__ONNX_NONE);
    }
}
