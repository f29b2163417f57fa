/* Inputs that are zero, left out of the first layer's products without changing a bit.
 *
 * Images, one-hot columns and word counts are mostly zeros. fma(+0, w, acc) is acc for every finite
 * w, except that it turns an acc of -0 into +0 when the product is +0. So a chain that leaves such
 * terms out ends in the same float, unless it ends in -0, which the caller then looks into; and a
 * gradient's chain becomes an integer, which has no -0. Weights that are not finite end the job
 * in any case: they never reach a file. */
#ifndef QN_DEVICE_CPU_WORKER_CPU_ZEROS_H
#define QN_DEVICE_CPU_WORKER_CPU_ZEROS_H

#include "device/device.h"
#include <stddef.h>
#include <stdint.h>

/* Items of a batch are divided into blocks, and a block into tiles of nearly equal height: what one
 * call of matmul_some takes. */
enum { QN__BLOCK_ITEMS = 96, QN__TILE_ROWS = 12 /* the most that kernels have */ };

/* What is known of the zeros of one batch's inputs. */
typedef struct qn__cpu_zeros {
    uint16_t *some; /* [panel][room]: for each item and panel, what the kernel `nonzero` gives */
    uint32_t
        *list; /* [tile][features]: the inputs that some item of the tile does not have as +0 */
    uint32_t *count; /* [tile]: how many they are */
} qn__cpu_zeros;

/* Where tile number `tile` (of the whole batch) begins and how many items it has; 0 items behind
 * the last. `height`: the kernels' rows. */
typedef struct qn__cpu_tile {
    uint32_t first, items;
} qn__cpu_tile;
qn__cpu_tile qn__cpu_tile_at(uint32_t items, uint32_t height, uint32_t tile);
/* Number of tiles of a batch. */
uint32_t qn__cpu_tiles(uint32_t items, uint32_t height);

/* After the items of a tile were fetched into `inputs`: notes their zeros. */
void qn__cpu_note_zeros(const qn__worker *worker, qn__cpu_zeros *zeros, uint32_t tile,
                        qn__cpu_tile at, const float *inputs, size_t stride);

#endif
