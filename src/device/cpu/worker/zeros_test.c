/* How a batch is divided into blocks and tiles: every item belongs to exactly one tile. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "device/cpu/worker/cpu_zeros.h"

/* Checks each tile of a batch; a failure names the first invalid one. */
static void check_tiles(uint32_t items, uint32_t height) {
    const uint32_t tiles = qn__cpu_tiles(items, height);
    uint32_t next = 0, tallest = 0, lowest = UINT32_MAX, block = 0;
    for (uint32_t t = 0; t < tiles; ++t) {
        const qn__cpu_tile at = qn__cpu_tile_at(items, height, t);
        if (at.first != next || at.items == 0 || at.items > height)
            fail_msg("%u items, height %u, tile %u: %u items from %u on, after %u", items, height,
                     t, at.items, at.first, next);
        if (at.first / QN__BLOCK_ITEMS != (at.first + at.items - 1) / QN__BLOCK_ITEMS)
            fail_msg("%u items, height %u, tile %u: items %u..%u lie in two blocks", items, height,
                     t, at.first, at.first + at.items - 1);
        /* A block's tiles are those that cpu_forward.c assumes, and nearly equal. */
        assert_int_equal(at.first / QN__BLOCK_ITEMS, t / (QN__BLOCK_ITEMS / height));
        if (at.first / QN__BLOCK_ITEMS != block) {
            block = at.first / QN__BLOCK_ITEMS;
            tallest = 0;
            lowest = UINT32_MAX;
        }
        tallest = at.items > tallest ? at.items : tallest;
        lowest = at.items < lowest ? at.items : lowest;
        assert_in_range(tallest - lowest, 0, 1);
        next = at.first + at.items;
    }
    if (next != items)
        fail_msg("%u items, height %u: %u tiles hold %u items", items, height, tiles, next);
}

/* Tiles after the last one are empty, up to the end of its block and further. */
static void check_behind(uint32_t items, uint32_t height) {
    const uint32_t tiles = qn__cpu_tiles(items, height);
    for (uint32_t t = tiles; t < tiles + 2 * QN__BLOCK_ITEMS; ++t) {
        const qn__cpu_tile at = qn__cpu_tile_at(items, height, t);
        if (at.items != 0)
            fail_msg("%u items, height %u: tile %u of %u has %u items", items, height, t, tiles,
                     at.items);
    }
}

static void test_tiles_part_the_items(void **state) {
    static const uint32_t heights[] = {2, 6, 12};
    (void)state;
    for (int h = 0; h < 3; ++h)
        for (uint32_t items = 1; items <= 400; ++items) {
            check_tiles(items, heights[h]);
            check_behind(items, heights[h]);
        }
}

/* Memory is allocated once for the largest batch: a smaller one must not need more. */
static void test_tiles_grow_with_the_items(void **state) {
    static const uint32_t heights[] = {2, 6, 12};
    (void)state;
    for (int h = 0; h < 3; ++h) {
        assert_int_equal(qn__cpu_tiles(0, heights[h]), 0);
        for (uint32_t items = 1; items <= 2000; ++items)
            assert_true(qn__cpu_tiles(items, heights[h]) >= qn__cpu_tiles(items - 1, heights[h]));
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_tiles_part_the_items),
        cmocka_unit_test(test_tiles_grow_with_the_items),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
