#include "layer/join.h"

qn__layer qn__join_make(const qn__layer_text *text, qn__shape from, uint64_t first) {
    const uint32_t values = qn__shape_volume(from);
    return (qn__layer){.kind = text->kind,
                       .from = from,
                       .to = from,
                       .second = from,
                       .window = {{1, 1}, {1, 1}, {0, 0}, {1, 1}},
                       .in = values,
                       .out = values,
                       .activation = text->activation,
                       .drop_keep = 1.0f,
                       .weights = first,
                       .biases = first};
}

int qn__join_same_pixels(qn__shape a, qn__shape b) {
    return a.height == b.height && a.width == b.width && a.axes == b.axes;
}
