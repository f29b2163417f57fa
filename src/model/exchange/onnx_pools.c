/* Pools whose windows are fitted to a size (docs/exactness.md 24.40) have no operator in ONNX.
 * Where the size divides that of the input, they are usual pools. Otherwise a maximum repeats rows
 * and columns until all windows have one size, and a mean is two products with matrices of shares.
 */
#include "model/exchange/onnx_pools.h"

#include "base/memory.h"
#include <stdio.h>

/* Padding at the end of one direction, to where the last window reaches: with "ceil" it is more
 * than at the begin. */
static uint32_t pad_after(const qn__layer *l, int d) {
    const uint32_t in[2] = {l->from.height, l->from.width}, out[2] = {l->to.height, l->to.width};
    const qn__window *w = &l->window;
    const uint32_t reach = (out[d] - 1) * w->stride[d] + w->kernel[d], whole = in[d] + w->pad[d];
    return reach > whole + w->pad[d] ? reach - whole : w->pad[d];
}

/* A pool by windows of one size; `pad`: on each side, as ONNX has them. */
static void add_windows(qn__onnx_graph *g, const char *op, const qn__window *w,
                        const uint32_t pad[4], int counts) {
    const qn__onnx_attribute attributes[] = {
        qn__onnx_pair("kernel_shape", w->kernel),
        {.name = "pads",
         .form = QN__ONNX_INTS,
         .count = 4,
         .value = {pad[0], pad[1], pad[2], pad[3]}},
        qn__onnx_pair("strides", w->stride),
        {.name = counts ? "count_include_pad" : NULL, .value = {1}},
        {.name = NULL}};
    qn__onnx_step(g, op, "", "pool", attributes);
}

static const uint32_t NO_PAD[4] = {0, 0, 0, 0};

/* Sizes of both directions, of the input and of the output. */
typedef struct sizes {
    uint32_t from[2], to[2];
} sizes;

static sizes sizes_of(const qn__layer *l) {
    return (sizes){{l->from.height, l->from.width}, {l->to.height, l->to.width}};
}

/* Rows (d = 0) or columns: those of each window, the last of them again up to window[d]. */
static void repeat(qn__onnx_graph *g, const qn__layer *l, int d) {
    const sizes s = sizes_of(l);
    const uint32_t window = l->window.kernel[d];
    const qn__onnx_attribute axis[] = {{.name = "axis", .value = {2 + d}}, {.name = NULL}};
    char name[QN__ONNX_NAME];
    int64_t *list = qn__alloc((uint64_t)s.to[d] * window, sizeof *list, NULL);
    g->body.failed |= !list;
    for (uint32_t at = 0, i = 0; list && at < s.to[d]; ++at) {
        const qn__cover c = qn__cover_of(at, s.to[d], s.from[d]);
        for (uint32_t k = 0; k < window; ++k)
            list[i++] = c.begin + k < c.end ? c.begin + k : c.end - 1;
    }
    snprintf(name, sizeof name, "%s.%s", g->part, d ? "columns" : "rows");
    if (list)
        qn__onnx_integers(g, name, list, (size_t)s.to[d] * window);
    qn__free(list);
    qn__onnx_step(g, "Gather", name, d ? "repeated" : "repeated_rows", axis);
}

/* The matrix from[d] x to[d] of the shares that an input has in each mean. */
static void share(qn__onnx_graph *g, const qn__layer *l, int d, char name[QN__ONNX_NAME]) {
    const sizes s = sizes_of(l);
    float *matrix = qn__alloc((uint64_t)s.from[d] * s.to[d], sizeof *matrix, NULL);
    g->body.failed |= !matrix;
    for (uint32_t at = 0; matrix && at < s.to[d]; ++at) {
        const qn__cover c = qn__cover_of(at, s.to[d], s.from[d]);
        for (uint32_t k = c.begin; k < c.end; ++k)
            matrix[(size_t)k * s.to[d] + at] = 1.0f / (float)(c.end - c.begin);
    }
    snprintf(name, QN__ONNX_NAME, "%s.%s", g->part, d ? "columns" : "rows");
    if (matrix)
        qn__onnx_floats(g, name, (const uint64_t[]){s.from[d], s.to[d], 0}, matrix);
    qn__free(matrix);
}

static void add_means(qn__onnx_graph *g, const qn__layer *l) {
    const qn__onnx_attribute turn[] = {
        {.name = "perm", .form = QN__ONNX_INTS, .count = 4, .value = {0, 1, 3, 2}}, {.name = NULL}};
    char name[QN__ONNX_NAME];
    share(g, l, 1, name);
    qn__onnx_step(g, "MatMul", name, "means_of_rows", QN__ONNX_NONE);
    qn__onnx_step(g, "Transpose", "", "turned", turn);
    share(g, l, 0, name);
    qn__onnx_step(g, "MatMul", name, "means", QN__ONNX_NONE);
    qn__onnx_step(g, "Transpose", "", "pool", turn);
}

void qn__onnx_pool(qn__onnx_graph *g, const qn__layer *l, const char *op) {
    const int means = l->kind == QN__LAYER_AVGPOOL, counts = means && !l->partial;
    const uint32_t pad[4] = {l->window.pad[0], l->window.pad[1], pad_after(l, 0), pad_after(l, 1)};
    const sizes s = sizes_of(l);
    qn__window w = l->window;
    qn__onnx_unflatten(g, l->from);
    if (!l->fitted) {
        add_windows(g, op, &w, pad, counts);
        return;
    }
    w.stride[0] = w.kernel[0];
    w.stride[1] = w.kernel[1];
    const int whole = s.from[0] % s.to[0] == 0 && s.from[1] % s.to[1] == 0;
    if (!whole && means) {
        add_means(g, l);
        return;
    }
    for (int d = 0; d < 2 && !whole; ++d)
        repeat(g, l, d);
    add_windows(g, op, &w, NO_PAD, 0);
}

void qn__onnx_upsample(qn__onnx_graph *g, const qn__layer *l) {
    const int blends = l->fitted == QN__BLENDS;
    const qn__onnx_attribute attributes[] = {
        {.name = "coordinate_transformation_mode",
         .form = QN__ONNX_TEXT,
         .text = blends ? "half_pixel" : "asymmetric"},
        {.name = "mode", .form = QN__ONNX_TEXT, .text = blends ? "linear" : "nearest"},
        {.name = "nearest_mode", .form = QN__ONNX_TEXT, .text = "floor"},
        {.name = NULL}};
    const sizes s = sizes_of(l);
    const uint32_t factor[2] = {s.to[0] / s.from[0], s.to[1] / s.from[1]};
    const float scale[4] = {1.0f, 1.0f, (float)factor[0], (float)factor[1]};
    char name[QN__ONNX_NAME], inputs[QN__ONNX_NAME + 2];
    qn__onnx_unflatten(g, l->from);
    snprintf(name, sizeof name, "%s.scales", g->part);
    qn__onnx_floats(g, name, (const uint64_t[]){4, 0}, scale);
    snprintf(inputs, sizeof inputs, "- %s", name);
    qn__onnx_step(g, "Resize", inputs, "larger", attributes);
}
