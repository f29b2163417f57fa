/* Resizing by a filter in two passes of integers, as Pillow does: docs/exactness.md 24.50. */
#ifndef QN_IMAGE_RESAMPLE_H
#define QN_IMAGE_RESAMPLE_H

#include "image/resize.h"

/* An axis of `from` pixels becomes one of `to`, of which `count` are made, from `offset` on. */
typedef struct qn__resampled_axis {
    uint32_t from, to, offset, count;
} qn__resampled_axis;

typedef struct qn__resampling {
    qn__filter filter; /* not QN__FILTER_NONE */
    qn__resampled_axis y, x;
    uint32_t channels; /* 1 or 3 */
} qn__resampling;

/* Makes y.count x x.count pixels as planes, [channel][row][column], of y.from x x.from pixels,
 * [row][column][channel]. All sides are from 1 to 65,535. Fails with QN_MEMORY. */
qn_status qn__resample_planes(const qn__resampling *how, const uint8_t *pixels, uint8_t *planes,
                              qn_error *err);

#endif
