/* A walk: the order in which a phase processes the pixels of a layer with a picture. It says which
 * rows one product computes, and which blocks its chains read.
 *
 * Rows are (pixel, item), items fastest. So the items of a pixel are consecutive rows, and so are
 * those of neighbouring pixels. Where neighbours read the same taps of their window, they are one
 * run: every block of its chain begins at one offset for all its rows. At a border each pixel is a
 * run of its own, and taps outside the picture are left out of its chain. */
#ifndef QN_DEVICE_CPU_WORKER_CPU_WALK_H
#define QN_DEVICE_CPU_WORKER_CPU_WALK_H

#include "num/program.h"
#include <stddef.h>

/* One direction of a window. Forward, position i of the outputs reads (i * stride - pad + k *
 * dilation) / spread of the inputs at tap k, where that is a whole number. Backward, position i of
 * the inputs reads the outputs that read it at tap k. */
typedef struct qn__cpu_axis {
    uint32_t size;  /* positions that are computed */
    uint32_t limit; /* positions that can be read */
    uint32_t kernel, stride, pad, dilation;
    int back;
    uint32_t spread; /* positions from one input to the next: 1 but for convtranspose */
    int fitted;      /* not 0: windows are fitted to the sizes (qn__fitted_taps; back:
                        qn__fitted_readers) */
} qn__cpu_axis;

/* Whether neighbouring taps read neighbouring positions, in a window of one size. */
static inline int qn__cpu_axis_is_plain(const qn__cpu_axis *axis) {
    return axis->dilation == 1 && axis->spread == 1 && !axis->fitted;
}

/* The position that `at` reads at tap k; -1 when there is none. */
int64_t qn__cpu_reads(const qn__cpu_axis *axis, uint32_t at, uint32_t k);

typedef struct qn__cpu_walk {
    qn__cpu_axis axis[2];          /* vertical, horizontal */
    uint32_t panels;               /* of a pixel that is read */
    uint32_t *begin;               /* of each piece of a row of pixels, then the row's width */
    uint32_t pieces, parts, items; /* pieces of a row; parts of the items; items of a pixel */
    int any;        /* 1: neighbours form a run even if they read different taps (pools) */
    uint32_t most;  /* the argument `most` of the last qn__cpu_walk_begin */
    uint32_t whole; /* parts begin at multiples of so many items; 0: anywhere */
    int slides;     /* 1: runs that read all taps use the kernel `slide` (cpu_kernels.h) */
} qn__cpu_walk;

/* Rows that one product computes: all items of `pixels` neighbouring pixels, or some items of one
 * pixel. */
typedef struct qn__cpu_walk_run {
    uint32_t y, x, pixels;
    uint32_t item, rows; /* first item of each pixel; number of rows */
    size_t row;          /* first row of what is computed */
} qn__cpu_walk_run;

/* The axes of a layer's forward or backward pass. Windows of one pixel are one row of pixels. */
void qn__cpu_walk_axes(const qn__layer *layer, int back, qn__cpu_axis axis[2]);

/* Divides the rows for `items` items into runs of about `most` rows. walk->axis and the memory at
 * walk->begin, of the largest width and 1, are set; items and most are 0 before the first call. */
void qn__cpu_walk_begin(qn__cpu_walk *walk, uint32_t items, uint32_t most);

static inline uint32_t qn__cpu_runs(const qn__cpu_walk *walk) {
    return walk->axis[0].size * walk->pieces * walk->parts;
}
qn__cpu_walk_run qn__cpu_run_at(const qn__cpu_walk *walk, uint32_t index);

/* The blocks of a run's chain, in ascending order of (pixel that is read, panel): forward these are
 * the taps in their order, backward in the reverse one. a[i] is where block i begins in an operand
 * whose panels are `stride` floats apart; b[i] is 256 times its number in the whole window. Returns
 * the number of blocks. */
uint32_t qn__cpu_run_blocks(const qn__cpu_walk *walk, const qn__cpu_walk_run *run, size_t stride,
                            size_t *a, size_t *b);

/* The blocks of all taps in order, forward and backward alike. A tap outside the picture gets the
 * offset `nothing`. */
void qn__cpu_run_taps(const qn__cpu_walk *walk, const qn__cpu_walk_run *run, size_t stride,
                      size_t nothing, size_t *a);

#endif
