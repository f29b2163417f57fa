/* Notes which inputs of a batch are zero, for each tile of items (cpu_zeros.h says why).
 *
 * A product skips an input only if it is zero for all items of its tile. Of two items and four
 * inputs:
 *
 *     item 0    0 5 0 0        `some`: 0100, 0001, one bit for each input
 *     item 1    0 0 0 7        `list`: 1, 3, the inputs that the product of this tile reads
 *
 * The gradient reads `some` instead, because it goes over single items. */
#include "device/cpu/worker/cpu_zeros.h"

#include "device/cpu/worker/cpu_worker.h"

static uint32_t tiles_of(uint32_t items, uint32_t height) { return (items + height - 1) / height; }

qn__cpu_tile qn__cpu_tile_at(uint32_t items, uint32_t height, uint32_t tile) {
    const uint32_t whole = QN__BLOCK_ITEMS / height; /* tiles of a full block */
    const uint32_t first = tile / whole * QN__BLOCK_ITEMS, in_block = tile % whole;
    if (first >= items)
        return (qn__cpu_tile){items, 0};
    const uint32_t left = items - first < QN__BLOCK_ITEMS ? items - first : QN__BLOCK_ITEMS;
    const uint32_t tiles = tiles_of(left, height);
    if (in_block >= tiles)
        return (qn__cpu_tile){items, 0};
    const uint32_t low = left / tiles, higher = left % tiles;
    return (qn__cpu_tile){first + in_block * low + (in_block < higher ? in_block : higher),
                          low + (in_block < higher)};
}

uint32_t qn__cpu_tiles(uint32_t items, uint32_t height) {
    const uint32_t whole = QN__BLOCK_ITEMS / height;
    return items / QN__BLOCK_ITEMS * whole + tiles_of(items % QN__BLOCK_ITEMS, height);
}

void qn__cpu_note_zeros(const qn__worker *w, qn__cpu_zeros *zeros, uint32_t tile, qn__cpu_tile at,
                        const float *inputs, size_t stride) {
    const uint32_t panels = w->layer[0].in_panels;
    uint32_t *list = zeros->list + (size_t)tile * panels * QN__PANEL, count = 0;
    for (uint32_t p = 0; p < panels; ++p) {
        uint32_t any = 0;
        for (uint32_t i = at.first; i < at.first + at.items; ++i) {
            const uint32_t mask = w->kernels->nonzero(inputs + p * stride + (size_t)i * QN__PANEL);
            zeros->some[p * w->capacity + i] = (uint16_t)mask;
            any |= mask;
        }
        for (; any; any &= any - 1)
            list[count++] = p * QN__PANEL + (uint32_t)__builtin_ctz(any);
    }
    zeros->count[tile] = count;
}

/* The counts of tiles are complete before any core uses the batch: a barrier or the previous pass
 * is between. */
int qn__cpu_mostly_zero(const qn__cpu_pass *pass) {
    const qn__worker *w = pass->worker;
    const uint32_t tiles = qn__cpu_tiles(w->layer[0].rows, w->kernels->rows);
    uint64_t listed = 0;
    if (w->bits || w->layer[0].walks)
        return 0; /* lists of zeros are for float32, and for features */
    for (uint32_t t = 0; t < tiles; ++t)
        listed += w->fetch.zeros[w->fetch.current].count[t];
    return listed * 3 < (uint64_t)tiles * w->layer[0].layer->in * 2;
}
