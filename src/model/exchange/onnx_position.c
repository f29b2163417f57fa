#include "model/exchange/onnx_position.h"

#include "base/memory.h"
#include "layer/turned.h"
#include <stdio.h>

static void name_of(const qn__onnx_graph *g, const char *what, char name[QN__ONNX_NAME]) {
    snprintf(name, QN__ONNX_NAME, "%.31s.%.15s", g->part, what);
}

/* Adds the constant `table`, [positions][channels]. */
static void add_table(qn__onnx_graph *g, const qn__layer *l, const char *table) {
    const qn__onnx_attribute order[] = {
        {.name = "perm", .form = QN__ONNX_INTS, .value = {1, 0}, .count = 2}, {.name = NULL}};
    const int64_t sides[4] = {1, l->to.channels, l->to.height, l->to.width};
    const qn__onnx_value x = g->at;
    char name[QN__ONNX_NAME];
    snprintf(g->at.name, sizeof g->at.name, "%s", table);
    qn__onnx_step(g, "Transpose", "", "channels", order);
    name_of(g, "sides", name);
    qn__onnx_integers(g, name, sides, x.flat ? 2 : 4);
    qn__onnx_step(g, "Reshape", name, "places", QN__ONNX_NONE);
    const qn__onnx_value places = g->at;
    g->at = x;
    qn__onnx_step(g, "Add", places.name, "placed", QN__ONNX_NONE);
}

void qn__onnx_position(qn__onnx_graph *g, const qn__layer *l) {
    const uint64_t shape[] = {(uint64_t)l->to.height * l->to.width, l->to.channels, 0};
    char name[QN__ONNX_NAME];
    name_of(g, "weight", name);
    const float *values = qn_model_tensor(g->model, name, NULL, NULL);
    if (!values)
        return;
    qn__onnx_floats(g, name, shape, values);
    add_table(g, l, name);
}

void qn__onnx_sinusoid(qn__onnx_graph *g, const qn__layer *l) {
    const uint32_t channels = l->to.channels, positions = l->to.height * l->to.width;
    float *table = qn__alloc(l->out, 2 * sizeof *table, NULL);
    char name[QN__ONNX_NAME];
    if (!table) {
        g->body.failed = 1;
        return;
    }
    float *own = table + l->out;
    qn__turned_table(l, 0, positions, table);
    for (size_t i = 0; i < l->out; ++i) {
        const float *row = table + i / channels * channels;
        const size_t c = i % channels;
        own[i] = row[c % 2 ? c / 2 : channels / 2 + c / 2];
    }
    name_of(g, "table", name);
    qn__onnx_floats(g, name, (const uint64_t[]){positions, channels, 0}, own);
    qn__free(table);
    add_table(g, l, name);
}

/* The numbers first, first + 1, ... of a constant. */
static void add_range(qn__onnx_graph *g, const char *what, uint32_t first, uint32_t count,
                      char name[QN__ONNX_NAME]) {
    int64_t *numbers = qn__alloc(count, sizeof *numbers, NULL);
    name_of(g, what, name);
    for (uint32_t i = 0; numbers && i < count; ++i)
        numbers[i] = (int64_t)first + i;
    if (numbers)
        qn__onnx_integers(g, name, numbers, count);
    else
        g->body.failed = 1;
    qn__free(numbers);
}

/* The elements of an axis with these numbers. */
static void gather(qn__onnx_graph *g, const qn__onnx_value *x, int64_t axis, const char *numbers,
                   const char *what) {
    const qn__onnx_attribute along[] = {{.name = "axis", .value = {axis}}, {.name = NULL}};
    g->at = *x;
    qn__onnx_step(g, "Gather", numbers, what, along);
}

/* Channels of a head, in the order of their partners. */
static void add_partners(qn__onnx_graph *g, uint32_t pairs, char name[QN__ONNX_NAME]) {
    int64_t *numbers = qn__alloc((size_t)2 * pairs, sizeof *numbers, NULL);
    name_of(g, "partners", name);
    for (uint32_t i = 0; numbers && i < 2 * pairs; ++i)
        numbers[i] = i < pairs ? i + pairs : i - pairs;
    if (numbers)
        qn__onnx_integers(g, name, numbers, (size_t)2 * pairs);
    else
        g->body.failed = 1;
    qn__free(numbers);
}

/* Cosines, and sines with the sign of each half of a head: [1][1][channel][position]. */
static void add_angles(qn__onnx_graph *g, const qn__layer *l, char cosines[QN__ONNX_NAME],
                       char sines[QN__ONNX_NAME]) {
    const uint32_t pairs = qn__turned_pairs(l), positions = l->to.height * l->to.width;
    const size_t all = (size_t)2 * pairs * positions;
    const uint64_t shape[] = {1, 1, 2 * (uint64_t)pairs, positions, 0};
    float *table = qn__alloc(all, 3 * sizeof *table, NULL);
    name_of(g, "cosines", cosines);
    name_of(g, "sines", sines);
    if (!table) {
        g->body.failed = 1;
        return;
    }
    float *cosine = table + all, *sine = cosine + all;
    qn__turned_table(l, 0, positions, table);
    for (size_t i = 0; i < all; ++i) {
        const size_t c = i / positions, p = i % positions;
        const float *row = table + p * 2 * pairs + c % pairs;
        cosine[i] = row[0];
        sine[i] = c < pairs ? -row[pairs] : row[pairs];
    }
    qn__onnx_floats(g, cosines, shape, cosine);
    qn__onnx_floats(g, sines, shape, sine);
    qn__free(table);
}

void qn__onnx_rotary(qn__onnx_graph *g, const qn__layer *l) {
    const qn__onnx_attribute joined[] = {{.name = "axis", .value = {1}}, {.name = NULL}};
    const uint32_t pairs = qn__turned_pairs(l), turned = l->heads + l->kv_heads;
    const int64_t heads[4] = {0, (int64_t)turned + l->kv_heads, 2 * (int64_t)pairs, -1};
    const int64_t back[4] = {0, l->to.channels, l->to.height, l->to.width};
    char name[QN__ONNX_NAME], cosines[QN__ONNX_NAME], sines[QN__ONNX_NAME];
    const int flat = g->at.flat;
    name_of(g, "heads", name);
    qn__onnx_integers(g, name, heads, 4);
    qn__onnx_step(g, "Reshape", name, "apart", QN__ONNX_NONE);
    const qn__onnx_value apart = g->at;
    add_angles(g, l, cosines, sines);
    add_range(g, "turning", 0, turned, name);
    gather(g, &apart, 1, name, "own");
    const qn__onnx_value own = g->at;
    add_partners(g, pairs, name);
    gather(g, &own, 2, name, "others");
    qn__onnx_step(g, "Mul", sines, "across", QN__ONNX_NONE);
    const qn__onnx_value across = g->at;
    g->at = own;
    qn__onnx_step(g, "Mul", cosines, "along", QN__ONNX_NONE);
    qn__onnx_step(g, "Add", across.name, "turned", QN__ONNX_NONE);
    const qn__onnx_value done = g->at;
    add_range(g, "staying", turned, l->kv_heads, name);
    gather(g, &apart, 1, name, "values");
    const qn__onnx_value values = g->at;
    g->at = done;
    qn__onnx_step(g, "Concat", values.name, "joined", joined);
    name_of(g, "channels", name);
    qn__onnx_integers(g, name, back, flat ? 2 : 4);
    qn__onnx_step(g, "Reshape", name, "rotary", QN__ONNX_NONE);
}
