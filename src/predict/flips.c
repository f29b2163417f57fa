#include "predict/flips.h"

#include "base/memory.h"
#include "job/apply.h"
#include <string.h>

/* Bytes of mirror images that exist at a time. */
enum { MIRROR_BYTES = 1 << 26 };

qn__shape qn__flips_shape(const qn__recipe *r, const qn_data *data) {
    const qn__shape own = qn__recipe_input(r);
    const qn__shape seen = {data->channels, data->rows, data->columns, QN__PICTURE};
    return own.height * own.width > 1 || qn__shape_volume(seen) != data->features ? own : seen;
}

qn_status qn__flips_check(const qn__recipe *r, const qn_data *data, qn_error *err) {
    const qn__shape shape = qn__flips_shape(r, data);
    if (shape.axes == QN__PICTURE && shape.width > 1)
        return QN_OK;
    qn__fail(err, QN_UNSUPPORTED, "the items are not images, so they have no mirror images");
    qn__at(err, "`predict.flips`");
    return qn__remedy(err, QN_UNSUPPORTED, "leave out `predict.flips`");
}

/* The image of an item, whose values have `size` bytes, with the columns in reverse order. */
static void mirror(qn__shape shape, size_t size, const char *from, char *to) {
    const size_t width = shape.width, rows = (size_t)shape.channels * shape.height;
    for (size_t row = 0; row < rows; ++row)
        for (size_t x = 0; x < width; ++x)
            memcpy(to + (row * width + x) * size, from + (row * width + width - 1 - x) * size,
                   size);
}

/* Some items of a table without an index. */
static qn_data mirrored(const qn_data *data, uint64_t first, uint64_t items, qn__shape shape,
                        char *values) {
    const size_t stride = qn__data_stride(data), size = qn__element_of(data->type)->size;
    for (uint64_t i = 0; i < items; ++i)
        mirror(shape, size, qn__data_item(data, first + i), values + i * stride);
    return (qn_data){.type = data->type,
                     .items = items,
                     .features = data->features,
                     .values = (const uint8_t *)values};
}

static void add_halves(uint64_t count, const float *other, float *to) {
    for (uint64_t i = 0; i < count; ++i)
        to[i] = (to[i] + other[i]) * 0.5f;
}

/* 6.6 */
static void choose(const qn__program *p, uint32_t outputs, const float *y, int32_t *class,
                   float *score) {
    uint32_t best = 0;
    if (qn__program_classes(p) > outputs) { /* one output for two classes */
        *class = y[0] > 0.5f;
        *score = *class ? y[0] : 1.0f - y[0];
        return;
    }
    for (uint32_t j = 1; j < outputs; ++j)
        best = y[j] > y[best] ? j : best;
    *class = (int32_t)best;
    *score = y[best];
}

static void choose_all(const qn__program *p, uint32_t outputs, uint64_t items, const float *output,
                       const qn__model_results *results) {
    for (uint64_t i = 0; i < items; ++i) {
        int32_t class;
        float score;
        choose(p, outputs, output + i * outputs, &class, &score);
        if (results->classes)
            results->classes[i] = class;
        if (results->scores)
            results->scores[i] = score;
    }
}

/* The message of a mirror image has the number of an item among those of its block. */
static qn_status name_items(qn_status status, uint64_t first, uint64_t items, qn_error *err) {
    if (status != QN_NUMERIC)
        return status;
    return qn__fail(err, QN_NUMERIC,
                    "the network gives no finite output for the mirror image of one of the items "
                    "%llu to %llu",
                    (unsigned long long)first, (unsigned long long)(first + items - 1));
}

/* Adds the outputs for the mirror images to those for the images. */
static qn_status add_mirrored(qn__team *team, const qn__program *p, qn__shape shape,
                              const qn_data *inputs, uint64_t block, char *values, float *other,
                              float *output, qn_error *err) {
    const uint32_t outputs = p->layer[p->layers - 1].out;
    const qn__apply_results results = {.outputs = other};
    for (uint64_t first = 0; first < inputs->items; first += block) {
        const uint64_t left = inputs->items - first, items = left < block ? left : block;
        const qn_data part = mirrored(inputs, first, items, shape, values);
        const qn_status status = qn__apply_all(team, p, &part, &results, err);
        if (status != QN_OK)
            return name_items(status, first, items, err);
        add_halves(items * outputs, other, output + first * outputs);
    }
    return QN_OK;
}

static uint64_t block_of(const qn_data *inputs) {
    const uint64_t most = MIRROR_BYTES / qn__data_stride(inputs) + 1;
    return inputs->items < most ? inputs->items : most;
}

qn_status qn__flips_apply(qn__team *team, const qn__program *p, qn__shape shape,
                          const qn_data *inputs, const qn__model_results *results, qn_error *err) {
    const uint32_t outputs = p->layer[p->layers - 1].out;
    const uint64_t block = block_of(inputs);
    float *own = results->outputs ? NULL : qn__alloc(inputs->items * outputs, sizeof *own, err);
    float *const output = own ? own : results->outputs;
    char *values = qn__alloc(block, qn__data_stride(inputs), err);
    float *other = values ? qn__alloc(block * outputs, sizeof *other, err) : NULL;
    qn_status status = output && other ? QN_OK : QN_MEMORY;
    const qn__apply_results first = {.outputs = output};
    if (status == QN_OK)
        status = qn__apply_all(team, p, inputs, &first, err);
    if (status == QN_OK)
        status = add_mirrored(team, p, shape, inputs, block, values, other, output, err);
    if (status == QN_OK)
        choose_all(p, outputs, inputs->items, output, results);
    qn__free(own);
    qn__free(values);
    qn__free(other);
    return status;
}
