/* attention as products and a softmax: the operator Attention is younger. Items and groups of heads
 * are one dimension here: [items * groups][heads of a group][channels][positions]. */
#include "model/exchange/onnx_attention.h"

#include "base/memory.h"
#include "layer/attention.h"
#include "model/exchange/onnx_lengths.h"
#include <stdio.h>

/* The name of a constant of this layer. */
static void name_of(const qn__onnx_graph *g, const char *what, char name[QN__ONNX_NAME]) {
    snprintf(name, QN__ONNX_NAME, "%.31s.%.15s", g->part, what);
}

static void add_integer(qn__onnx_graph *g, const char *what, int64_t value,
                        char name[QN__ONNX_NAME]) {
    name_of(g, what, name);
    qn__onnx_integers(g, name, &value, 1);
}

static void reshape(qn__onnx_graph *g, const int64_t shape[4], const char *shape_name,
                    const char *what) {
    char name[QN__ONNX_NAME];
    name_of(g, shape_name, name);
    qn__onnx_integers(g, name, shape, 4);
    qn__onnx_step(g, "Reshape", name, what, QN__ONNX_NONE);
}

static void transpose(qn__onnx_graph *g, const char *what) {
    const qn__onnx_attribute order[] = {
        {.name = "perm", .form = QN__ONNX_INTS, .value = {0, 1, 3, 2}, .count = 4}, {.name = NULL}};
    qn__onnx_step(g, "Transpose", "", what, order);
}

/* Channels first .. end - 1 of x as `heads` heads of a group; `what` begins the names. */
static qn__onnx_value part_of(qn__onnx_graph *g, const qn__layer *l, const qn__onnx_value *x,
                              uint32_t first, uint32_t end, const char *what) {
    const uint32_t width = qn__attention_width(l), heads = (end - first) / width / l->kv_heads;
    const int64_t shape[4] = {-1, heads, width, (int64_t)l->from.height * l->from.width};
    char begin[QN__ONNX_NAME], stop[QN__ONNX_NAME], axis[QN__ONNX_NAME];
    char others[3 * QN__ONNX_NAME], name[16];
    g->at = *x;
    snprintf(name, sizeof name, "%.8s.begin", what);
    add_integer(g, name, first, begin);
    snprintf(name, sizeof name, "%.8s.end", what);
    add_integer(g, name, end, stop);
    snprintf(name, sizeof name, "%.8s.axis", what);
    add_integer(g, name, 1, axis);
    snprintf(others, sizeof others, "%s %s %s", begin, stop, axis);
    snprintf(name, sizeof name, "%.8s.own", what);
    qn__onnx_step(g, "Slice", others, name, QN__ONNX_NONE);
    snprintf(name, sizeof name, "%.8s.shape", what);
    reshape(g, shape, name, what);
    return g->at;
}

/* What is added to scores: much less than 0 for each position by which one is out of sight. `sign`:
 * of the distance from a query to a key; `more` is added to it first. */
static qn__onnx_value distance(qn__onnx_graph *g, const char *from, const char *to, float more,
                               const char *what) {
    char name[16], number[QN__ONNX_NAME];
    snprintf(g->at.name, sizeof g->at.name, "%s", from);
    snprintf(name, sizeof name, "%.8s.apart", what);
    qn__onnx_step(g, "Sub", to, name, QN__ONNX_NONE);
    snprintf(name, sizeof name, "%.8s.more", what);
    name_of(g, name, number);
    qn__onnx_scalar(g, number, more);
    snprintf(name, sizeof name, "%.8s.over", what);
    qn__onnx_step(g, "Add", number, name, QN__ONNX_NONE);
    snprintf(name, sizeof name, "%.8s.hidden", what);
    qn__onnx_step(g, "Relu", "", name, QN__ONNX_NONE);
    return g->at;
}

static void hide(qn__onnx_graph *g, const qn__layer *l) {
    const uint32_t all = l->from.height * l->from.width;
    const qn__onnx_value scores = g->at;
    char rows[QN__ONNX_NAME], columns[QN__ONNX_NAME], name[QN__ONNX_NAME];
    float *number = qn__alloc(all, sizeof *number, NULL);
    if (!l->causal || !number) {
        g->body.failed |= l->causal;
        qn__free(number);
        return;
    }
    for (uint32_t i = 0; i < all; ++i)
        number[i] = (float)i;
    name_of(g, "queries", rows);
    name_of(g, "keys", columns);
    qn__onnx_floats(g, rows, (const uint64_t[]){all, 1, 0}, number);
    qn__onnx_floats(g, columns, (const uint64_t[]){1, all, 0}, number);
    qn__free(number);
    const qn__onnx_value later = distance(g, columns, rows, 0.0f, "later");
    if (l->span) {
        distance(g, rows, columns, 1.0f - (float)l->span, "before");
        qn__onnx_step(g, "Add", later.name, "hidden", QN__ONNX_NONE);
    }
    name_of(g, "away", name);
    qn__onnx_scalar(g, name, -1e30f);
    qn__onnx_step(g, "Mul", name, "mask", QN__ONNX_NONE);
    qn__onnx_step(g, "Add", scores.name, "seen", QN__ONNX_NONE);
}

void qn__onnx_attention(qn__onnx_graph *g, const qn__layer *l) {
    const qn__onnx_attribute last[] = {{.name = "axis", .value = {-1}}, {.name = NULL}};
    const uint32_t key = qn__attention_keys(l, 0), value = key + (l->from.channels - key) / 2;
    const int64_t back[4] = {-1, l->to.channels, l->to.height, l->to.width};
    char name[QN__ONNX_NAME];
    qn__onnx_unflatten(g, l->from);
    const qn__onnx_value x = g->at;
    const qn__onnx_value keys = part_of(g, l, &x, key, value, "key");
    part_of(g, l, &x, value, l->from.channels, "value");
    transpose(g, "valueturned");
    const qn__onnx_value values = g->at;
    part_of(g, l, &x, 0, key, "query");
    transpose(g, "queryturned");
    qn__onnx_step(g, "MatMul", keys.name, "products", QN__ONNX_NONE);
    name_of(g, "scale", name);
    qn__onnx_scalar(g, name, qn__attention_scale(l));
    qn__onnx_step(g, "Mul", name, "scores", QN__ONNX_NONE);
    hide(g, l);
    if (l->by_length)
        qn__onnx_hide_rest(g, l);
    qn__onnx_step(g, "Softmax", "", "weights", last);
    qn__onnx_step(g, "MatMul", values.name, "mixed", QN__ONNX_NONE);
    transpose(g, "turned");
    reshape(g, back, "back", "attended");
    if (l->by_length)
        qn__onnx_clear_rest(g);
}
