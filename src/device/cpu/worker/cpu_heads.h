/* Channels of a head of attention, in arrays of panels and in blocks by themselves. */
#ifndef QN_DEVICE_CPU_WORKER_CPU_HEADS_H
#define QN_DEVICE_CPU_WORKER_CPU_HEADS_H

#include "device/cpu/float/cpu_kernels.h"
#include "device/cpu/worker/cpu_worker.h"
#include <math.h>
#include <string.h>

/* A score of a key that a query does not see: its weight is +0 beside any usual one. */
#define QN__UNSEEN (-0x1p100f)
/* Bits of the largest usual score, and the least usual one that is the greatest of its row. */
#define QN__USUAL_BITS 0x71800000u /* 2^100 */
#define QN__USUAL_LEAST (-0x1p80f)

/* Whether a row of scores needs no second look: its greatest, and 1 / the sum of its weights. */
static inline int qn__cpu_is_usual(float greatest, float share) {
    return greatest >= QN__USUAL_LEAST && greatest <= 0x1p100f && isfinite(share);
}

/* Channels of panel `panel` of a head that has `width`. */
static inline uint32_t qn__cpu_panel_channels(uint32_t width, uint32_t panel) {
    const uint32_t left = width - panel * QN__PANEL;
    return left < QN__PANEL ? left : QN__PANEL;
}

/* Sizes in floats of a group of heads: `rows` of a tile; panels of a head's channels (`wide`) and
 * of positions (`panels`); an array of keys or values, and one of them in panels of channels; rows
 * of a tile in panels of channels, and of positions. */
typedef struct qn__cpu_head_sizes {
    uint32_t width, rows, wide, panels;
    size_t keys, panel, block, tile;
} qn__cpu_head_sizes;

static inline qn__cpu_head_sizes qn__cpu_head_sizes_of(uint32_t width, uint32_t rows,
                                                       uint32_t positions) {
    const uint32_t wide = (width + QN__PANEL - 1) / QN__PANEL;
    const uint32_t panels = (positions + QN__PANEL - 1) / QN__PANEL;
    return (qn__cpu_head_sizes){width,
                                rows,
                                wide,
                                panels,
                                (size_t)panels * wide * QN__PANEL * QN__PANEL,
                                ((size_t)panels * QN__PANEL + 1) * QN__PANEL,
                                (size_t)wide * rows * QN__PANEL,
                                (size_t)panels * rows * QN__PANEL};
}

/* Sixteen channels of a row, `count` of them, from `channel` on; the others are 0. */
static inline void qn__cpu_take_channels(const float *from, size_t panel, uint32_t channel,
                                         uint32_t count, float *to) {
    const uint32_t lane = channel % QN__PANEL;
    from += channel / QN__PANEL * panel;
    if (lane == 0 && count == QN__PANEL) {
        memcpy(to, from, QN__PANEL * sizeof *to);
        return;
    }
    memset(to, 0, QN__PANEL * sizeof *to);
    const uint32_t first = count < QN__PANEL - lane ? count : QN__PANEL - lane;
    memcpy(to, from + lane, first * sizeof *to);
    memcpy(to + first, from + panel, (count - first) * sizeof *to);
}

/* The other way. */
static inline void qn__cpu_put_channels(const float *x, size_t panel, uint32_t channel,
                                        uint32_t count, float *to) {
    const uint32_t lane = channel % QN__PANEL;
    to += channel / QN__PANEL * panel;
    if (lane == 0 && count == QN__PANEL) {
        memcpy(to, x, QN__PANEL * sizeof *to);
        return;
    }
    const uint32_t first = count < QN__PANEL - lane ? count : QN__PANEL - lane;
    memcpy(to + lane, x, first * sizeof *to);
    memcpy(to + panel, x + first, (count - first) * sizeof *to);
}

/* A group of heads of an item, for integers (cpu_attention_integer.c): its layer with the length of
 * the item, and some of its queries and keys, from multiples of 16 on. */
typedef struct qn__cpu_attend {
    const qn__cpu_pass *pass;
    const qn__cpu_layer *l;
    const qn__layer *own;
    uint32_t item, group;
    qn__cover queries, keys;
    float *space;     /* of the core */
    uint32_t largest; /* bits of the largest result */
    int odd;          /* a number was not usual: the group is to be computed again */
} qn__cpu_attend;

/* Floats of a core for a layer. */
size_t qn__cpu_integer_space(const qn__worker *worker, const qn__layer *layer);

/* The outputs of its queries. */
void qn__cpu_integer_outputs(qn__cpu_attend *task);

/* The errors of its queries, if there are any; with `sums` those of its keys and values, too. */
void qn__cpu_integer_errors(qn__cpu_attend *task, int sums);

#endif
