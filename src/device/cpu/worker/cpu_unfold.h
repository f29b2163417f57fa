/* Pictures of the first layer: padded, unfolded to rows of factors, or woven. */
#ifndef QN_DEVICE_CPU_WORKER_CPU_UNFOLD_H
#define QN_DEVICE_CPU_WORKER_CPU_UNFOLD_H

#include "device/cpu/float/cpu_kernels.h"
#include <stddef.h>
#include <stdint.h>

typedef struct qn__cpu_layer qn__cpu_layer;

/* The factors of a panel that follow one another in a picture: where each such segment begins
 * there, from an output pixel's first factor on, and in the panel. `end`: factors of the panel. */
typedef struct qn__cpu_segments {
    size_t count, end, from[QN__PANEL], to[QN__PANEL];
} qn__cpu_segments;

/* qn__cpu_pad copies a picture, whose features have the order (c, y, x), and adds its padding; the
 * result has qn__cpu_unfold_space floats. qn__cpu_unfold makes rows of some padded pictures that
 * follow one another: row (pixel, picture) has the factors of that output pixel, or the channels of
 * that pixel. `segments`: where they are in a padded picture. qn__cpu_unfold_items: the pictures
 * that are padded before they are unfolded, where that happens when they are fetched. */
typedef struct qn__cpu_unfolding {
    uint32_t first, pixels; /* output pixels */
    uint32_t panel, panels; /* of factors */
    uint32_t count;         /* pictures */
    size_t next, stride;    /* floats between two pixels and between two panels of the rows */
} qn__cpu_unfolding;
size_t qn__cpu_unfold_space(const qn__cpu_layer *layer);
/* Where the first factor of output pixel (y, x) is in a padded picture. qn__cpu_picture_strip: how
 * many factors of an output pixel from `factor` on follow one another there, up to `end`; *at:
 * where they begin, from that pixel's first factor on. */
size_t qn__cpu_picture_at(const qn__cpu_layer *layer, uint32_t y, uint32_t x);
uint32_t qn__cpu_picture_strip(const qn__cpu_layer *layer, size_t factor, size_t end, size_t *at);
/* The windows of the layer's pictures; the members that tell how many, and distances of weights and
 * results, are 0. */
qn__cpu_windows qn__cpu_windows_of(const qn__cpu_layer *layer);
uint32_t qn__cpu_unfold_items(const qn__cpu_layer *layer);
void qn__cpu_unfold_begin(const qn__cpu_layer *layer, qn__cpu_segments *segments);
void qn__cpu_pad(const qn__cpu_layer *layer, const float *from, float *to);
void qn__cpu_unfold(const qn__cpu_layer *layer, const qn__cpu_segments *segments,
                    const qn__cpu_unfolding *what, const float *padded, float *to);

/* Woven pictures, in integer arithmetic: [16 items][padded pixel][channel][item], others 0. Floats
 * of so many items. qn__cpu_weave weaves 16 items, of which `items` are there: item i has its
 * features at from + i * stride. qn__cpu_weave_begin: where the factors of an output pixel are,
 * from its first one on, in units of 16 floats. */
typedef struct qn__cpu_weft {
    uint32_t channels, height, width; /* of a padded picture */
    uint32_t across;                  /* output pixels of a row */
    uint32_t down, right;             /* pixels from an output pixel to the next one */
} qn__cpu_weft;
size_t qn__cpu_woven_floats(const qn__cpu_layer *layer, size_t items);
void qn__cpu_weave_begin(const qn__cpu_layer *layer, uint32_t *place);
qn__cpu_weft qn__cpu_weft_of(const qn__cpu_layer *layer);
void qn__cpu_weave(const qn__cpu_layer *layer, uint32_t items, const float *from, size_t stride,
                   float *to);

/* Floats between two items before they are woven: an odd number of cache lines, so that those of
 * 16 items lie in different sets of a cache. */
static inline size_t qn__cpu_woven_stride(size_t features) {
    return ((features / QN__PANEL + 2) | 1) * QN__PANEL;
}

/* Where output pixel `pixel` begins in a picture. */
static inline size_t qn__cpu_weft_at(const qn__cpu_weft *w, uint32_t pixel) {
    const size_t y = (size_t)(pixel / w->across) * w->down,
                 x = (size_t)(pixel % w->across) * w->right;
    return (y * w->width + x) * w->channels;
}

#endif
