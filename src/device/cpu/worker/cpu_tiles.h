/* Convolutions of integers by tiles (integer/intconv.h): every pixel of a task becomes integers
 * once, in rows of pixels that stay in the L2 cache, and all taps read them there. */
#ifndef QN_DEVICE_CPU_WORKER_CPU_TILES_H
#define QN_DEVICE_CPU_WORKER_CPU_TILES_H

#include "device/cpu/integer/intconv.h"
#include "device/cpu/worker/cpu_arena.h"
#include <stddef.h>
#include <stdint.h>

struct qn__cpu_pass;
struct qn__cpu_core;
struct qn__cpu_layer;
struct qn__worker;

enum {
    QN__TILES_ITEMS = 32,   /* of a task forward or backward, at most */
    QN__TILES_WINDOW = 32,  /* rows of a window, at most */
    QN__TILES_TAPS = 25,    /* of a window of a gradient's task, at most */
    QN__TILES_BLOCKS = 36,  /* taps times panels of inputs of such a task, at most */
    QN__TILES_DEPTHS = 1024 /* of a row of pixels that is multiplied at once, or one pixel */
};

/* How many parts of `size` hold `count`. */
static inline uint32_t qn__tiles_parts(uint32_t count, uint32_t size) {
    return (count + size - 1) / size;
}

/* Forward, or the errors of the layer below: steps of a product (0: not by tiles), of a row of the
 * window and of a pixel; neighbouring pixels whose channels share a step; outputs of a row that are
 * computed at once, and pixels that they read. */
typedef struct qn__cpu_way {
    uint32_t steps, row_steps, chunks, joined, pixels, positions;
    uint32_t pixel; /* bytes of a pixel of an item in a plane */
    size_t row;     /* of all its pixels of a row */
} qn__cpu_way;

/* Bytes of a plane of a row of pixels. */
static inline size_t qn__cpu_way_plane(const qn__cpu_way *way) {
    return QN__TILES_ITEMS * way->row;
}

/* How a layer computes. */
typedef struct qn__cpu_tiled {
    /* Gradient: depths of a pixel (qn__conv_depths); 0: not by tiles. Output pixels of a row that
     * are multiplied at once, and pixels of the inputs that they read. */
    uint32_t span, pixels, positions;
    uint32_t task_panels; /* woven: panels of outputs of a task */
    uint32_t task_inputs; /* others: its panels of inputs */
    size_t row, slot;     /* bytes of a channel of these inputs, and of all their planes */
    /* Woven: bytes of a plane of a picture, and of a row of a channel. */
    size_t picture, picture_row;
    qn__cpu_way way[2]; /* forward and backward */
} qn__cpu_tiled;

/* The memory of one core. */
typedef struct qn__cpu_tiles_space {
    int32_t *sums;
    char *left, *right; /* rows of inputs, and of errors */
    char *picture;      /* of a grain, if they are woven */
    const float **pixel;
    const uint16_t **mask;
    size_t *offset; /* of each step of a row */
    /* Forward and backward: rows of operands, the row of pixels in each (-1: none), steps of a
     * product, its tiles, and 2^t and 2^-t of the items. */
    char *rows;
    int64_t slot[QN__TILES_WINDOW];
    size_t *step;
    qn__conv_tile *tile;
    float *factor, *inverse;
    float *results; /* before they are pooled: cpu_picked.h */
} qn__cpu_tiles_space;

/* A grain's part in the gradient of some taps of panels of inputs by panels of outputs. */
typedef struct qn__cpu_tiles_task {
    uint32_t in, inputs, tap, taps, out, panels;
    uint32_t item, items;
    float input, error; /* 2^-t of its blocks */
} qn__cpu_tiles_task;

/* Decides whether a layer computes by tiles, and how. */
void qn__cpu_tiles_shape(const struct qn__worker *worker, struct qn__cpu_layer *layer);
/* Tasks of the gradient of a layer with woven pictures, for a group of panels of outputs. */
uint32_t qn__cpu_woven_tasks(struct qn__cpu_layer *layer, int threads);
/* Taps of one task of the gradient of others; sets tiles.task_inputs. */
uint32_t qn__cpu_tiles_taps(struct qn__cpu_layer *layer, int planes, int threads);
void qn__cpu_tiles_carve(qn__cpu_arena *arena, const struct qn__worker *worker,
                         qn__cpu_tiles_space *space);

/* The same of memory forward and backward; decides which of them are by tiles. */
void qn__cpu_tiles_ways(const struct qn__worker *worker, struct qn__cpu_layer *layer);
void qn__cpu_tiles_carve_rows(qn__cpu_arena *arena, const struct qn__worker *worker,
                              qn__cpu_tiles_space *space);

/* Forward, parts of rows have whole windows of so many pixels, not more than they have now. */
void qn__cpu_tiles_whole(struct qn__cpu_layer *layer, uint32_t across);

/* Bytes of a panel of weights forward or backward. Packs one of outputs, or of inputs. */
size_t qn__cpu_tiles_weights(const struct qn__worker *worker, const struct qn__cpu_layer *layer,
                             int back);
void qn__cpu_tiles_pack(const struct qn__worker *worker, const struct qn__cpu_layer *layer,
                        uint32_t panel);
void qn__cpu_tiles_pack_back(const struct qn__worker *worker, const struct qn__cpu_layer *layer,
                             uint32_t panel);

/* Phases (cpu_worker.h). */
void qn__cpu_tiles_forward(const struct qn__cpu_pass *pass, int thread, uint32_t layer,
                           uint32_t phase);
void qn__cpu_tiles_backward(const struct qn__cpu_pass *pass, int thread, uint32_t layer,
                            uint32_t phase);

/* Adds the exact integers of a grain: for each panel of inputs, tap and panel of outputs 16 x 16.
 */
void qn__cpu_tiles_gradient(const struct qn__cpu_pass *pass, struct qn__cpu_core *core,
                            const struct qn__cpu_layer *layer, const qn__cpu_tiles_task *task,
                            int64_t *exact);

#endif
