#include "layer/axes.h"

#include <stdio.h>

static const qn__axes_row rows[] = {
    [QN__PICTURE] = {"pixels", "channels x height x width", 3, {0, 1, 2}},
    [QN__SEQUENCE] = {"positions", "positions x channels", 2, {2, 0}},
    [QN__FEATURES] = {"features", "channels x height x width", 3, {0, 1, 2}},
};

const qn__axes_row *qn__axes_of(qn__shape shape) {
    const int one = shape.axes == QN__PICTURE && shape.height == 1 && shape.width == 1;
    return &rows[one ? QN__FEATURES : shape.axes];
}

const char *qn__shape_text(qn__shape shape, char text[QN__SHAPE_TEXT]) {
    const uint32_t length[] = {shape.channels, shape.height, shape.width};
    const qn__axes_row *row = qn__axes_of(shape);
    int used = 0;
    for (uint32_t i = 0; i < row->count; ++i)
        used += snprintf(text + used, QN__SHAPE_TEXT - (size_t)used, i ? "x%u" : "%u",
                         length[row->at[i]]);
    return text;
}
