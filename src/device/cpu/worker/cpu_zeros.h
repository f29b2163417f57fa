/* Inputs that are zero, skipped in the first layer's products without changing a bit.
 *
 * Images, one-hot columns and word counts are mostly zeros. fma(+0, w, acc) is acc for every finite
 * w, except that it may turn an acc of -0 into +0. So a sum without such terms is the same float,
 * unless it is -0; the caller checks for that. A gradient's sum becomes an integer, which has no
 * -0. Weights that are not finite end the job in any case: they are never written to a file. */
#ifndef QN_DEVICE_CPU_WORKER_CPU_ZEROS_H
#define QN_DEVICE_CPU_WORKER_CPU_ZEROS_H

#include "device/device.h"
#include <stddef.h>
#include <stdint.h>

/* Items of a batch are divided into blocks, and a block into tiles of nearly equal height: the rows
 * of one call of matmul_some. */
enum { QN__BLOCK_ITEMS = 96, QN__TILE_ROWS = 12 /* the largest height of a kernel */ };

/* The zeros of one batch's inputs. */
typedef struct qn__cpu_zeros {
    uint16_t
        *some; /* [panel][capacity]: for each item and panel, the result of the kernel `nonzero` */
    uint32_t *list;  /* [tile][features]: the inputs that are not +0 for some item of the tile */
    uint32_t *count; /* [tile]: the length of its list */
} qn__cpu_zeros;

/* The first item of tile `tile` (of the whole batch) and its number of items; 0 items after the
 * last tile. `height`: the kernels' rows. */
typedef struct qn__cpu_tile {
    uint32_t first, items;
} qn__cpu_tile;
qn__cpu_tile qn__cpu_tile_at(uint32_t items, uint32_t height, uint32_t tile);
/* Number of tiles of a batch. */
uint32_t qn__cpu_tiles(uint32_t items, uint32_t height);

/* Records the zeros of a tile whose items were fetched into `inputs`. */
void qn__cpu_note_zeros(const qn__worker *worker, qn__cpu_zeros *zeros, uint32_t tile,
                        qn__cpu_tile at, const float *inputs, size_t stride);

#endif
